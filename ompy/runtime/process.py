"""One started rank: its descriptors, its process group, how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from _socket import AF_UNIX, SOCK_STREAM, socketpair

from ompy.runtime.job import Program
from ompy.runtime.signals import STACKS_SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ompy.runtime.pmi_server import Session

# Python ignores these two; a rank starts with what every other program expects.
DEFAULTED = (signal.SIGPIPE, signal.SIGXFSZ)

# A rank writes its stacks within a few milliseconds, unless it is stopped.
STACK_PAUSE = 0.01
STACK_LOOKS = 50


class Process:
    """A rank's process, leader of a process group of its own, and mostly of a session.

    So signals from the terminal reach the launcher alone, which passes them on in order, and what the rank starts ends with
    it.  A kernel that shares the processors out by session (autogroup) gives each rank a share, not all of them one.  Where
    ranks outnumber the processors that would be wrong: across sessions sched_yield gives nothing away, and ranks would wait
    for the end of each other's time slices.  There they stay in the launcher's session, but for one that reads a terminal,
    which background groups of the terminal's session may not.

    Attributes:
        job: number of the job.
        rank: in the job.
        program: what it runs.
        pid: of the leader, which is the group's number too.
        pmi, stdout, stderr: the launcher's ends; -1 for one that is closed, or is none.
        status: exit code, or minus the signal that killed it; None while it runs.
        untold: what the launcher says to it that has found no room yet.
        behind: bytes of answers among that.
        writer: a second descriptor for `pmi`, while there is such.
        is_left: this process may not kill it, and waits for it no more.
    """

    def __init__(
        self,
        job: int,
        rank: int,
        program: Program,
        environment: dict[str, str],
        stdin: int | None,
        stack_traces: bool = False,
        crowded: bool = False,
        merged: bool = False,
    ) -> None:
        """Start it.

        Parameters:
            environment: whole; `PMI_FD` is added here.
            stdin: descriptor to read from, or None for an empty input.
            stack_traces: give it a file to write its Python stacks to when `stacks` asks for them.
            crowded: ranks outnumber the processors.
            merged: standard error is written to the pipe of standard output.

        Raises `OSError` when the program can't be started.
        """
        self.job = job
        self.rank = rank
        self.program = program
        self.status: int | None = None
        self.session: Session
        self.untold = bytearray()
        self.behind = 0
        self.writer = -1
        self.is_left = False
        self.stack_file = -1
        self.stacks_from = -1
        source = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0)
        alone = not crowded or (stdin is not None and os.isatty(stdin))
        placing: dict[str, Any] = {"setsid": True} if alone else {"setpgroup": 0}
        # Closed again where any of this fails, as where descriptors run out.
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:

            def keep(pair: tuple[int, int]) -> tuple[int, int]:
                ours.callback(os.close, pair[0])
                theirs.callback(os.close, pair[1])
                return pair

            here, there = socketpair(AF_UNIX, SOCK_STREAM)
            self.pmi, pmi = keep((here.detach(), there.detach()))
            self.stdout, out = keep(os.pipe())
            self.stderr, err = (-1, out) if merged else keep(os.pipe())
            os.set_inheritable(pmi, True)
            environment["PMI_FD"] = str(pmi)
            if stack_traces:
                self.stack_file = os.memfd_create("ompy-stacks")
                ours.callback(os.close, self.stack_file)
                os.set_inheritable(self.stack_file, True)
                environment["OMPY_STACKS_FD"] = str(self.stack_file)
            self.pid = os.posix_spawnp(
                program.command[0],
                program.command,
                environment,
                file_actions=[source, (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)],
                **placing,
                setsigdef=DEFAULTED,
                setsigmask=(),
            )
            if stack_traces:
                os.set_inheritable(self.stack_file, False)
            ours.pop_all()
        for descriptor in self.descriptors():
            os.set_blocking(descriptor, False)

    def descriptors(self) -> list[int]:
        return [descriptor for descriptor in (self.pmi, self.stdout, self.stderr) if descriptor >= 0]

    def signal(self, number: int) -> None:
        """To the rank and whatever it has started.  PermissionError where the rank has taken rights of another user's."""
        if self.status is None and not self.is_left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
                # A group has got it when one of its members may.
                os.kill(self.pid, 0)

    def ask_for_stacks(self) -> None:
        """Have a rank that can write its Python stacks do so; `stacks` reads them."""
        self.stacks_from = -1
        if self.status is None and self.stack_file >= 0 and self.session.initialised:
            with contextlib.suppress(PermissionError):
                size = os.fstat(self.stack_file).st_size
                os.kill(self.pid, STACKS_SIGNAL)
                self.stacks_from = size

    def stacks(self) -> bytes:
        """The Python stacks of a rank that was asked for them, or why there are none."""
        if self.stacks_from < 0:
            return b"    none: the rank has not initialised MPI, or has ended\n"
        start = size = self.stacks_from
        for _ in range(STACK_LOOKS):
            time.sleep(STACK_PAUSE)
            before, size = size, os.fstat(self.stack_file).st_size
            if size > start and size == before:
                break
        return os.pread(self.stack_file, size - start, start) or b"    none: the rank does not answer\n"

    def has_ended(self) -> bool:
        return self.status is not None or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> bool:
        """True when the rank has ended, now."""
        if self.status is not None or not self.has_ended():
            return False
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return True

    def leaves_any(self) -> bool:
        """Whether somebody is in its process group yet, when it has ended: a child of this process now (`orphans`)."""
        try:
            os.waitid(os.P_PGID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False  # and the number may be given to others
        return True

    def end_group(self) -> None:
        """End those."""
        if self.leaves_any():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Until it has ended."""
        if self.status is None and not self.is_left:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self.reap()
