"""The ranks of this host: started, served PMI, heard of when they end, and ended with all that they have started."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import partial

from ompy.runtime import descriptors
from ompy.runtime.job import Share
from ompy.runtime.keeper import JOB_VARIABLE, Keeper, sweep
from ompy.runtime.orphans import adopt_orphans
from ompy.runtime.pmi_server import KeyValueSpace, Session
from ompy.runtime.process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ompy.runtime.loop import Loop
    from ompy.runtime.streams import Streams

    class Overseer(Protocol):
        """Who is told what becomes of ranks; they are named by the number of their job and their rank there."""

        def on_started(self, job: int, rank: int, pid: int) -> None: ...

        def on_not_started(self, job: int, rank: int, code: int, message: str) -> None:
            """It, and the share's ranks behind it, can't be."""

        def on_abort(self, job: int, rank: int, code: int, message: str) -> None: ...

        def on_misuse(self, job: int, rank: int, message: str) -> None:
            """It has said what is not PMI."""

        def on_barrier(self, job: int) -> None:
            """Somebody may have come to the barrier."""

        def on_refused(self, job: int, rank: int, is_left: bool) -> None:
            """It may not be signalled, and is waited for no more where it may not be killed."""

        def on_exit(self, job: int, rank: int, status: int, initialised: bool, finalised: bool) -> None: ...


# What a rank leaves behind has so long to end by itself, as helpers do that clean up after it (multiprocessing's tracker of
# resources, a nanny that tells of its end); then it gets SIGKILL, and the system so long to carry that out.
ORPHANS_GRACE = 0.5
ORPHANS_END = 2.0
ORPHANS_PAUSE = 0.001
# Before another process is asked for that ends what this one would leave.
KEEPER_PAUSE = 1.0
# Bytes of answers that may wait for a rank to read.
MOST_BEHIND = 64 * 1024
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BOARD_BYTES_A_RANK = 128

# Variables that tell a rank which job it belongs to: other launchers' would say theirs, and ompy's that of a rank that starts a
# launcher.
FOREIGN = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "MPI_LOCAL", "HYDRA_")
OWN = ("OMPY_BOARD_FD", "OMPY_STACKS_FD", "OMPY_PROCESSORS")


def seal(descriptor: int) -> None:
    """Nobody can change the memory file's size any more: who maps it will not find it gone."""
    from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl

    fcntl(descriptor, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)


def make_board(ranks: int) -> int:
    """Memory for a job's board, of which the ranks here write theirs.

    Zeroes are a board on which nobody has written yet (ompy/core/board.pxd).
    """
    board = os.memfd_create("ompy-board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(board, BOARD_BYTES_A_RANK * ranks)
    seal(board)
    os.set_inheritable(board, True)
    return board


class LocalRanks:
    """What one launcher, or the proxy of one, has started on this host.

    Parameters:
        loop: watches the ranks' connections.
        streams: takes what they write, and gives them their input.
        overseer: is told.
        name: of the job that a person started, by which whatever the ranks start is known.

    Attributes:
        others: children of this process that are no ranks, and who is told their wait status.
    """

    def __init__(self, loop: Loop, streams: Streams, overseer: Overseer, name: str) -> None:
        self.loop = loop
        self.streams = streams
        self.overseer = overseer
        self.name = name
        self.processes: list[Process] = []
        self.by_pid: dict[int, Process] = {}
        self.boards: dict[int, int] = {}
        self.processors = len(os.sched_getaffinity(0))
        self.others: dict[int, Callable[[int], None]] = {}
        adopt_orphans()
        self.keeper = Keeper(name, [], [])

    # -- start

    def start(self, share: Share, space: KeyValueSpace, environment: dict[str, str]) -> bool:
        """Start ranks of a job; False when one can't be.

        Parameters:
            share: which, and what they run.
            space: the job's.
            environment: what they get beside what the share says.
        """
        if not share.tasks:
            return True
        base = {name: value for name, value in environment.items() if not name.startswith(FOREIGN + OWN)} | share.environment
        base[JOB_VARIABLE] = self.name
        # By descriptor, because a working directory may have no name any more.
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return all(self.start_rank(share, index, space, base, here) for index in range(len(share.tasks)))
        finally:
            os.close(here)

    def make_room(self, share: Share) -> None:
        """A board for a job, with room for all of its ranks, before they are started.  OSError when there is none."""
        self.boards[share.job] = make_board(share.size)
        descriptors.make_room(descriptors.A_RANK * len(share.tasks))

    def start_rank(self, share: Share, index: int, space: KeyValueSpace, base: dict[str, str], here: int) -> bool:
        task = share.tasks[index]
        program = share.programs[task.program]
        own = base | program.environment
        own |= {
            "PMI_RANK": str(task.rank),
            "PMI_SIZE": str(share.size),
            "MPI_LOCALRANKID": str(index),
            "MPI_LOCALNRANKS": str(len(share.tasks)),
            "OMPY_BOARD_FD": str(self.boards[share.job]),
            "OMPY_PROCESSORS": str(self.processors),
        }
        if share.job:
            own["PMI_SPAWNED"] = "1"
        # A child starts with its parent's working directory and processors: set both, start it, set them back.
        try:
            if program.directory is not None:
                os.chdir(program.directory)
            if task.processors is not None:
                allowed = os.sched_getaffinity(0)
                os.sched_setaffinity(0, task.processors)
            try:
                crowded = len(share.tasks) > self.processors
                stdin = self.streams.input_of(task.rank) if share.job == 0 else None
                process = Process(share.job, task.rank, program, own, stdin, share.stack_traces, crowded, share.merged)
            finally:
                if task.processors is not None:
                    os.sched_setaffinity(0, allowed)
                if program.directory is not None:
                    os.fchdir(here)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            what = f"can't start {program.command[0]!r}"
            if program.directory is not None and error.filename == program.directory:
                what += f" in {program.directory}"
            self.overseer.on_not_started(share.job, task.rank, code, f"{what}: {error.strerror}")
            return False
        self.keeper.started(process.pid)
        self.by_pid[process.pid] = process
        self.processes.append(process)
        send, tell = partial(self.send, process), partial(self.tell, process)
        process.session = Session(space, task.rank, task.program, send, tell)
        self.loop.watch(process.pmi, partial(self.on_pmi, process))
        self.streams.attach(process)
        self.overseer.on_started(share.job, task.rank, process.pid)
        return True

    # -- what happens

    def send(self, process: Process, data: bytes) -> None:
        """An answer; when more and more of them find no room they go to a rank that asks and never reads."""
        if process.untold:
            process.behind += len(data)
        self.tell(process, data)
        if process.behind > MOST_BEHIND:
            raise ValueError(f"rank {process.rank} does not read what its PMI commands are answered")

    def tell(self, process: Process, data: bytes) -> None:
        """An answer, or what a rank has not asked for, and reads later where it computes."""
        is_waiting = bool(process.untold)
        process.untold += data
        if not is_waiting:
            self.pass_on(process)

    def pass_on(self, process: Process) -> None:
        """Write what a rank is yet to be told, as far as there is room."""
        try:
            while process.untold:
                del process.untold[: os.write(process.pmi, process.untold)]
        except BlockingIOError:
            if process.writer < 0:
                # A loop watches a descriptor for one thing.
                process.writer = os.dup(process.pmi)
                self.loop.watch_writable(process.writer, partial(self.pass_on, process))
        except OSError:
            self.end_telling(process)  # it has gone: its exit status will say how
        else:
            self.end_telling(process)

    def end_telling(self, process: Process) -> None:
        """Nothing is left to tell, or nobody."""
        process.untold.clear()
        process.behind = 0
        if process.writer >= 0:
            self.loop.unwatch(process.writer)
            os.close(process.writer)
            process.writer = -1

    def on_pmi(self, process: Process) -> None:
        if process.pmi < 0:
            return
        try:
            data = os.read(process.pmi, 65536)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.hang_up(process)
            return
        try:
            process.session.receive(data)
        except ValueError as error:
            self.overseer.on_misuse(process.job, process.rank, str(error))
            self.loop.unwatch(process.pmi)
        self.overseer.on_barrier(process.job)
        if process.session.aborted:
            # A rank that aborts because a peer has died is not the cause.
            self.reap()
            self.pass_abort_on(process)

    def hang_up(self, process: Process) -> None:
        self.loop.unwatch(process.pmi)
        os.close(process.pmi)
        process.pmi = -1
        self.end_telling(process)

    def pass_abort_on(self, process: Process) -> None:
        if process.session.aborted:
            self.streams.read_now(process)
            code, message = process.session.aborted
            process.session.aborted = None
            self.overseer.on_abort(process.job, process.rank, code, message)

    def on_child(self) -> None:
        """A child has ended: to be dealt with behind what ranks have said, one of which may want it no more."""
        self.loop.set_timer("reap", 0.0, self.reap)

    def reap(self) -> None:
        """Deal with the ranks that have ended, and with whatever else has become a child of this process."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                process = self.by_pid.get(ended.si_pid)
                if process is not None and process.reap():
                    self.watch_group(process)
                    self.on_exit(process)
                    continue
                _, status = os.waitpid(ended.si_pid, 0)
                if ended.si_pid in self.others:
                    self.keeper.agent(ended.si_pid)
                    self.others.pop(ended.si_pid)(status)
                if ended.si_pid == self.keeper.pid:
                    self.keeper.close()
                    self.replace_keeper()

    def replace_keeper(self) -> None:
        """Somebody has killed it; where the system has no room for another one, that comes later."""
        ranks = [rank.pid for rank in self.processes if rank.status is None]
        try:
            self.keeper = Keeper(self.name, ranks, list(self.others))
        except OSError:
            self.loop.set_timer("keeper", KEEPER_PAUSE, self.replace_keeper)

    def watch_group(self, process: Process) -> None:
        """A rank has ended: what it has left in its process group is to follow."""
        if process.leaves_any():
            self.loop.set_timer(f"group {process.pid}", ORPHANS_GRACE, partial(self.end_group, process))
        else:
            self.keeper.reaped(process.pid)

    def end_group(self, process: Process) -> None:
        process.end_group()
        self.keeper.reaped(process.pid)

    def on_exit(self, process: Process) -> None:
        self.on_pmi(process)
        self.pass_abort_on(process)
        self.streams.read_now(process)
        session = process.session
        status = process.status or 0
        if process.is_left:
            return
        self.overseer.on_exit(process.job, process.rank, status, session.initialised, session.finalised)
        self.overseer.on_barrier(process.job)

    # -- what is asked

    def watch_agent(self, pid: int, then: Callable[[int], None]) -> None:
        """A child that is no rank, leader of a process group: have `then` called with its wait status."""
        self.others[pid] = then
        self.keeper.agent(pid)

    def signal(self, number: int, job: int | None = None) -> None:
        """To the ranks of one job, or to all."""
        for process in self.processes:
            if job in (process.job, None):
                try:
                    process.signal(number)
                except PermissionError:
                    if not process.has_ended():
                        process.is_left = number == signal.SIGKILL
                        self.overseer.on_refused(process.job, process.rank, process.is_left)

    def close_job(self, job: int) -> None:
        """All ranks of a spawned job have ended: nothing is kept of them."""
        for process in [process for process in self.processes if process.job == job]:
            if process.pmi >= 0:
                self.hang_up(process)
            if process.stack_file >= 0:
                os.close(process.stack_file)
            self.processes.remove(process)
            del self.by_pid[process.pid]
        board = self.boards.pop(job, None)
        if board is not None:
            os.close(board)

    def stacks(self) -> list[tuple[int, int, bytes]]:
        """Job, rank and Python stack of every rank."""
        for process in self.processes:
            process.ask_for_stacks()
        return [(process.job, process.rank, process.stacks()) for process in self.processes]

    # -- the end

    def end(self) -> None:
        """Whatever runs yet ends at once; nothing is left but output."""
        self.signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.end_orphans()

    def close(self) -> None:
        """After the output."""
        self.keeper.dismiss()
        sweep(self.name)

    def end_orphans(self) -> None:
        """What the ranks have started and left, also in sessions of their own, ends with the job."""
        children = f"/proc/self/task/{os.getpid()}/children"
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < ORPHANS_GRACE + ORPHANS_END:
            try:
                with open(children) as stream:
                    orphans = [int(word) for word in stream.read().split() if int(word) != self.keeper.pid]
            except OSError:
                return  # a system that does not tell
            if not orphans:
                return
            for pid in orphans:
                # One that may not be killed, or is inside the kernel, does not hold up the end.
                with contextlib.suppress(OSError):
                    if passed > ORPHANS_GRACE:
                        os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(ORPHANS_PAUSE)
