"""A job of ranks under test, from the kit's side: started, told what to check, watched, and ended."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from ompy.mca.discovery import handed_down
from ompy.mca.params import command_line
from ompy.testing.conformance import guards, limits
from ompy.testing.conformance.check import FAILED, PASSED, Check, Outcome, worst
from ompy.testing.conformance.wire import (
    ADDRESS,
    CALL_BITS,
    CALLS,
    CLAUSES_OF_CALLS,
    EXCHANGE,
    LAUNCHERS_PID,
    LEAVING,
    NUMBER,
    OUTCOME,
    RANK,
    SIGN,
    Setting,
)

PROGRAM = "ompy.testing.conformance.rank"
# Beyond the patience of the ranks themselves, who can say more than that they are silent.
SILENCE_MARGIN = 4.0
# Seconds that the other ranks have for their words after the first failure, and after one that may be the consequence of
# theirs; that a killed rank has for its end; and for the stacks of silent ones.
LAST_WORDS, CAUSES, FUNERAL, STACKS = 0.3, 2.0, 5.0, 0.5
LOOK = 0.02  # seconds between two looks at processes that are no children
MOST_OUTPUT = 4000
# Frameworks whose components print nothing.
SILENT = ("coll", "osc", "pml", "mtl", "rpi", "bml", "rte", "plm")
# How a job is started, unless a run-time environment declares a launcher of its own.
LAUNCHER = ("python", "-m", "ompy.cli.ompyrun", "-n", "{ranks}")
PYTHON = {"python": sys.executable}
# The PML of the tree above a component that matches messages.
ABOVE = {"mtl": "cm", "rpi": "rpi"}
# Frameworks whose components one of this may have below it.
BELOW = {"pml": ("mtl", "rpi")}


class Order(NamedTuple):
    """What is to be checked, and on what.

    Attributes:
        framework: `btl`, `coll`, `fs`, ...
        names: components, the first under test.
        level: `contract`, `mpi`, ...
        ranks: of the job; of a launcher of processes: hosts.
        mca: further parameters, (name, value).
        seed: of everything random.
        silence: seconds without a sign of life that end a check.
        options: of checks that are made on request.
    """

    framework: str
    names: tuple[str, ...]
    level: str
    ranks: int
    mca: tuple[tuple[str, str], ...]
    seed: int
    silence: float
    options: Mapping[str, Any]

    @property
    def component(self) -> str:
        return self.names[0]

    @property
    def bare(self) -> bool:
        """Whether the ranks drive the component's modules with nothing of MPI around them."""
        return self.framework == "btl" and self.level == "contract"

    @property
    def processes(self) -> int:
        """How many the kit has at work: one, which stands for `ompyrun`, where starting others is what is under test."""
        return 1 if self.framework == "plm" else self.ranks

    @property
    def launcher(self) -> list[str]:
        """What starts the ranks; nothing where each process is a job of its own."""
        if self.framework == "plm":
            return []
        words = LAUNCHER
        if self.framework == "rte":
            capabilities: Mapping[str, Any] = limits.declared(self.framework, self.component).capabilities
            words = capabilities.get("launcher", LAUNCHER)
            words += capabilities.get("recovery", ()) if self.level == "failures" else ()
        return [PYTHON.get(word, word).format(ranks=self.ranks) for word in words]

    @property
    def silent(self) -> bool:
        """Whether what the ranks print can only be the component's."""
        # A launcher tells of the rank that has failed.
        return self.bare or (self.level != "failures" and self.framework in SILENT)

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What has the job use the components, and the order's own."""
        above = [("pml", ABOVE[self.framework])] if self.framework in ABOVE else []
        return ((self.framework, ",".join(self.serving)), *above, *self.trial, *self.mca)

    @property
    def trial(self) -> tuple[tuple[str, str], ...]:
        """Parameters under which what needs several hosts can be tried on one machine, but for those that are given."""
        if self.framework not in ("plm", "coll"):
            return ()
        told = limits.declared(self.framework, self.component).capabilities.get("trial", {})
        assert isinstance(told, Mapping)
        pairs = ((f"{self.framework}_{self.component}_{name}", str(value).format(**PYTHON)) for name, value in told.items())
        given = {name for name, _ in self.mca}
        return tuple(pair for pair in pairs if pair[0] not in given)

    @property
    def serving(self) -> list[str]:
        """The components of the job: the one under test, beside `self`; on the level `mixed` with another transport.

        What functions a collective component has not come from `basic`.
        """
        given = [name for name in self.names[1:] if name != "self"]
        loopback = [name for name in self.names[1:] if name == "self"]
        if self.framework == "coll":
            return list(dict.fromkeys((*self.names, "basic")))
        if self.framework != "btl":
            return list(self.names)
        if self.bare:
            return [self.component]
        if self.level == "mixed":
            # One that the component may itself ride on, or is told to, can't stand beside it.
            taken = {self.component, *(value for _, value in self.mca)}
            return [self.component, *(given or [next(name for name in ("zmq", "sm") if name not in taken)]), *loopback]
        return [self.component, *loopback]


def is_alive(pid: int) -> bool:
    """Whether a process runs; nobody may have asked yet how one has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Ended(Exception):
    """The job can't go on: what came of the check that was under way."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Job:
    """The processes of one job, and the wires to them.

    Parameters:
        order: what is under test.
        forks: ranks will have children by `fork`.

    Errors: Ended when the ranks did not come up.
    """

    def __init__(self, order: Order, forks: bool = False) -> None:
        self.order = order
        self.forks = forks
        self.folder = tempfile.TemporaryDirectory(prefix="ompy-conformance-")
        self.wires: dict[Connection[Any, Any], int] = {}
        self.numbers: dict[Connection[Any, Any], int] = {}  # of ranks that only the component under test can tell
        self.pids: dict[int, int] = {}
        self.examined = dict.fromkeys(range(order.processes), "open")
        self.told = 0  # characters of output that were looked at
        self.processes: list[subprocess.Popen[bytes]] = []
        self.direct = order.bare or not order.launcher
        self.temporary.mkdir()
        self.calls.write_bytes(bytes(8 * order.processes))
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self.address)
                listener.listen(order.processes)
                self.start()
                self.connect(listener)
            self.gather()
            self.renumber()
        except BaseException:
            self.end()
            raise

    @property
    def address(self) -> str:
        return f"{self.folder.name}/wire"

    @property
    def calls(self) -> Path:
        """Which call of the component's each rank is in."""
        return Path(self.folder.name, CALLS)

    @property
    def temporary(self) -> Path:
        """The ranks' folder for temporary files: nobody else's are there."""
        return Path(self.folder.name, "tmp")

    # -- beginning and end

    def start(self) -> None:
        """Start the ranks: over the bare contract they need no launcher, and its opinion of dying ranks would be in the way."""
        order = self.order
        # What a component says of itself when it is chosen is meant for a person's jobs.
        quiet = [(f"{framework}_base_verbose", "-1") for framework in (order.framework, *BELOW.get(order.framework, ()))]
        pairs = [*quiet, *order.parameters, *(limits.drawn(order) if order.level == limits.LEVEL else ())]
        environment = os.environ | command_line(pairs) | handed_down() | {ADDRESS: self.address, "TMPDIR": str(self.temporary)}
        # Threads of a numerical library would compete with the ranks for the cores.
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | guards.environment(self.forks)
        if self.direct:
            for rank in range(order.processes):
                self.launch([sys.executable, "-m", PROGRAM], environment | {RANK: str(rank)})
        else:
            self.launch([*order.launcher, sys.executable, "-m", PROGRAM], environment)

    def launch(self, command: list[str], environment: Mapping[str, str]) -> None:
        with Path(self.folder.name, "output").open("ab") as output:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self.processes.append(process)

    def connect(self, listener: socket.socket) -> None:
        order = self.order
        component = order.component
        name = f"conformance-{os.getpid()}-{secrets.token_hex(4)}"
        setting = Setting(
            order.framework, component, order.level, order.ranks, name, secrets.token_bytes(32),
            order.seed, order.silence, dict(order.options) | {LAUNCHERS_PID: self.processes[0].pid},
        )  # fmt: skip
        listener.settimeout(0.2)
        end = time.monotonic() + max(order.silence, 30.0)
        while len(self.wires) < order.processes:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                    raise Ended(Outcome(FAILED, "open", f"the ranks did not come up\n{self.output()}")) from None
                continue
            wire: Connection[Any, Any] = Connection(accepted.detach())
            told, pid = wire.recv()
            rank = len(self.wires) if told is None else told
            self.wires[wire], self.pids[rank] = rank, pid
        for wire, rank in self.wires.items():
            wire.send((rank, setting))

    def renumber(self) -> None:
        """Call the ranks as the component under test does, where they are as many."""
        if sorted(self.numbers.values()) == list(range(self.order.processes)):
            self.pids = {number: self.pids[self.wires[wire]] for wire, number in self.numbers.items()}
            self.wires = {wire: self.numbers[wire] for wire in self.wires}

    def end(self) -> None:
        """End every process, and forget the job."""
        for wire in self.wires:
            wire.close()
        self.wires.clear()
        for process in self.processes:
            # A launcher ends its ranks when it is told to end.
            process.send_signal(signal.SIGKILL if self.direct else signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(FUNERAL)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.folder.cleanup()

    # -- checks

    def run(self, check: Check) -> Outcome:
        """Have every rank run a check; Ended when the job can't be used any more."""
        for wire in self.wires:
            wire.send(check.name)
        if check.exits is None:
            return self.gather(last=check.last)
        outcome = self.gather(last=True, silent=False)
        if outcome.word == PASSED and (problem := self.ended_otherwise(check.exits, check.tells)):
            raise Ended(Outcome(FAILED, check.clauses[0], problem))
        return outcome

    def ended_otherwise(self, status: int, tells: str) -> str:
        """How the job's end differs from what is expected; empty when it does not."""
        end = time.monotonic() + self.order.silence
        for process in self.processes:
            try:
                process.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                return f"{self.order.silence:g} s after its ranks have ended the job runs on\n{self.output()}"
            if process.returncode != status:
                return f"the job ended with status {process.returncode}, not {status}\n{self.output()}"
        while left := [pid for pid in self.pids.values() if is_alive(pid)]:
            if time.monotonic() > end:
                return f"the job has ended, and processes {left} run on"
            time.sleep(LOOK)
        printed = self.output()
        if tells not in printed or (printed and not status and self.order.silent):
            return f"what was printed is {printed!r}{f', without {tells!r}' if tells else ''}"
        return ""

    def gather(self, last: bool = False, silent: bool = True) -> Outcome:
        """Serve the ranks until each has an outcome, or, the last time, has left; `silent`: what they print is looked at."""
        outcomes: dict[int, Outcome] = {}
        values: dict[int, Any] = {}
        leaving: set[int] = set()
        limit = self.order.silence + SILENCE_MARGIN
        failed: list[Outcome] = []
        while waited := [wire for wire, rank in self.wires.items() if rank not in outcomes]:
            ready = wait(waited, (CAUSES if all(it.symptom for it in failed) else LAST_WORDS) if failed else limit)
            if not ready and failed:
                break
            if not ready:
                words = f"no rank gave a sign of life for {limit:g} s"
                missing = [rank for rank in self.wires.values() if rank not in outcomes and rank not in values]
                raise Ended(self.silent(self.in_a_call(outcomes, values), missing, words))
            for wire in ready:
                assert isinstance(wire, Connection)
                rank = self.wires[wire]
                try:
                    word, value = wire.recv()
                except (EOFError, ConnectionError):
                    del self.wires[wire]
                    if rank not in leaving:
                        outcomes[rank] = self.death(rank)
                    elif not last:
                        outcomes[rank] = Outcome(FAILED, "quiet", "it left", rank)
                    self.reap()
                    continue
                if word == SIGN:
                    self.examined[rank] = value
                elif word == LEAVING:
                    leaving.add(rank)
                elif word == NUMBER:
                    self.numbers[wire] = value
                elif word == OUTCOME:
                    outcomes[rank] = value
                elif word == EXCHANGE:
                    values[rank] = value
            failed = [outcome for outcome in outcomes.values() if outcome.word == FAILED]
            met = bool(values) and values.keys() >= {rank for rank in self.wires.values() if rank not in outcomes}
            if met and failed:
                break  # nobody is left who could say more
            if met:
                answer = [values.get(rank) for rank in range(self.order.processes)]
                for wire, rank in self.wires.items():
                    if rank in values:
                        with suppress(ConnectionError):  # who has gone is heard of above
                            wire.send(answer)
                values = {}
        outcome = worst(list(outcomes.values()))
        if outcome.word == FAILED and outcome.symptom and (stuck := self.in_a_call(outcomes, values)):
            outcome = self.silent(stuck, [], outcome.words)
        if outcome.word == FAILED:
            raise Ended(outcome)
        if silent and self.order.silent and (text := self.output()):
            raise Ended(Outcome(FAILED, "quiet", f"it printed: {text}"))
        return outcome

    def reap(self) -> None:
        """Nobody takes a dead rank for a living one."""
        for process in self.processes:
            process.poll()

    def death(self, rank: int) -> Outcome:
        """A rank has gone without being asked to."""
        how = "ended without a word"
        clause = self.examined[rank]
        for process in self.processes:
            if process.pid == self.pids[rank]:
                try:
                    status = process.wait(FUNERAL)
                except subprocess.TimeoutExpired:
                    continue
                how = f"exited with {status}" if status >= 0 else f"was killed by {signal.Signals(-status).name}"
                if status >= 0 or status == -signal.SIGABRT:
                    clause = "quiet"
                if guards.are_hurt(self.output()):
                    how += ": memory was written in front of what had been allocated, or behind it"
        return Outcome(FAILED, clause, f"rank {rank} {how}\n{self.output()}", rank)

    def in_a_call(self, outcomes: Mapping[int, Outcome], values: Mapping[int, Any]) -> list[int]:
        """The ranks that have not been heard of and don't come back from a call of the component's."""
        before = self.words()
        time.sleep(STACKS)
        return [
            rank
            for rank, (first, last) in enumerate(zip(before, self.words(), strict=True))
            if first == last and last % (1 << CALL_BITS) and rank not in outcomes and rank not in values
        ]

    def words(self) -> list[int]:
        """What each rank has written about its calls."""
        return memoryview(self.calls.read_bytes()).cast("Q").tolist()

    def silent(self, stuck: Sequence[int], missing: Sequence[int], words: str) -> Outcome:
        """Ranks don't come back: say where they are, and name the clause that this breaks.

        Parameters:
            stuck: those that don't come back from a call.
            missing: where there are none, those that were not heard of.
        """
        rank = (*stuck, *missing, 0)[0]
        clause = self.examined[rank]
        if stuck:
            clause = CLAUSES_OF_CALLS.get(self.words()[rank] % (1 << CALL_BITS), clause)
        # Whoever sleeps is woken by being asked, and goes on: the clause has to be known before.
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                continue
        time.sleep(STACKS)
        where = f"stuck in a call: {list(stuck)}" if stuck else f"not heard of: {list(missing)}"
        return Outcome(FAILED, clause, f"{words}; {where}\n{self.output()}", rank)

    def output(self) -> str:
        """What the ranks have printed since this was last asked."""
        text = Path(self.folder.name, "output").read_text(errors="replace")
        new, self.told = text[self.told :], len(text)
        return new.strip()[-MOST_OUTPUT:]
