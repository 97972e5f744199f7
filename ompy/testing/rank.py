"""One rank of a test: `python -m ompy.testing.rank FOLDER` runs the test body that the plugin described in FOLDER.

FOLDER/task is what to run; each rank leaves its outcome in FOLDER/outcome.<rank>.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import traceback
from typing import Any

from ompy.testing import stand_in
from ompy.testing.task import COMMUNICATOR, FAILED, PASSED, SKIPPED, XFAILED, Outcome, Task

LOCALS_SHOWN = 12


def body_of(path: str, name: str) -> Any:
    """Import the test's file and find the function, bound to a fresh instance if it is a method."""
    module_name = os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
        if isinstance(found, type):
            found = found()
    return found


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
        function = body_of(task.path, task.name)
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
