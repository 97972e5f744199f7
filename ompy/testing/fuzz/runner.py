"""Runs programs, many in one job: the ranks stay alive from one program to the next until something goes wrong."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from ompy.mca.discovery import handed_down
from ompy.mca.params import command_line
from ompy.testing.fuzz import script
from ompy.testing.fuzz.program import Program

# Programs that the ranks are given ahead of their answers, so that they need not wait for the next one to be made.
AHEAD = 4
# Seconds: for ranks to come up; that other ranks have for their words after a first failure; of a killed job's end; for stacks.
START, LAST_WORDS, FUNERAL, STACKS = 60.0, 0.5, 5.0, 0.5
MOST_OUTPUT = 6000
# Characters of an error that tell it from others.
ESSENCE = 24
# Descriptors that a rank may have open: few enough to notice that they are not closed.
DESCRIPTORS = 400


class Place(NamedTuple):
    """Where programs run.

    Attributes:
        ranks: of the job.
        mca: parameters, (name, value); of ompy only.
        python, launcher: of another library: its interpreter with mpi4py, and its launcher up to the number of ranks.
        silence: seconds without a program's end that are a hang.
    """

    ranks: int
    mca: tuple[tuple[str, str], ...] = ()
    python: str = ""
    launcher: str = ""
    silence: float = 20.0

    @property
    def foreign(self) -> bool:
        return bool(self.launcher)

    @property
    def command(self) -> list[str]:
        """The launcher with its arguments, and the interpreter."""
        if self.foreign:
            return [*shlex.split(self.launcher), "-n", str(self.ranks), self.python or "python"]
        launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "-n", str(self.ranks)]
        return [*launcher, self.python or sys.executable]


class Failure(NamedTuple):
    """What was wrong with a program.

    Attributes:
        program: the one that failed; with several ahead, the first that was not carried out.
        word: `wrong` (a check or an error), `hang`, `death` (a rank ended).
        text: what the ranks said.
    """

    program: Program
    word: str
    text: str

    @property
    def essence(self) -> str:
        """What two failures of the same cause have in common: the kind, and the error without its numbers."""
        lines = [line for line in self.text.splitlines() if line and not line.startswith((" ", "rank "))]
        error = lines[-1] if self.word == "wrong" and lines else ""
        return self.word + " " + re.sub(r"\d+", "#", error)[:ESSENCE]


class Job:
    """The processes of one job, and the wires to them.

    Errors: RuntimeError when the ranks do not come up.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = tempfile.TemporaryDirectory(prefix="ompy-fuzz-")
        self.wires: dict[Connection[Any, Any], int] = {}
        self.pids: dict[int, int] = {}
        self.about: dict[str, Any] = {}
        self.numbers = 0
        self.given: deque[tuple[int, Program]] = deque()
        self.waiting: dict[int, set[int]] = {}  # ranks that have not carried a program out
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{self.folder.name}/wire")
            listener.listen(place.ranks)
            self.process = self.start()
            try:
                self.connect(listener)
            except BaseException:
                self.end()
                raise

    def start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {"OMPY_FUZZ_WIRE": f"{self.folder.name}/wire", "PYTHONUNBUFFERED": "1"}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if not self.place.foreign:
            environment |= command_line(list(self.place.mca)) | handed_down()
        rank = str(Path(__file__).with_name("rank.py"))
        with Path(self.folder.name, "output").open("ab") as output:
            return subprocess.Popen(
                [*self.place.command, rank],
                env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def connect(self, listener: socket.socket) -> None:
        listener.settimeout(0.2)
        end = time.monotonic() + START
        while len(self.wires) < self.place.ranks:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError(f"the ranks did not come up\n{self.output()}") from None
                continue
            wire: Connection[Any, Any] = Connection(accepted.detach())
            self.wires[wire] = -1
        for wire in self.wires:
            try:
                rank, self.pids[rank], self.about = wire.recv()
            except (EOFError, ConnectionError):
                raise RuntimeError(f"the ranks did not come up\n{self.output()}") from None
            self.wires[wire] = rank
        for wire in self.wires:
            wire.send((script.prelude(), 0 if self.place.foreign else DESCRIPTORS))
        for wire in self.wires:
            if not wire.poll(START):
                raise RuntimeError(f"the ranks did not come up\n{self.output()}")
            wire.recv()

    def end(self) -> None:
        """End every process, and forget the job."""
        for wire in self.wires:
            wire.close()
        self.wires.clear()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(FUNERAL)
        except subprocess.TimeoutExpired:
            for pid in self.pids.values():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.folder.cleanup()

    def output(self) -> str:
        return Path(self.folder.name, "output").read_text(errors="replace").strip()[-MOST_OUTPUT:]

    # -- programs

    def give(self, program: Program) -> None:
        """Have the ranks run a program after those that they have."""
        self.numbers += 1
        self.given.append((self.numbers, program))
        self.waiting[self.numbers] = set(program.everybody)
        parts = script.parts_of(program)
        for wire, rank in self.wires.items():
            try:
                wire.send((self.numbers, script.MEMORY[program.memory], parts[rank]))
            except (BrokenPipeError, ConnectionError):
                continue  # `gather` sees its end

    def gather(self) -> Program | Failure:
        """The next program that all ranks have carried out, or what was wrong."""
        while not (self.given and not self.waiting[self.given[0][0]]):
            ready = wait(list(self.wires), self.place.silence)
            if not ready:
                return self.failure("hang", self.stuck())
            for wire in ready:
                assert isinstance(wire, Connection)
                try:
                    number, well, text = wire.recv()
                except (EOFError, ConnectionError):
                    return self.failure("death", self.death(self.wires[wire]), self.wires[wire])
                if not well:
                    return self.failure("wrong", self.words(self.wires[wire], text), self.wires[wire])
                self.waiting[number].discard(self.wires[wire])
        number, program = self.given.popleft()
        del self.waiting[number]
        return program

    def failure(self, word: str, text: str, rank: int = -1) -> Failure:
        """Of the first program that the rank, or some rank, has not carried out."""
        for number, program in self.given:
            if rank in self.waiting[number] or rank < 0:
                return Failure(program, word, text)
        return Failure(self.given[0][1], word, text)

    def words(self, rank: int, text: str) -> str:
        """What ranks say after the first one has failed."""
        told = {rank: text}
        end = time.monotonic() + LAST_WORDS
        while (left := end - time.monotonic()) > 0 and len(told) < len(self.wires):
            for wire in wait(list(self.wires), left):
                assert isinstance(wire, Connection)
                try:
                    _, well, more = wire.recv()
                except (EOFError, ConnectionError):
                    return "\n".join(f"rank {r}: {words}" for r, words in sorted(told.items()))
                if not well:
                    told[self.wires[wire]] = more
        return "\n".join(f"rank {r}: {words}" for r, words in sorted(told.items()))

    def death(self, rank: int) -> str:
        try:
            status = self.process.wait(FUNERAL)
        except subprocess.TimeoutExpired:
            status = None
        return f"rank {rank} has ended; the launcher's exit status is {status}\n{self.output()}"

    def stuck(self) -> str:
        """Who waits for whom, and every rank's stack."""
        report = ""
        if not self.place.foreign:
            asked = [sys.executable, "-m", "ompy.cli.ompyrun", "--report-state", str(self.process.pid)]
            told = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
            report = told.stdout + told.stderr
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                continue
        time.sleep(STACKS)
        return f"no program has come to its end for {self.place.silence:g} s\n{report}\n{self.output()}"


class Runner:
    """Runs programs at one place; a job serves until one fails."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.current: Job | None = None

    def job(self) -> Job:
        if self.current is None:
            self.current = Job(self.place)
        return self.current

    def close(self) -> None:
        if self.current is not None:
            self.current.end()
            self.current = None

    def run(self, programs: Iterable[Program]) -> Iterator[Program | Failure]:
        """Each program that went well, in turn, until one does not."""
        source = iter(programs)
        try:
            job = self.job()
            ended = False
            while True:
                while not ended and len(job.given) < AHEAD:
                    program = next(source, None)
                    if program is None:
                        ended = True
                    else:
                        job.give(program)
                if not job.given:
                    return
                outcome = job.gather()
                if isinstance(outcome, Failure):
                    self.close()
                    yield outcome
                    return
                yield outcome
        except GeneratorExit:
            self.close()  # programs are under way
            raise
        except BaseException:
            self.close()
            raise

    def fails(self, program: Program, times: int = 1) -> Failure | None:
        """What is wrong with a program that is run so many times, if anything."""
        for outcome in self.run([program] * times):
            if isinstance(outcome, Failure):
                return outcome
        return None
