"""One rank of a test: `python -m ompy.testing.rank FOLDER` runs the test body that the plugin described in FOLDER.

FOLDER/task is what to run; each rank leaves its outcome in FOLDER/outcome.<rank>.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ompy.testing import stand_in
from ompy.testing.task import COMMUNICATOR, FAILED, PASSED, SKIPPED, XFAILED, Outcome, Task

LOCALS_SHOWN = 12


def import_file(path: str) -> ModuleType:
    module_name = os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def set_up(holder: object, kind: str, argument: object, until: contextlib.ExitStack) -> None:
    """Call `setup_<kind>` where there is one, now, and `teardown_<kind>` in the end, with the argument if they take any."""
    for name, run in ((f"setup_{kind}", lambda call: call()), (f"teardown_{kind}", until.callback)):
        function = getattr(holder, name, None)
        if function is not None:
            run(functools.partial(function, *[argument][: len(inspect.signature(function).parameters)]))


@contextlib.contextmanager
def body_of(path: str, names: list[str]) -> Iterator[Callable[..., object]]:
    """The function of the test's file, bound to a fresh instance if it is a method, between its set-up and what undoes that."""
    module: Any = import_file(path)
    with contextlib.ExitStack() as until:
        set_up(module, "module", module, until)
        holder = module
        for name in names[:-1]:
            kind = getattr(holder, name)
            set_up(kind, "class", kind, until)
            holder = kind()
        function = getattr(holder, names[-1])
        set_up(holder, "function" if holder is module else "method", function, until)
        yield function


def describe(error: BaseException, path: str) -> str:
    """The traceback from the test's file on, and the values that the failing line had before it."""
    frames = error.__traceback__
    start = frames
    while start is not None and start.tb_frame.f_code.co_filename != path:
        start = start.tb_next
    lines = traceback.format_exception(type(error), error, start or frames)
    last = None
    step = start
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            last = step.tb_frame
        step = step.tb_next
    if last is not None and isinstance(error, AssertionError):
        for name, value in list(last.f_locals.items())[:LOCALS_SHOWN]:
            if not name.startswith("__"):
                try:
                    shown = repr(value)
                except Exception as problem:
                    shown = f"<no repr: {type(problem).__name__}>"
                lines.append(f"    {name} = {shown[:200]}\n")
    return "".join(lines)


def judge(task: Task, rank: int) -> Outcome:
    """Run the body and say how it went."""
    try:
        with body_of(task.path, task.names) as function:
            arguments = dict(task.arguments)
            if task.communicator:
                from ompy import MPI

                arguments[COMMUNICATOR] = MPI.COMM_WORLD
            function(**arguments)
    except BaseException as error:  # a test may end in SystemExit or KeyboardInterrupt: failures as well
        if "_pytest.outcomes" in sys.modules:
            import pytest

            if isinstance(error, pytest.skip.Exception | pytest.xfail.Exception):
                return Outcome(rank, SKIPPED if isinstance(error, pytest.skip.Exception) else XFAILED, str(error))
        return Outcome(rank, FAILED, describe(error, task.path))
    return Outcome(rank, PASSED)


def main() -> None:
    folder = sys.argv[1]
    rank = int(os.environ["PMI_RANK"])
    with open(f"{folder}/path", "rb") as stream:
        sys.path[:0] = pickle.load(stream)
    stand_in.install()
    with open(f"{folder}/task", "rb") as stream:
        task: Task = pickle.load(stream)
    outcome = judge(task, rank)
    with open(f"{folder}/outcome.{rank}.partial", "wb") as stream:
        pickle.dump(outcome, stream)
    os.rename(f"{folder}/outcome.{rank}.partial", f"{folder}/outcome.{rank}")
    if outcome.word == FAILED:
        # No finalisation: peers may be waiting for what this rank will never send, and the launcher ends them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
