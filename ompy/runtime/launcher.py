"""Runs a job: has its ranks started, here and by proxies on other hosts, passes on their output, ends them all when one fails.

One thread, one loop: signals, PMI, output, standard input and proxies are all descriptors that it watches.
"""

from __future__ import annotations

import errno
import os
import signal
from functools import partial

from ompy.runtime.forwarding import Forwarder
from ompy.runtime.job import Job, Share
from ompy.runtime.local_ranks import LocalRanks
from ompy.runtime.loop import Loop
from ompy.runtime.pmi_server import KeyValueSpace
from ompy.runtime.rank import Rank
from ompy.runtime.signals import SignalQueue, name_of
from ompy.runtime.spawned import SpawnedJobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.runtime.hosts import Hosts
    from ompy.runtime.pmi_server import Session

# A rank that fails gives the others this long to say the same; then they get SIGTERM, once, and SIGKILL after the job's grace.
# So do those that don't end at Ctrl-C; a second Ctrl-C is SIGKILL at once.
SAME_FAILURE = 0.25
# Who is still there so long after the signal is named.
REMIND_AFTER = 3.0
# How often the job board is looked at, in seconds.
LOOK_EVERY = 5.0
# A rank that has used more than this share of a processor since the last look does something.
WORKING = 0.02
# Exit code, as timeout(1) has it.
TIMED_OUT = 124


class JobSpace(KeyValueSpace):
    """What all ranks of a job have published; values of those on other hosts stay there until somebody asks for them."""

    def __init__(self, name: str, job: int, size: int, launcher: Launcher) -> None:
        super().__init__(name, size)
        self.job = job
        self.launcher = launcher
        self.services = launcher.services

    def fetch(self, key: str) -> bool:
        owner = key.partition(".")[0]
        return owner.isdecimal() and self.launcher.ask_owner(self.job, int(owner), key)

    @property
    def universe_size(self) -> int:
        return max(self.size, self.launcher.slots)

    def spawn(self, session: Session, text: str) -> None:
        self.launcher.spawned.start(session, text)

    def cancel_spawn(self, session: Session, line: str) -> None:
        self.launcher.spawned.cancel(line.partition("port=")[2])

    def release(self) -> None:
        self.launcher.spawned.begun(self.job)
        super().release()

    def connect(self, rank: int, jobs: set[str]) -> None:
        self.launcher.spawned.connect(self.job, rank, jobs)


class Launcher:
    """One job, from start to end.

    Parameters:
        job: what to run.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.spaces: dict[int, KeyValueSpace] = {}
        self.services: dict[str, str] = {}
        self.spawned = SpawnedJobs(self)
        self.slots = len(os.sched_getaffinity(0))
        self.ranks: dict[tuple[int, int], Rank] = {}
        self.loop = Loop()
        self.streams = Forwarder(self.loop, job)
        self.exit_code: int | None = None
        self.has_failed = False
        self.broken_off: dict[tuple[str, str], set[int]] = {}
        self.told_to_end: int | None = None
        self.found: list[str] = []
        self.used: dict[int, float] = {}
        self.secret = os.urandom(32)
        self.hosts: Hosts | None = None

    # -- start

    def run(self) -> int:
        """Start the job, see it to its end, and return its exit code."""
        self.signals = SignalQueue()
        self.loop.watch(self.signals.descriptor, self.on_signal)
        try:
            self.local = LocalRanks(self.loop, self.streams, self, self.job.name)
        except OSError as error:
            self.streams.say(str(error))
            self.streams.drain(lambda: True)
            return 1
        try:
            if self.start():
                while self.is_running():
                    self.turn()
        finally:
            if self.hosts is not None:
                self.hosts.end(lambda: bool(self.exit_code))
                self.hosts = None  # a time limit or a signal while output is waited for asks nobody there
            self.local.end()
            self.streams.drain(lambda: bool(self.exit_code))
            self.local.close()
        return self.exit_code or 0

    def is_running(self) -> bool:
        return any(rank.status is None for rank in self.ranks.values())

    def start(self) -> bool:
        """Start every rank; False, with a message, when a program can't be started."""
        if self.job.timeout is not None:
            self.loop.set_timer("timeout", self.job.timeout, self.on_timeout)
        if self.job.remote_hosts and not self.start_proxies():
            return False
        if self.job.display_map:
            self.streams.say(self.map())
        if not self.start_job(self.job):
            return False
        self.streams.begin_input()
        self.loop.set_timer("look", LOOK_EVERY, self.look)
        return True

    def start_proxies(self) -> bool:
        """A proxy on every other host; False, with a message, when there can't be."""
        from ompy.mca import selection
        from ompy.mca.errors import ComponentError
        from ompy.runtime.hosts import Hosts

        try:
            (plm,) = selection.select("plm")
        except (ComponentError, ValueError) as error:
            self.fail(1, str(error))
            return False
        job = self.job
        self.hosts = Hosts(self, job.remote_hosts, job.silence, job.start_limit, job.fan_out)
        if not self.hosts.start(plm):
            return False
        try:
            self.job.bind({name: host.topology for name, host in self.hosts.remote.items() if host.topology is not None})
        except ValueError as error:
            self.fail(1, str(error))
            return False
        return True

    def start_job(self, job: Job) -> bool:
        """Start the ranks of a job, the person's or one that its ranks have asked for; False, with a message, if that fails."""
        space = self.spaces[job.number] = JobSpace(job.name, job.number, job.size, self)
        space.values |= {"secret": self.secret.hex(), **job.values}
        shares = job.shares()
        here = shares.pop(self.job.here, None) or Share(job, [])
        try:
            self.local.make_room(here)
        except OSError as error:
            return self.leave_out(job.number, 1, f"the system has no room for a job of {job.size} ranks: {error.strerror}")
        for number, (place, program) in enumerate(zip(job.places, job.program_of_ranks(), strict=True)):
            self.ranks[job.number, number] = Rank(job.number, number, place.host, program.command)
            try:
                self.streams.expect(job.number, number, place.host)
            except OSError as error:
                reason = f"{error.filename}, for the output of rank {number}, can't be written: {error.strerror}"
                return self.leave_out(job.number, 1, reason)
            if job.report_bindings:
                self.streams.say(f"rank {number}: {place.words}")
        for name, share in shares.items():
            self.start_share(name, share, job)
        return self.local.start(here, space, dict(os.environ))

    def start_share(self, name: str, share: Share, job: Job) -> None:
        """On another host."""
        assert self.hosts is not None
        host = self.hosts.remote[name]
        host.start(share, job.name, job.stdin)
        if job.number == 0 and (job.stdin == job.EVERY_RANK or any(task.rank == job.stdin for task in share.tasks)):
            descriptor = self.streams.input_of(0 if job.stdin is None else job.stdin)
            if descriptor is not None:
                host.give_input(descriptor)

    def map(self) -> str:
        """Who will run where, for people."""
        hosts = len({place.host for place in self.job.places})
        lines = [f"job {self.job.name}: {self.job.size} ranks on {hosts} host{'s' if hosts > 1 else ''}"]
        for rank, (place, program) in enumerate(zip(self.job.places, self.job.program_of_ranks(), strict=True)):
            lines.append(f"rank {rank}: host {place.host}, {place.words}: {' '.join(program.command)}")
        return "\n".join(lines)

    def reaches(self, host: str) -> bool:
        """Whether it is this host, or another one that is not lost."""
        return self.hosts is None or host not in self.hosts.remote or self.hosts.remote[host].is_open

    def ask_owner(self, job: int, rank: int, key: str) -> bool:
        """Ask the host of a rank for a value of its; False where that is no other host."""
        it = self.ranks.get((job, rank))
        host = None if it is None or self.hosts is None else self.hosts.remote.get(it.host)
        if host is None or not host.is_open:
            return False
        host.send("get", job=job, key=key)
        return True

    # -- what ranks do (`local_ranks.Overseer`)

    def on_started(self, job: int, rank: int, pid: int) -> None:
        it = self.ranks[job, rank]
        it.pid = pid
        if self.job.verbose:
            self.streams.say(f"{it.name}: {' '.join(it.command)}")

    def on_not_started(self, job: int, rank: int, code: int, message: str) -> None:
        self.leave_out(job, code, message, self.ranks[job, rank].host)

    def leave_out(self, job: int, code: int, message: str, host: str = "") -> bool:
        """Ranks that were not started, of one host or of all, can't be: always False."""
        if not self.spawned.give_up(job, message):
            self.fail(code, message)
        for it in self.ranks.values():
            if it.job == job and host in (it.host, "") and not it.pid:
                it.status = code
        self.spawned.look_if_over(job)
        return False

    def on_abort(self, job: int, rank: int, code: int, message: str) -> None:
        words = f"{self.ranks[job, rank].name} aborted the job (MPI_Abort, code {code})"
        self.break_off(self.ranks[job, rank], code & 0xFF or (1 if code else 0), f"{words}: {message}" if message else words)

    def on_misuse(self, job: int, rank: int, message: str) -> None:
        self.break_off(self.ranks[job, rank], 1, message)

    def break_off(self, it: Rank, code: int, message: str) -> None:
        """A job can't go on, by what a rank of it says or does; where it has not begun, only whoever has asked for it hears."""
        if not self.spawned.give_up(it.job, message):
            self.fail_with_partners(it, code, message)

    def on_refused(self, job: int, rank: int, is_left: bool) -> None:
        it = self.ranks.get((job, rank))
        if it is None:  # of a spawned job that is over
            return
        if not it.is_refusing:
            it.is_refusing = True
            reason = "it runs with the rights of another user, who can end it if it stays"
            self.streams.say(f"{it.name} can't be sent signals ({os.strerror(errno.EPERM)}): {reason}")
        if is_left:
            it.status = -signal.SIGKILL
            self.spawned.look_if_over(job)

    def on_exit(self, job: int, rank: int, status: int, initialised: bool, finalised: bool) -> None:
        it = self.ranks[job, rank]
        it.status, it.initialised, it.finalised = status, initialised, finalised
        if not self.spawned.give_up(job, f"{it.shown_command}: {it.ending} before all had begun MPI"):
            self.judge(it)
        self.spawned.look_if_over(job)

    def judge(self, it: Rank) -> None:
        """A rank has ended: was that a failure, and whose?"""
        if self.job.verbose:
            self.streams.say(f"{it.name} {it.ending}")
        if it.status != 0:
            self.fail_with_partners(it, it.exit_code, f"{it.name} {it.ending}", self.job.goes_on)
        elif it.initialised and not it.finalised:
            words = f"{it.name} exited with code 0 but without finalising MPI: its peers can't know that it has gone"
            self.fail_with_partners(it, 1, words, self.job.goes_on)
        if not it.finalised and (it.status != 0 or it.initialised):
            self.go_on_without(it)

    def on_barrier(self, job: int) -> None:
        """A rank that has gone without MPI (`sh -c true`) will never come to where the others wait."""
        space = self.spaces[job]
        if not space.waiting:
            return
        for rank in self.ranks.values():
            if rank.job == job and rank.status == 0 and not rank.initialised:
                waiting = ", ".join(map(str, space.waiting_ranks))
                words = f"{rank.name} exited without initialising MPI, and others wait for it (rank {waiting})"
                self.break_off(rank, 1, words)

    def on_hosts_lost(self, hosts: list[str], reason: str) -> None:
        """Their ranks have ended, as far as anybody here can know.

        Parameters:
            hosts: the one that was lost, and those that were reached through it.
        """
        there = [rank for rank in self.ranks.values() if rank.host in hosts]
        running = [rank for rank in there if rank.status is None]
        lost = []
        for rank in running:
            rank.status = -signal.SIGKILL
            if not self.spawned.give_up(rank.job, f"host {rank.host} is lost: {reason}"):
                self.go_on_without(rank)
                lost.append(rank)
            self.spawned.look_if_over(rank.job)
        for rank in there:
            self.spaces[rank.job].lose(rank.number)
        if not running and self.ranks:
            return

        def ranks_of(host: str) -> str:
            numbers = ", ".join(str(rank.number) for rank in lost if rank.host == host)
            return f" with rank {numbers}" if numbers else ""

        first, *behind = hosts
        words = f"host {first} is lost{ranks_of(first)}: {reason}"
        if behind:
            words += "; reached through it, and lost with it: " + "; ".join(f"host {host}{ranks_of(host)}" for host in behind)
        (self.note if self.job.goes_on else self.fail)(1, words)

    def go_on_without(self, rank: Rank) -> None:
        """A rank has failed: where that ends no others, they hear of it."""
        if not self.job.goes_on:
            return
        how = f"was {rank.ending}" if rank.status is not None and rank.status < 0 else rank.ending
        job = self.spaces[rank.job].name
        concerned = [rank.job] if self.spawned.is_alone(rank) else list(self.spaces)
        for number in concerned:
            self.spaces[number].fail(job, rank.number, how)
        if self.hosts is not None:
            self.hosts.send("fail", jobs=concerned, job=job, rank=rank.number, how=how)

    # -- what happens

    def turn(self, limit: float | None = None) -> None:
        """Wait for something to happen, at most so many seconds, and deal with it."""
        self.loop.turn(limit)
        self.spawned.close_those_over()
        self.streams.flush()
        if self.hosts is not None and not self.streams.held:
            self.hosts.pay()
        problem = self.streams.problem()
        if problem is not None and self.told_to_end is None:
            self.on_lost_output(problem)

    def on_signal(self) -> None:
        for number in self.signals.take():
            if number == signal.SIGCHLD:
                self.local.on_child()
            elif number == signal.SIGINT:
                self.on_interrupt()
            elif number in (signal.SIGTERM, signal.SIGHUP):
                self.fail(128 + number, f"got {number.name}, ending the job")
                self.end_ranks(number)
            elif number == signal.SIGTSTP:
                # A session without a terminal ignores TSTP, and so does a group that nobody would continue.
                self.signal_ranks(signal.SIGSTOP)
                self.pause(True)
                os.kill(os.getpid(), signal.SIGSTOP)
                self.pause(False)
            elif number == signal.SIGQUIT:
                self.report()
            else:
                self.signal_ranks(number)

    def pause(self, is_paused: bool) -> None:
        """This process is about to be stopped, or goes on: hosts are not to take its silence for its end."""
        if self.hosts is not None:
            self.hosts.children.pause(is_paused)

    def on_interrupt(self) -> None:
        if self.told_to_end is not None:
            self.signal_ranks(signal.SIGKILL)
            return
        self.exit_code = self.exit_code or 128 + signal.SIGINT
        self.end_ranks(signal.SIGINT)

    def on_lost_output(self, problem: OSError) -> None:
        """Nobody reads any more: the ranks end as a program in a shell's pipeline does, without a word."""
        if problem.errno == errno.EPIPE:
            self.exit_code = self.exit_code or 128 + signal.SIGPIPE
            self.end_ranks(signal.SIGTERM)
        else:
            self.fail(1, f"output can't be written: {problem.strerror}")

    def on_timeout(self) -> None:
        if self.job.report_state:
            self.ask_boards(self.job.stack_traces, self.on_timeout_reported)
        else:
            self.end_timed_out()

    def on_timeout_reported(self) -> None:
        self.print_report()
        self.end_timed_out()

    def end_timed_out(self) -> None:
        self.fail(TIMED_OUT, f"time is over after {self.job.timeout:g} s, ending the job")
        self.end_ranks(signal.SIGTERM)

    def ask_boards(self, stacks: bool, then: Callable[[], None]) -> None:
        """Have the board tell of all ranks, those on other hosts among them, and `then` called."""
        if self.hosts is None:
            then()
        else:
            self.hosts.ask_boards(stacks, then)

    def look(self) -> None:
        """From time to time: do ranks wait for one another?  Twice the same answer is told, once; the job goes on."""
        self.ask_boards(False, self.look_for_cycles)

    def look_for_cycles(self) -> None:
        from ompy.core.board import Board
        from ompy.runtime.report import processor_time, stuck

        board = Board(self.local.boards[0])
        used = processor_time(board, [process.rank for process in self.local.processes if process.job == 0])
        if self.hosts is not None:
            used |= self.hosts.used
        working = [rank for rank, time in used.items() if time - self.used.get(rank, time) > WORKING * LOOK_EVERY]
        self.used = used
        found = stuck(board, LOOK_EVERY / 2, working)
        if found and found == self.found:
            self.streams.say("this job seems to hang:\n" + "\n".join(found))
            return
        self.found = found
        self.loop.set_timer("look", LOOK_EVERY, self.look)

    # -- the end

    def fail_with_partners(self, it: Rank, code: int, message: str, goes_on: bool = False) -> None:
        """A rank has failed, and with it all with whom it is connected (MPI-4.1, 11.10.4)."""
        if goes_on:
            self.note(code, message)
        elif not self.spawned.is_alone(it):
            self.fail_connected(it, code, message)
        elif self.spawned.end(it.job):
            self.note(code, message)

    def fail_connected(self, it: Rank, code: int, message: str) -> None:
        """One that is connected with others has failed: the person's own job is with all."""
        self.fail(code, message)

    def fail(self, code: int, message: str) -> None:
        """The job has failed; the first reason counts."""
        if not self.has_failed and self.told_to_end is None:
            self.has_failed = True
            self.note(code, message)
            # At once, for what waits on the failed rank soon hears of it and waits no more; and again when all of them do.
            self.ask_boards(False, self.look_at_files)
            self.loop.set_timer("end", SAME_FAILURE, self.end_failed)

    def look_at_files(self) -> None:
        from ompy.core.board import Board
        from ompy.runtime.report import waits_on_files

        # The launcher of one that a person began without ompyrun has no board of that one's.
        if not self.local.boards or not self.job.size:
            return
        for access, ranks in waits_on_files(Board(self.local.boards[0])).items():
            self.broken_off.setdefault(access, set()).update(ranks)

    def end_failed(self) -> None:
        """The failure has ended the job for all: the accesses to files that this broke off are told."""
        self.ask_boards(False, self.tell_of_files)

    def tell_of_files(self) -> None:
        self.look_at_files()
        for (call, path), ranks in self.broken_off.items():
            self.streams.say(f"rank {', '.join(map(str, sorted(ranks)))} waited in {call} of {path}")
        self.end_ranks(signal.SIGTERM)

    def note(self, code: int, message: str) -> None:
        """Something has failed, and the first exit code counts."""
        self.exit_code = self.exit_code or code
        self.streams.say(message)
        if self.streams.hint:
            self.streams.say(self.streams.hint)

    def signal_ranks(self, number: int, job: int | None = None) -> None:
        """To those of one job, or to all."""
        self.local.signal(number, job)
        if self.hosts is not None:
            self.hosts.send("signal", number=int(number), job=job)

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
        left = ", ".join(str(rank.number) for rank in self.ranks.values() if rank.status is None)
        if not left:  # of one that a person began without ompyrun, who goes on
            return
        seconds = self.job.grace - REMIND_AFTER
        self.streams.say(
            f"rank {left} still runs {REMIND_AFTER:g} s after {name_of(self.told_to_end or 0)}: SIGKILL in {seconds:g} s "
            f"(--mca ompyrun_grace sets the whole time), or at once by Ctrl-C"
        )

    def report(self) -> None:
        """Who is blocked in what, on standard error."""
        self.ask_boards(self.job.stack_traces, self.print_report)

    def print_report(self) -> None:
        from ompy.core.board import Board
        from ompy.runtime.report import report

        for job, board in sorted(self.local.boards.items()):
            if all(rank.host == self.job.here for rank in self.ranks.values() if rank.job == job) or job == 0:
                self.streams.say((f"spawned job {job}:\n" if job else "") + report(Board(board)))
        if self.job.stack_traces:
            stacks = self.local.stacks()
            if self.hosts is not None:
                stacks += [(job, rank, text.encode()) for job, rank, text in self.hosts.stacks]
            for job, rank, text in sorted(stacks):
                self.streams.say(f"{self.ranks[job, rank].name}, Python stacks:")
                self.streams.printers[2].write(text)
