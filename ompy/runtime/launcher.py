"""Runs a job on this host: starts the ranks, serves them PMI, passes on their output, and ends them all when one fails.

One thread, one loop: signals, PMI, output and standard input are all descriptors that it watches.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from functools import partial

from ompy.runtime.binding import processor_sets
from ompy.runtime.forwarding import Forwarder
from ompy.runtime.job import Job, Program
from ompy.runtime.keeper import Keeper, sweep
from ompy.runtime.loop import Loop
from ompy.runtime.pmi_server import KeyValueSpace, Session
from ompy.runtime.process import Process
from ompy.runtime.signals import SignalQueue

# A rank that fails gives the others this long to say the same; then they get SIGTERM, and SIGKILL after one second more.
GRACE = 0.25
TERM_TO_KILL = 1.0
# After Ctrl-C: long enough for ranks to unwind and save what they must.  A second Ctrl-C is SIGKILL at once.
INTERRUPT_GRACE = 3.0
# How often the job board is looked at, in seconds.
LOOK_EVERY = 5.0
# Exit codes, as timeout(1) and shells have them.
TIMED_OUT = 124
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BOARD_BYTES_A_RANK = 128

# Variables of other launchers, which would tell a rank that it belongs to their job.
FOREIGN = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "MPI_LOCAL", "HYDRA_", "OMPY_BOARD_FD", "OMPY_STACKS_FD")


class Launcher:
    """One job, from start to end.

    Parameters:
        job: what to run.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.host = os.uname().nodename
        self.space = KeyValueSpace(job.name, job.size)
        self.space.values["secret"] = os.urandom(32).hex()
        self.processes: list[Process] = []
        self.loop = Loop()
        self.streams = Forwarder(self.loop, job.stdin, job.tag_output)
        self.exit_code: int | None = None
        self.interrupted = False
        self.found: list[str] = []
        # Zeroes are a board on which nobody has written yet (ompy/core/board.pxd); only a report reads it.
        self.board = os.memfd_create("ompy-board")
        os.ftruncate(self.board, BOARD_BYTES_A_RANK * job.size)
        os.set_inheritable(self.board, True)

    # -- start

    def run(self) -> int:
        """Start the job, see it to its end, and return its exit code."""
        self.signals = SignalQueue()
        self.loop.watch(self.signals.descriptor, self.on_signal)
        keeper = None
        try:
            if self.start():
                keeper = self.keeper = Keeper(self.job.name, [process.pid for process in self.processes])
                while any(process.status is None for process in self.processes):
                    self.turn()
        finally:
            self.signal_ranks(signal.SIGKILL)
            for process in self.processes:
                process.wait()
            self.streams.drain(bool(self.exit_code))
            if keeper is not None:
                keeper.dismiss()
            sweep(self.job.name)
        return self.exit_code or 0

    def start(self) -> bool:
        """Start every rank; False, with a message, when a program can't be started."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment |= self.job.environment
        allowed = os.sched_getaffinity(0)
        sets = processor_sets(self.job.size, allowed, self.job.bind_to)
        here = os.getcwd()
        rank = 0
        for number, program in enumerate(self.job.programs):
            for _ in range(program.count):
                if not self.start_rank(rank, number, program, environment, sets[rank], here):
                    return False
                rank += 1
        self.streams.begin_input()
        self.loop.set_timer("look", LOOK_EVERY, self.look)
        if self.job.timeout is not None:
            self.loop.set_timer("timeout", self.job.timeout, self.on_timeout)
        return True

    def start_rank(
        self, rank: int, number: int, program: Program, environment: dict[str, str], processors: set[int] | None, here: str
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
            words = "all processors" if processors is None else "processors " + ",".join(map(str, sorted(processors)))
            self.streams.say(f"rank {rank}: {words}")
        # A child starts with its parent's working directory and processors: set both, start it, set them back.
        try:
            if program.directory is not None:
                os.chdir(program.directory)
            if processors is not None:
                allowed = os.sched_getaffinity(0)
                os.sched_setaffinity(0, processors)
            try:
                crowded = self.job.size > (os.cpu_count() or 1)
                process = Process(rank, program, own, self.streams.input_of(rank), self.job.stack_traces, crowded)
            finally:
                if processors is not None:
                    os.sched_setaffinity(0, allowed)
                if program.directory is not None:
                    os.chdir(here)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            self.fail(code, f"can't start {program.command[0]!r}: {error.strerror}")
            return False
        if self.job.verbose:
            self.streams.say(f"rank {rank} (process {process.pid}): {' '.join(program.command)}")
        self.processes.append(process)
        process.session = Session(self.space, rank, number, partial(self.send, process))
        self.loop.watch(process.pmi, partial(self.on_pmi, process))
        self.streams.attach(process)
        return True

    # -- what happens

    def turn(self) -> None:
        """Wait for something to happen, and deal with it."""
        self.loop.turn()
        problem = self.streams.flush()
        if problem is not None and self.exit_code is None:
            self.on_lost_output(problem)

    def send(self, process: Process, data: bytes) -> None:
        # A rank that has gone is no problem here: its exit status will say how.
        with contextlib.suppress(OSError):
            os.write(process.pmi, data)

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
            self.loop.unwatch(process.pmi)
            os.close(process.pmi)
            process.pmi = -1
            return
        session = process.session
        try:
            session.receive(data)
        except ValueError as error:
            self.fail(1, str(error))
        self.check_barrier()
        if session.aborted:
            # A rank that aborts because a peer has died is not the cause.
            self.reap()
            self.on_abort(process)

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
                self.signal_ranks(number)
                self.fail(128 + number, f"got {number.name}, ending the job")
            elif number == signal.SIGTSTP:
                # A session without a terminal ignores TSTP, and so does a group that nobody would continue.
                self.signal_ranks(signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
            elif number == signal.SIGQUIT:
                self.report()
            else:
                self.signal_ranks(number)

    def reap(self) -> None:
        """Deal with the ranks that have ended."""
        for process in self.processes:
            if process.reap():
                self.keeper.tell(str(process.pid))
                self.on_exit(process)

    def on_interrupt(self) -> None:
        if self.interrupted:
            self.signal_ranks(signal.SIGKILL)
            return
        self.interrupted = True
        if self.exit_code is None:
            self.exit_code = 128 + signal.SIGINT
        self.signal_ranks(signal.SIGINT)
        self.loop.set_timer("terminate", INTERRUPT_GRACE, self.terminate)

    def on_exit(self, process: Process) -> None:
        self.on_pmi(process)
        self.on_abort(process)
        self.streams.read_now(process)
        session = process.session
        others = f"{self.name(process)} "
        if self.job.verbose:
            self.streams.say(others + process.ending)
        if process.status != 0:
            self.fail(process.exit_code, others + process.ending)
        elif session.initialised and not session.finalised:
            self.fail(1, others + "exited with code 0 but without finalising MPI: its peers can't know that it has gone")
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
            self.exit_code = 128 + signal.SIGPIPE
            self.terminate()
        else:
            self.fail(1, f"output can't be written: {problem.strerror}")

    def on_timeout(self) -> None:
        if self.job.report_state:
            self.report()
        self.fail(TIMED_OUT, f"time is over after {self.job.timeout:g} s, ending the job")
        self.terminate()

    def look(self) -> None:
        """From time to time: do ranks wait for one another?  Twice the same answer is told, once; the job goes on."""
        from ompy.core.board import Board
        from ompy.runtime.report import stuck

        found = stuck(Board(self.board), LOOK_EVERY / 2)
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
        if self.exit_code is None:
            self.exit_code = code
            self.streams.say(message)
            if self.streams.no_library:
                self.streams.say("the program imports mpi4py, which has no MPI library here: with --mpi4py it receives ompy")
            self.loop.set_timer("terminate", GRACE, self.terminate)

    def signal_ranks(self, number: int) -> None:
        for process in self.processes:
            process.signal(number)

    def terminate(self) -> None:
        self.signal_ranks(signal.SIGTERM)
        self.signal_ranks(signal.SIGCONT)
        self.loop.set_timer("kill", TERM_TO_KILL, partial(self.signal_ranks, signal.SIGKILL))

    def report(self) -> None:
        """Who is blocked in what, on standard error."""
        from ompy.core.board import Board
        from ompy.runtime.report import report

        self.streams.say(report(Board(self.board)))
        if self.job.stack_traces:
            for process in self.processes:
                self.streams.say(f"{self.name(process)}, Python stacks:")
                self.streams.printers[2].write(process.stacks())
