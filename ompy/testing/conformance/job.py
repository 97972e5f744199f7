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
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from ompy.mca.discovery import handed_down
from ompy.mca.params import command_line
from ompy.testing.conformance.check import FAILED, Check, Outcome, worst
from ompy.testing.conformance.wire import ADDRESS, EXCHANGE, LEAVING, OUTCOME, RANK, SIGN, Setting

PROGRAM = "ompy.testing.conformance.rank"
# Beyond the patience of the ranks themselves, who can say more than that they are silent.
SILENCE_MARGIN = 4.0
# Seconds that the other ranks have for their words after the first failure; that a killed rank has for its end; and for
# the stacks of silent ones.
LAST_WORDS, FUNERAL, STACKS = 0.3, 5.0, 0.5
MOST_OUTPUT = 4000


class Order(NamedTuple):
    """What is to be checked, and on what.

    Attributes:
        framework: `btl`, `coll`, `fs`, ...
        names: components, the first under test.
        level: `contract`, `mpi`, ...
        ranks: of the job.
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
    def serving(self) -> list[str]:
        """The components of the job: the one under test, beside `self`; on the level `mixed` with another transport."""
        given = [name for name in self.names[1:] if name != "self"]
        loopback = [name for name in self.names[1:] if name == "self"]
        if self.framework != "btl":
            return list(self.names)
        if self.bare:
            return [self.component]
        if self.level == "mixed":
            # One that the component may itself ride on, or is told to, can't stand beside it.
            taken = {self.component, *(value for _, value in self.mca)}
            return [self.component, *(given or [next(name for name in ("zmq", "sm") if name not in taken)]), *loopback]
        return [self.component, *loopback]


class Ended(Exception):
    """The job can't go on: what came of the check that was under way."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Job:
    """The processes of one job, and the wires to them.

    Errors: Ended when the ranks did not come up.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.folder = tempfile.TemporaryDirectory(prefix="ompy-conformance-")
        self.wires: dict[Connection[Any, Any], int] = {}
        self.pids: dict[int, int] = {}
        self.examined = dict.fromkeys(range(order.ranks), "open")
        self.told = 0  # characters of output that were looked at
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self.address)
                listener.listen(order.ranks)
                self.start()
                self.connect(listener)
            self.gather()
        except BaseException:
            self.end()
            raise

    @property
    def address(self) -> str:
        return f"{self.folder.name}/wire"

    # -- beginning and end

    def start(self) -> None:
        """Start the ranks: over the bare contract they need no launcher, and its opinion of dying ranks would be in the way."""
        order = self.order
        # What a component says of itself when it is chosen is meant for a person's jobs.
        quiet = f"{order.framework}_base_verbose", "-1"
        pairs = [quiet, (order.framework, ",".join(order.serving)), *order.mca]
        environment = os.environ | command_line(pairs) | handed_down() | {ADDRESS: self.address}
        # Threads of a numerical library would compete with the ranks for the cores.
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if order.bare:
            for rank in range(order.ranks):
                self.launch([sys.executable, "-m", PROGRAM], environment | {RANK: str(rank)})
        else:
            launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(order.ranks)]
            self.launch([*launcher, sys.executable, "-m", PROGRAM], environment)

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
            order.seed, order.silence, dict(order.options),
        )  # fmt: skip
        listener.settimeout(0.2)
        end = time.monotonic() + max(order.silence, 30.0)
        while len(self.wires) < order.ranks:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                    raise Ended(Outcome(FAILED, "open", f"the ranks did not come up\n{self.output()}")) from None
                continue
            wire: Connection[Any, Any] = Connection(accepted.detach())
            rank, self.pids[rank] = wire.recv()
            self.wires[wire] = rank
        for wire in self.wires:
            wire.send(setting)

    def end(self) -> None:
        """End every process, and forget the job."""
        for wire in self.wires:
            wire.close()
        self.wires.clear()
        for process in self.processes:
            # A launcher ends its ranks when it is told to end.
            process.send_signal(signal.SIGKILL if self.order.bare else signal.SIGTERM)
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
        return self.gather(last=check.last)

    def gather(self, last: bool = False) -> Outcome:
        """Serve the ranks until each has an outcome."""
        outcomes: dict[int, Outcome] = {}
        values: dict[int, Any] = {}
        leaving: set[int] = set()
        limit = self.order.silence + SILENCE_MARGIN
        while waited := [wire for wire, rank in self.wires.items() if rank not in outcomes]:
            failed = any(outcome.word == FAILED for outcome in outcomes.values())
            ready = wait(waited, LAST_WORDS if failed else limit)
            if not ready and failed:
                break
            if not ready:
                raise Ended(self.silent(outcomes, values))
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
                elif word == OUTCOME:
                    outcomes[rank] = value
                elif word == EXCHANGE:
                    values[rank] = value
            if values and values.keys() >= {rank for rank in self.wires.values() if rank not in outcomes}:
                answer = [values.get(rank) for rank in range(self.order.ranks)]
                for wire, rank in self.wires.items():
                    if rank in values:
                        wire.send(answer)
                values = {}
        outcome = worst(list(outcomes.values()))
        if outcome.word == FAILED:
            raise Ended(outcome)
        if self.order.bare and (text := self.output()):
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
        return Outcome(FAILED, clause, f"rank {rank} {how}\n{self.output()}", rank)

    def silent(self, outcomes: Mapping[int, Outcome], values: Mapping[int, Any]) -> Outcome:
        """No rank has given a sign of life: say where they are, and name the clause of one that others wait for."""
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                continue
        time.sleep(STACKS)
        stuck = [rank for rank in self.wires.values() if rank not in outcomes and rank not in values]
        rank = stuck[0] if stuck else 0
        words = f"no rank gave a sign of life for {self.order.silence + SILENCE_MARGIN:g} s; stuck in a call: {stuck}"
        return Outcome(FAILED, self.examined[rank], f"{words}\n{self.output()}", rank)

    def output(self) -> str:
        """What the ranks have printed since this was last asked."""
        text = Path(self.folder.name, "output").read_text(errors="replace")
        new, self.told = text[self.told :], len(text)
        return new.strip()[-MOST_OUTPUT:]
