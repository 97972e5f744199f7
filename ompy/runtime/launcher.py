"""Runs a job on this host: starts the ranks, serves them PMI, passes on their output, and ends them all when one fails.

One thread, one loop: signals, PMI, output and standard input are descriptors that `select` watches.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import time
from collections.abc import Callable

from ompy.runtime.binding import processor_sets
from ompy.runtime.job import Job, Program
from ompy.runtime.keeper import Keeper, sweep
from ompy.runtime.output import HIGH_WATER, Lines, Printer
from ompy.runtime.pmi_server import KeyValueSpace, Session
from ompy.runtime.process import Process
from ompy.runtime.signals import SignalQueue
from ompy.runtime.terminal import TerminalInput

# A rank that fails gives the others this long to say the same; then they get SIGTERM, and SIGKILL after one second more.
GRACE = 0.25
TERM_TO_KILL = 1.0
# After Ctrl-C: long enough for ranks to unwind and save what they must.  A second Ctrl-C is SIGKILL at once.
INTERRUPT_GRACE = 3.0
# A prompt without a newline shows after this silence.
PROMPT_DELAY = 0.1
# Output of processes that have left their rank's process group is awaited this long.
DRAIN = 0.25
TYPING_PAUSE = 0.1
# Exit codes, as timeout(1) and shells have them.
TIMED_OUT = 124
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BOARD_BYTES_A_RANK = 128

# Variables of other launchers, which would tell a rank that it belongs to their job.
FOREIGN = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "MPI_LOCAL", "HYDRA_", "OMPY_BOARD_FD", "OMPY_STACKS_FD")


def say(text: str) -> bytes:
    return "".join(f"ompyrun: {line}\n" for line in text.splitlines()).encode()


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
        self.printers = {1: Printer(1), 2: Printer(2)}
        self.selector = selectors.PollSelector()
        self.timers: dict[str, tuple[float, Callable[[], None]]] = {}
        self.exit_code: int | None = None
        self.interrupted = False
        self.held = False
        self.terminal = TerminalInput() if job.stdin is not None and os.isatty(0) else None
        # Zeroes are a board on which nobody has written yet (ompy.core.board); only a report reads it.
        self.board = os.memfd_create("ompy-board")
        os.ftruncate(self.board, BOARD_BYTES_A_RANK * job.size)
        os.set_inheritable(self.board, True)

    # -- start

    def run(self) -> int:
        """Start the job, see it to its end, and return its exit code."""
        self.keeper = Keeper(self.job.name)
        self.signals = SignalQueue()
        self.watch(self.signals.descriptor, self.on_signal)
        try:
            if self.start():
                while not self.is_over():
                    self.turn()
        finally:
            self.end_ranks(signal.SIGKILL)
            for process in self.processes:
                process.wait()
            self.drain()
            self.keeper.dismiss()
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
        if self.terminal is not None:
            os.close(self.terminal.reader)
            self.watch(0, self.on_typed)
        if self.job.timeout is not None:
            self.set_timer("timeout", self.job.timeout, self.on_timeout)
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
            self.printers[2].write(say(f"rank {rank}: {words}"))
        # A child starts with its parent's working directory and processors: set both, start it, set them back.
        try:
            if program.directory is not None:
                os.chdir(program.directory)
            if processors is not None:
                allowed = os.sched_getaffinity(0)
                os.sched_setaffinity(0, processors)
            try:
                process = Process(rank, program, own, self.input_of(rank), self.job.stack_traces)
            finally:
                if processors is not None:
                    os.sched_setaffinity(0, allowed)
                if program.directory is not None:
                    os.chdir(here)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            self.fail(code, f"can't start {program.command[0]!r}: {error.strerror}")
            return False
        self.keeper.tell(f"+{process.pid}")
        if self.job.verbose:
            self.printers[2].write(say(f"rank {rank} (process {process.pid}): {' '.join(program.command)}"))
        self.processes.append(process)
        process.session = Session(self.space, rank, number, lambda data: self.send(process, data))
        self.watch(process.pmi, lambda: self.on_pmi(process))
        for descriptor, target, name in ((process.stdout, 1, "stdout"), (process.stderr, 2, "stderr")):
            tag = f"[1,{rank}]<{name}>: " if self.job.tag_output else ""
            process.lines[descriptor] = Lines(self.printers[target], tag)
            self.watch(descriptor, lambda d=descriptor: self.on_output(process, d))  # type: ignore[misc]
        return True

    def input_of(self, rank: int) -> int | None:
        """The descriptor that a rank reads standard input from."""
        if rank != self.job.stdin:
            return None
        return 0 if self.terminal is None else self.terminal.reader

    # -- the loop

    def watch(self, descriptor: int, action: Callable[[], None], event: int = selectors.EVENT_READ) -> None:
        self.selector.register(descriptor, event, action)

    def unwatch(self, descriptor: int) -> None:
        if descriptor in self.selector.get_map():
            self.selector.unregister(descriptor)

    def set_timer(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        self.timers[name] = (time.monotonic() + seconds, action)

    def is_over(self) -> bool:
        return all(process.status is not None for process in self.processes)

    def turn(self, limit: float | None = None) -> None:
        """Wait for something to happen, and deal with it."""
        waits = [when - time.monotonic() for when, _ in self.timers.values()]
        if limit is not None:
            waits.append(limit)
        for key, _ in self.selector.select(max(0.0, min(waits)) if waits else None):
            key.data()
        now = time.monotonic()
        for name in [name for name, (when, _) in self.timers.items() if when <= now]:
            self.timers.pop(name)[1]()
        self.flush()

    def flush(self) -> None:
        """Write what can be written; while a reader is slow, let the ranks' pipes fill instead of this memory."""
        for descriptor, printer in self.printers.items():
            done = printer.flush()
            watched = descriptor in self.selector.get_map()
            if not done and not watched:
                self.watch(descriptor, lambda: None, selectors.EVENT_WRITE)
            elif done and watched:
                self.unwatch(descriptor)
            if printer.problem is not None and self.exit_code is None:
                self.on_lost_output(printer.problem)
        pending = max(printer.pending for printer in self.printers.values())
        if not self.held and pending > HIGH_WATER:
            self.held = True
            for process in self.processes:
                for descriptor in process.lines:
                    self.unwatch(descriptor)
        elif self.held and pending < HIGH_WATER // 4:
            self.held = False
            for process in self.processes:
                for descriptor in process.lines:
                    self.watch(descriptor, lambda p=process, d=descriptor: self.on_output(p, d))  # type: ignore[misc]

    def drain(self) -> None:
        """What the ranks wrote last; then everything out."""
        end = time.monotonic() + DRAIN
        while any(process.lines for process in self.processes) and time.monotonic() < end:
            self.turn(end - time.monotonic())
        for process in self.processes:
            for lines in process.lines.values():
                lines.close()
        while not all(printer.flush() for printer in self.printers.values()):
            self.turn()

    # -- what happens

    def on_output(self, process: Process, descriptor: int) -> None:
        if descriptor not in process.lines:
            return
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        lines = process.lines[descriptor]
        if data:
            lines.feed(data)
            if lines.printer.is_terminal and lines.partial:
                self.set_timer(f"prompt {descriptor}", PROMPT_DELAY, lines.pass_partial)
            return
        lines.close()
        del process.lines[descriptor]
        self.unwatch(descriptor)
        os.close(descriptor)

    def on_typed(self) -> None:
        assert self.terminal is not None
        if self.terminal.is_ours():
            self.terminal.read()
        if self.terminal.pending or self.terminal.ended or not self.terminal.is_ours():
            self.unwatch(0)
            self.set_timer("typed", TYPING_PAUSE, self.on_typing_pause)

    def on_typing_pause(self) -> None:
        """The rank did not read, or the launcher was in the background: the terminal has kept what was typed."""
        assert self.terminal is not None
        self.terminal.write()
        if self.terminal.pending or not self.terminal.is_ours():
            self.set_timer("typed", TYPING_PAUSE, self.on_typing_pause)
        elif not self.terminal.ended:
            self.watch(0, self.on_typed)

    def read_output(self, process: Process) -> None:
        """What a rank said last comes before what is said about it."""
        for descriptor in list(process.lines):
            self.on_output(process, descriptor)

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
            self.unwatch(process.pmi)
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
            self.read_output(process)
            code, message = session.aborted
            session.aborted = None
            words = f"{self.name(process)} aborted the job"
            self.fail(code & 0xFF or (1 if code else 0), f"{words}: {message}" if message else words)

    def on_signal(self) -> None:
        for number in self.signals.take():
            if number == signal.SIGCHLD:
                for process in self.processes:
                    if process.reap():
                        self.keeper.tell(f"-{process.pid}")
                        self.on_exit(process)
            elif number == signal.SIGINT:
                self.on_interrupt()
            elif number in (signal.SIGTERM, signal.SIGHUP):
                self.end_ranks(number)
                self.fail(128 + number, f"got {number.name}, ending the job")
            elif number == signal.SIGTSTP:
                self.end_ranks(signal.SIGTSTP)
                os.kill(os.getpid(), signal.SIGSTOP)
            elif number == signal.SIGQUIT:
                self.report()
            else:
                self.end_ranks(number)

    def on_interrupt(self) -> None:
        if self.interrupted:
            self.end_ranks(signal.SIGKILL)
            return
        self.interrupted = True
        if self.exit_code is None:
            self.exit_code = 128 + signal.SIGINT
        self.end_ranks(signal.SIGINT)
        self.set_timer("terminate", INTERRUPT_GRACE, self.terminate)

    def on_exit(self, process: Process) -> None:
        self.on_pmi(process)
        self.read_output(process)
        session = process.session
        others = f"{self.name(process)} "
        if self.job.verbose:
            self.printers[2].write(say(others + process.ending))
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

    # -- the end

    def name(self, process: Process) -> str:
        return f"rank {process.rank} ({self.host}, {process.pid})"

    def fail(self, code: int, message: str) -> None:
        """The job has failed; the first reason counts."""
        if self.exit_code is None:
            self.exit_code = code
            self.printers[2].write(say(message))
            self.set_timer("terminate", GRACE, self.terminate)

    def end_ranks(self, number: int) -> None:
        for process in self.processes:
            process.signal(number)

    def terminate(self) -> None:
        self.end_ranks(signal.SIGTERM)
        self.end_ranks(signal.SIGCONT)
        self.set_timer("kill", TERM_TO_KILL, lambda: self.end_ranks(signal.SIGKILL))

    def report(self) -> None:
        """Who is blocked in what, on standard error."""
        from ompy.core.board import Board
        from ompy.runtime.report import report

        self.printers[2].write(say(report(Board(self.board))))
        if self.job.stack_traces:
            for process in self.processes:
                self.printers[2].write(say(f"{self.name(process)}, Python stacks:\n") + process.stacks())
