"""How a rank in trouble ends its job at once, instead of leaving the others to wait for it.

An uncaught exception on one rank leaves its peers in receives that nobody will answer.  The hook here reports it, with
rank, host and line, and has the launcher end the job.  A rank that leaves by `sys.exit(1)` says so to the finalisation,
which then waits for nobody.
"""

from __future__ import annotations

import os
import sys
import time

from ompy.core.errors import ERR_PROC_FAILED, MPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import NoReturn

    from ompy.mca.rte import Rte

LIBRARY = os.path.dirname(os.__file__) + os.sep
INTERRUPTED = 128 + 2  # as a shell says of a command that SIGINT ended; importing `signal` would cost every rank an enum

PEER_FAILURE_DELAY = 0.75  # seconds; a launcher's grace is shorter

exit_argument: object = None
python_exit = sys.exit


def is_own(frame: FrameType) -> bool:
    """Whether the frame is the library's: ompy's, or a component's."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package == "ompy" or package.startswith("ompy_")


def place_of(traceback: TracebackType | None) -> str:
    """`prog.py:12` of the innermost frame that is the program's: not ompy's, and not an installed package's if it can be."""
    program = installed = ""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not is_own(traceback.tb_frame) and not name.startswith("<frozen"):
            place = f"{name}:{traceback.tb_lineno}"
            if name.startswith(LIBRARY) or "site-packages" in name:
                installed = place
            else:
                program = place
        traceback = traceback.tb_next
    return program or installed or "unknown place"


def describe(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> str:
    """One line: place, exception, and the first line of what it says."""
    text = str(error).partition("\n")[0]
    return f"{place_of(traceback)}: {kind.__name__}" + (f": {text}" if text else "")


def noted_exit(status: object = None, /) -> NoReturn:
    """`sys.exit`, remembering the status for the finalisation."""
    global exit_argument
    exit_argument = status
    python_exit(status)  # type: ignore[arg-type]


def leaves_in_failure() -> bool:
    """Whether the program is on its way out through `sys.exit` with a status other than success."""
    return exit_argument is not None and exit_argument != 0


def install(rte: Rte) -> None:
    """Make uncaught exceptions end the job; called when MPI is initialised, without effect in a job of one."""
    if rte.board is not None and hasattr(sys.stdout, "reconfigure"):
        # The launcher reads whole lines from a pipe: without this a rank that is killed takes 8 KiB of words with it.
        sys.stdout.reconfigure(line_buffering=True)
    if "OMPY_STACKS_FD" in os.environ:
        import faulthandler

        from ompy.runtime.signals import STACKS_SIGNAL

        faulthandler.register(STACKS_SIGNAL, int(os.environ["OMPY_STACKS_FD"]))
    if rte.size == 1:
        return
    sys.exit = noted_exit
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        line = describe(kind, error, traceback)
        if issubclass(kind, KeyboardInterrupt):
            # All ranks are interrupted together: one line each, not as many tracebacks.
            print(f"ompy: rank {rte.rank}: {line}", file=sys.stderr)
            rte.abort(INTERRUPTED, line)
        if isinstance(error, MPIError) and error.code == ERR_PROC_FAILED:
            # The news is the peer's failure, which its launcher tells while it ends this process: a rank can hear of it
            # first, by a connection that broke.  Only where nobody does so is this rank the one to speak.
            time.sleep(PEER_FAILURE_DELAY)
            print(f"ompy: rank {rte.rank}: {line}", file=sys.stderr)
        elif previous is sys.__excepthook__:
            # In one piece, so that the tracebacks of ranks that fail together come one after the other.
            from traceback import format_exception

            sys.stderr.write("".join(format_exception(kind, error, traceback)))
        else:
            previous(kind, error, traceback)
        rte.abort(1, line)

    sys.excepthook = hook
