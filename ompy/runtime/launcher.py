"""Runs a job on this host: starts the ranks, serves them PMI, passes on their output, and ends them all when one fails.

One thread, one loop: signals, PMI, output and standard input are all descriptors that it watches.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from functools import partial

from ompy.runtime.forwarding import Forwarder
from ompy.runtime.job import Job, Program
from ompy.runtime.keeper import JOB_VARIABLE, Keeper, sweep
from ompy.runtime.loop import Loop
from ompy.runtime.orphans import adopt_orphans
from ompy.runtime.pmi_server import KeyValueSpace, Session
from ompy.runtime.process import Process
from ompy.runtime.signals import SignalQueue, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.mapping import Place

# A rank that fails gives the others this long to say the same; then they get SIGTERM, once, and SIGKILL after the job's grace.
# So do those that don't end at Ctrl-C; a second Ctrl-C is SIGKILL at once.
SAME_FAILURE = 0.25
# Who is still there so long after the signal is named.
REMIND_AFTER = 3.0
# What ranks leave behind in sessions of their own gets SIGKILL, and the system so long to carry it out.
ORPHANS_END = 2.0
ORPHANS_PAUSE = 0.001
# How often the job board is looked at, in seconds.
LOOK_EVERY = 5.0
# A rank that has used more than this share of a processor since the last look does something.
WORKING = 0.02
# Exit codes, as timeout(1) and shells have them.
TIMED_OUT = 124
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BOARD_BYTES_A_RANK = 128

# Variables of other launchers, which would tell a rank that it belongs to their job.
FOREIGN = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "MPI_LOCAL", "HYDRA_", "OMPY_BOARD_FD", "OMPY_STACKS_FD")


def seal(descriptor: int) -> None:
    """Nobody can change the memory file's size any more: who maps it will not find it gone."""
    from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl

    fcntl(descriptor, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)


class Launcher:
    """One job, from start to end.

    Parameters:
        job: what to run.

    Errors: OSError when the system has no room for the job.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.host = os.uname().nodename
        self.space = KeyValueSpace(job.name, job.size)
        self.space.values["secret"] = os.urandom(32).hex()
        self.processes: list[Process] = []
        self.by_pid: dict[int, Process] = {}
        self.loop = Loop()
        self.streams = Forwarder(self.loop, job)
        self.exit_code: int | None = None
        self.told_to_end: int | None = None
        self.found: list[str] = []
        self.used: dict[int, float] = {}
        # Zeroes are a board on which nobody has written yet (ompy/core/board.pxd); only a report reads it.
        self.board = os.memfd_create("ompy-board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.board, BOARD_BYTES_A_RANK * job.size)
        seal(self.board)
        os.set_inheritable(self.board, True)

    # -- start

    def run(self) -> int:
        """Start the job, see it to its end, and return its exit code."""
        self.signals = SignalQueue()
        self.loop.watch(self.signals.descriptor, self.on_signal)
        adopt_orphans()
        self.keeper = Keeper(self.job.name, [])
        try:
            if self.start():
                while any(process.status is None for process in self.processes):
                    self.turn()
        finally:
            self.signal_ranks(signal.SIGKILL)
            for process in self.processes:
                process.wait()
            self.end_orphans()
            self.streams.drain(bool(self.exit_code))
            self.keeper.dismiss()
            sweep(self.job.name)
        return self.exit_code or 0

    def start(self) -> bool:
        """Start every rank; False, with a message, when a program can't be started."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment |= self.job.environment
        environment[JOB_VARIABLE] = self.job.name
        # By descriptor, because a working directory may have no name any more.
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if self.job.display_map:
            self.streams.say(self.map())
        rank = 0
        for number, program in enumerate(self.job.programs):
            for _ in range(program.count):
                if not self.start_rank(rank, number, program, environment, self.job.places[rank], here):
                    return False
                rank += 1
        os.close(here)
        self.streams.begin_input()
        self.loop.set_timer("look", LOOK_EVERY, self.look)
        if self.job.timeout is not None:
            self.loop.set_timer("timeout", self.job.timeout, self.on_timeout)
        return True

    def start_rank(
        self, rank: int, number: int, program: Program, environment: dict[str, str], place: Place, here: int
    ) -> bool:
        own = environment | program.environment
        own |= {
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(self.job.size),
            "MPI_LOCALRANKID": str(rank),
            "MPI_LOCALNRANKS": str(self.job.size),
            "OMPY_BOARD_FD": str(self.board),
        }
        if self.job.report_bindings:
            self.streams.say(f"rank {rank}: {place.words}")
        # A child starts with its parent's working directory and processors: set both, start it, set them back.
        try:
            if program.directory is not None:
                os.chdir(program.directory)
            if place.processors is not None:
                allowed = os.sched_getaffinity(0)
                os.sched_setaffinity(0, place.processors)
            try:
                crowded = self.job.size > (os.cpu_count() or 1)
                stdin, merged = self.streams.input_of(rank), self.job.output.merged
                process = Process(rank, program, own, stdin, self.job.stack_traces, crowded, merged)
            finally:
                if place.processors is not None:
                    os.sched_setaffinity(0, allowed)
                if program.directory is not None:
                    os.fchdir(here)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            self.fail(code, f"can't start {program.command[0]!r}: {error.strerror}")
            return False
        self.keeper.started(process.pid)
        self.by_pid[process.pid] = process
        if self.job.verbose:
            self.streams.say(f"rank {rank} (process {process.pid}): {' '.join(program.command)}")
        self.processes.append(process)
        process.session = Session(self.space, rank, number, partial(self.send, process))
        self.loop.watch(process.pmi, partial(self.on_pmi, process))
        try:
            self.streams.attach(process)
        except OSError as error:
            self.fail(1, f"{error.filename}, for the output of rank {rank}, can't be written: {error.strerror}")
            return False
        return True

    def map(self) -> str:
        """Who will run where, for people."""
        lines = [f"job {self.job.name}: {self.job.size} ranks on {len({place.host for place in self.job.places})} host"]
        rank = 0
        for program in self.job.programs:
            for _ in range(program.count):
                place = self.job.places[rank]
                lines.append(f"rank {rank}: host {place.host}, {place.words}: {' '.join(program.command)}")
                rank += 1
        return "\n".join(lines)

    # -- what happens

    def turn(self) -> None:
        """Wait for something to happen, and deal with it."""
        self.loop.turn()
        problem = self.streams.flush()
        if problem is not None and self.told_to_end is None:
            self.on_lost_output(problem)

    def send(self, process: Process, data: bytes) -> None:
        """An answer; one that finds no room goes to a rank that asks and never reads."""
        try:
            if os.write(process.pmi, data) == len(data):
                return
        except BlockingIOError:
            pass
        except OSError:
            return  # it has gone: its exit status will say how
        raise ValueError(f"rank {process.rank} does not read what its PMI commands are answered")

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
        session = process.session
        try:
            session.receive(data)
        except ValueError as error:
            self.fail(1, str(error))
            self.loop.unwatch(process.pmi)
        self.check_barrier()
        if session.aborted:
            # A rank that aborts because a peer has died is not the cause.
            self.reap()
            self.on_abort(process)

    def hang_up(self, process: Process) -> None:
        self.loop.unwatch(process.pmi)
        os.close(process.pmi)
        process.pmi = -1

    def on_abort(self, process: Process) -> None:
        if process.session.aborted:
            self.streams.read_now(process)
            code, message = process.session.aborted
            process.session.aborted = None
            words = f"{self.name(process)} aborted the job (MPI_Abort, code {code})"
            self.fail(code & 0xFF or (1 if code else 0), f"{words}: {message}" if message else words)

    def on_signal(self) -> None:
        for number in self.signals.take():
            if number == signal.SIGCHLD:
                self.reap()
            elif number == signal.SIGINT:
                self.on_interrupt()
            elif number in (signal.SIGTERM, signal.SIGHUP):
                self.fail(128 + number, f"got {number.name}, ending the job")
                self.end_ranks(number)
            elif number == signal.SIGTSTP:
                # A session without a terminal ignores TSTP, and so does a group that nobody would continue.
                self.signal_ranks(signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
            elif number == signal.SIGQUIT:
                self.report()
            else:
                self.signal_ranks(number)

    def reap(self) -> None:
        """Deal with the ranks that have ended, and with whatever else has become a child of this process."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                process = self.by_pid.get(ended.si_pid)
                if process is not None and process.reap():
                    self.keeper.reaped(process.pid)
                    self.on_exit(process)
                    continue
                os.waitpid(ended.si_pid, 0)
                if ended.si_pid == self.keeper.pid:
                    os.close(self.keeper.writer)
                    self.keeper = Keeper(self.job.name, [rank.pid for rank in self.processes if rank.status is None])

    def end_orphans(self) -> None:
        """What the ranks have started and left, also in sessions of their own, ends with the job."""
        children = f"/proc/self/task/{os.getpid()}/children"
        end = time.monotonic() + ORPHANS_END
        while time.monotonic() < end:
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
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(ORPHANS_PAUSE)

    def on_interrupt(self) -> None:
        if self.told_to_end is not None:
            self.signal_ranks(signal.SIGKILL)
            return
        self.exit_code = self.exit_code or 128 + signal.SIGINT
        self.end_ranks(signal.SIGINT)

    def on_exit(self, process: Process) -> None:
        self.on_pmi(process)
        self.on_abort(process)
        self.streams.read_now(process)
        session = process.session
        others = f"{self.name(process)} "
        if self.job.verbose:
            self.streams.say(others + process.ending)
        tell = self.note if self.job.goes_on else self.fail
        if process.status != 0:
            tell(process.exit_code, others + process.ending)
        elif session.initialised and not session.finalised:
            tell(1, others + "exited with code 0 but without finalising MPI: its peers can't know that it has gone")
        self.check_barrier()

    def check_barrier(self) -> None:
        """A rank that has gone without MPI (`sh -c true`) will never come to where the others wait."""
        if not self.space.waiting:
            return
        for process in self.processes:
            if process.status == 0 and not process.session.initialised:
                waiting = ", ".join(str(session.rank) for session in self.space.waiting)
                self.fail(1, f"{self.name(process)} exited without initialising MPI, and others wait for it (rank {waiting})")

    def on_lost_output(self, problem: OSError) -> None:
        """Nobody reads any more: the ranks end as a program in a shell's pipeline does, without a word."""
        if problem.errno == errno.EPIPE:
            self.exit_code = self.exit_code or 128 + signal.SIGPIPE
            self.end_ranks(signal.SIGTERM)
        else:
            self.fail(1, f"output can't be written: {problem.strerror}")

    def on_timeout(self) -> None:
        if self.job.report_state:
            self.report()
        self.fail(TIMED_OUT, f"time is over after {self.job.timeout:g} s, ending the job")
        self.end_ranks(signal.SIGTERM)

    def look(self) -> None:
        """From time to time: do ranks wait for one another?  Twice the same answer is told, once; the job goes on."""
        from ompy.core.board import Board
        from ompy.runtime.report import processor_time, stuck

        board = Board(self.board)
        used = processor_time(board)
        working = [rank for rank, time in used.items() if time - self.used.get(rank, time) > WORKING * LOOK_EVERY]
        self.used = used
        found = stuck(board, LOOK_EVERY / 2, working)
        if found and found == self.found:
            self.streams.say("this job seems to hang:\n" + "\n".join(found))
            return
        self.found = found
        self.loop.set_timer("look", LOOK_EVERY, self.look)

    # -- the end

    def name(self, process: Process) -> str:
        return f"rank {process.rank} ({self.host}, {process.pid})"

    def fail(self, code: int, message: str) -> None:
        """The job has failed; the first reason counts."""
        if self.exit_code is None or (self.job.goes_on and self.told_to_end is None):
            self.note(code, message)
            self.loop.set_timer("end", SAME_FAILURE, self.end_failed)

    def end_failed(self) -> None:
        """The failure has ended the job for all: the accesses to files that this broke off are told."""
        from ompy.core.board import Board
        from ompy.runtime.report import waits_on_files

        for line in waits_on_files(Board(self.board)):
            self.streams.say(line)
        self.end_ranks(signal.SIGTERM)

    def note(self, code: int, message: str) -> None:
        """Something has failed, and the first exit code counts."""
        self.exit_code = self.exit_code or code
        self.streams.say(message)
        if self.streams.no_library:
            self.streams.say("the program imports mpi4py, which has no MPI library here: with --mpi4py it receives ompy")

    def signal_ranks(self, number: int) -> None:
        for process in self.processes:
            process.signal(number)

    def end_ranks(self, number: signal.Signals) -> None:
        """Tell the ranks to end, once: a handler that saves its work is not to be disturbed.  SIGKILL comes after the grace."""
        if self.told_to_end is not None:
            return
        self.told_to_end = number
        self.signal_ranks(number)
        self.signal_ranks(signal.SIGCONT)
        self.loop.set_timer("kill", self.job.grace, partial(self.signal_ranks, signal.SIGKILL))
        if self.job.grace > REMIND_AFTER:
            self.loop.set_timer("remind", REMIND_AFTER, self.remind)

    def remind(self) -> None:
        """Say whom the end waits for."""
        left = ", ".join(str(process.rank) for process in self.processes if process.status is None)
        seconds = self.job.grace - REMIND_AFTER
        self.streams.say(
            f"rank {left} still runs {REMIND_AFTER:g} s after {name_of(self.told_to_end or 0)}: SIGKILL in {seconds:g} s "
            f"(--mca ompyrun_grace sets the whole time), or at once by Ctrl-C"
        )

    def report(self) -> None:
        """Who is blocked in what, on standard error."""
        from ompy.core.board import Board
        from ompy.runtime.report import report

        self.streams.say(report(Board(self.board)))
        if self.job.stack_traces:
            for process in self.processes:
                self.streams.say(f"{self.name(process)}, Python stacks:")
                self.streams.printers[2].write(process.stacks())
