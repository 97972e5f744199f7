"""How a rank in trouble ends its job at once, instead of leaving the others to wait for it.

An uncaught exception on one rank leaves its peers in receives that nobody will answer.  The hook here reports it, with
rank, host and line, and has the launcher end the job.  A rank that leaves by `sys.exit(1)` is known to the finalisation, which
then waits for nobody.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_native_id

from ompy.core.errors import ERR_PROC_FAILED, MPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from ompy.mca.rte import Rte

INTERRUPTED = 128 + 2  # as a shell says of a command that SIGINT ended; importing `signal` would cost every rank an enum

PEER_FAILURE_DELAY = 0.75  # seconds; a launcher's grace is shorter

outermost: FrameType | None = None
installed = False


def is_running(wanted: FrameType) -> bool:
    """Whether the frame has not ended."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None


def has_returned(frame: FrameType) -> bool:
    """Whether a frame that has ended came to its end; otherwise an exception ended it."""
    try:
        from opcode import opname
    except OSError:
        return True  # no descriptor is left to read the module by: the program may end all the same

    return frame.f_lasti >= 0 and opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN_")


def fails(status: object) -> bool:
    """Whether a status that `sys.exit` takes is one of failure."""
    return status is not None and status != 0


def leaves_in_failure() -> bool:
    """Whether the program is on its way out with a status other than success.

    Asked by the finalisation: on the way (`try: ... finally: MPI.Finalize()`), or at the end, when Python has forgotten what
    ended the program.  What it remembers is how far the outermost frame came.
    """
    if outermost is None or is_running(outermost):
        error = sys.exc_info()[1]
        return isinstance(error, SystemExit) and fails(error.code)
    if has_returned(outermost):
        return False
    from ompy.runtime.leaving import last

    # Something other than SystemExit, of which the hook below was not told: the program has put its own in its place.
    traceback = getattr(sys, "last_traceback", None)
    return fails(last()) or (traceback is not None and traceback.tb_frame is outermost)


def frame_of_program() -> FrameType | None:
    """The outermost frame of the main thread, where this is the main thread."""
    if get_native_id() != os.getpid():
        return None
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def install(rte: Rte) -> None:
    """Make uncaught exceptions end the job; called when MPI is initialised.

    Without effect in a job of one that is connected with no other.
    """
    global installed, outermost
    if rte.board is not None and hasattr(sys.stdout, "reconfigure"):
        # The launcher reads whole lines from a pipe: without this a rank that is killed takes 8 KiB of words with it.
        sys.stdout.reconfigure(line_buffering=True)
    if "OMPY_STACKS_FD" in os.environ:
        import faulthandler

        from ompy.runtime.signals import STACKS_SIGNAL

        # The file is this rank's: programs that it starts have no use for it.
        descriptor = int(os.environ.pop("OMPY_STACKS_FD"))
        os.set_inheritable(descriptor, False)
        faulthandler.register(STACKS_SIGNAL, descriptor)
    from ompy.runtime.dpm import acquaintances
    from ompy.runtime.leaving import watch

    watch()
    outermost = frame_of_program()
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if not installed or (rte.size == 1 and not acquaintances.known):
            previous(kind, error, traceback)
            return
        from ompy.runtime import blame

        line = blame.describe(kind, error, traceback)
        try:
            tell(kind, error, traceback, line, blame.headline(rte.rank, error, traceback))
        finally:
            # Whatever became of the telling: a closed or full stderr, a hook of the program's that fails.
            rte.abort(INTERRUPTED if issubclass(kind, KeyboardInterrupt) else 1, line)

    def tell(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None, line: str, headline: str
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            # All ranks are interrupted together: one line each, not as many tracebacks.
            print(f"ompy: rank {rte.rank}: {line}", file=sys.stderr)
        elif isinstance(error, MPIError) and error.code == ERR_PROC_FAILED:
            # The news is the peer's failure, which its launcher tells while it ends this process: a rank can hear of it
            # first, by a connection that broke.  Only where nobody does so is this rank the one to speak.
            time.sleep(PEER_FAILURE_DELAY)
            print(f"ompy: rank {rte.rank}: {line}", file=sys.stderr)
        elif previous is sys.__excepthook__:
            # In one piece, so that the tracebacks of ranks that fail together come one after the other.
            from traceback import format_exception

            sys.stderr.write(headline + "".join(format_exception(kind, error, traceback)))
        else:
            sys.stderr.write(headline)
            previous(kind, error, traceback)

    installed = True
    sys.excepthook = hook


def uninstall() -> None:
    """In a child made by fork, whose exceptions and exit are its own matter."""
    global installed
    installed = False
