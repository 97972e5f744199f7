"""Jobs that ranks have asked for: what they asked, and when they are told that it runs.

rank 2 of job 0        launcher                              ranks of job 1
  spawn, blocks  ->      names and starts them         ->      init, put cards
                         all have come to a barrier    <-      barrier_in
  <- spawn_result        lets them go                  ->      barrier_out
  waits at its port <------------------------------------------ connect to it
"""

from __future__ import annotations

import os
import signal
from functools import partial

from ompy.mca.params import PREFIX, STARTUP
from ompy.mca.pmi_services import PARENT_KEY
from ompy.runtime.job import Job, Program
from ompy.runtime.mapping import Place
from ompy.runtime.pmi_server import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.runtime.launcher import Launcher
    from ompy.runtime.pmi_server import Session
    from ompy.runtime.rank import Rank

MOST_PROCESSES = 1 << 16
# Ranks of a job that has failed alone have so many seconds to come out of the Disconnect that a failed one is out of.
PARTING = 5.0


class Request:
    """What one `spawn` asks for.

    Parameters:
        text: the blocks, as they came.

    Errors: ValueError for what is no such request.

    Attributes:
        programs: what is to run.
        hosts: of each program, where; empty for wherever there is room.
        values: what the new job finds in its key-value space.
    """

    def __init__(self, text: str) -> None:
        self.programs: list[Program] = []
        self.hosts: list[str] = []
        self.values: dict[str, str] = {}
        fields: dict[str, str] = {}
        # Of what ends a line somewhere, an argument of a program may have all but this.
        for line in (*text.split("\n"), "endcmd"):
            if line == "endcmd" and fields:
                self.take(fields)
                fields = {}
            elif line and line != "endcmd":
                name, _, value = line.partition("=")
                fields[name] = value
        if not self.programs:
            raise ValueError("no program is named")
        if sum(program.count for program in self.programs) > MOST_PROCESSES:
            raise ValueError(f"more than {MOST_PROCESSES} processes are asked for at once")

    def take(self, fields: dict[str, str]) -> None:
        """One block: one program."""
        count = number(fields, "nprocs")
        command = fields.get("execname", "")
        if not command or count < 1:
            raise ValueError("a program's name and a positive number of processes are wanted")
        arguments = [argument(fields, place) for place in range(1, number(fields, "argcnt") + 1)]
        hints = {
            fields.get(f"info_key_{place}", ""): fields.get(f"info_val_{place}", "")
            for place in range(number(fields, "info_num"))
        }
        environment = {"PATH": hints["path"]} if "path" in hints else {}
        environment |= {PREFIX + name: hints[name] for name in STARTUP if name in hints}
        self.programs.append(Program([command, *arguments], count, environment, hints.get("wdir")))
        self.hosts.append(hints.get("host", ""))
        for place in range(number(fields, "preput_num")):
            self.values[fields.get(f"preput_key_{place}", "")] = fields.get(f"preput_val_{place}", "")

    def places(self, here: str, hosts: Sequence[str]) -> list[Place]:
        """A place for each rank, the job's hosts in turn.  ValueError for a host that is none of them."""
        found: list[Place] = []
        known = list(dict.fromkeys(hosts)) or [here]
        for program, wanted in zip(self.programs, self.hosts, strict=True):
            among = wanted.split(",") if wanted else known
            for host in among:
                if host not in known:
                    raise ValueError(f"host {host} is none of the job's, or lost; there are {', '.join(known)}")
            found += [Place(among[rank % len(among)]) for rank in range(program.count)]
        return found


def number(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "0")
    if not text.isdecimal() or len(text) > 6:
        raise ValueError(f"{name}: a number of at most six digits expected, not {text[:20]!r}")
    return int(text)


def argument(fields: dict[str, str], place: int) -> str:
    """One that has several lines comes in hexadecimal."""
    if f"hex{place}" in fields:
        return os.fsdecode(bytes.fromhex(fields[f"hex{place}"]))
    return fields.get(f"arg{place}", "")


class SpawnedJob(Job):
    """A job that a rank has asked for.

    Parameters:
        first: the job that a person started, whose output and environment it shares.
        hosts: of that job, where its processes may go.
        job: its number.
        request: what was asked.
        session: of the rank that has asked, and awaits an answer.

    Attributes:
        is_refused, is_ending: it could not begin; it has failed, and its ranks have been told to end.
        parent: name of the job of the rank that has asked.
        connected: the other jobs that each rank is connected with, of those that have told.
    """

    def __init__(self, first: Job, hosts: Sequence[str], job: int, request: Request, session: Session) -> None:
        super().__init__(request.programs, request.places(first.here, hosts))
        self.number = job
        # Whoever removes what the first job has left removes what this one has.
        self.name = f"{first.name}.{job}"
        self.output = first.output
        self.environment = first.environment
        self.stack_traces = first.stack_traces
        self.here = first.here
        self.goes_on = first.goes_on
        self.values = request.values
        self.session: Session | None = session
        self.parent = session.space.name
        self.is_refused = self.is_ending = False
        self.connected: dict[int, set[str]] = {}

    def answer(self, line: str) -> bool:
        """Tell whoever has asked what became of it; False where he knows already."""
        if self.session is None:
            return False
        session, self.session = self.session, None
        session.answered(line)
        return True


class SpawnedJobs:
    """The jobs that the ranks of a launcher have asked for, from the request until the last rank has ended.

    Parameters:
        launcher: starts and ends their ranks.
    """

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self.jobs: dict[int, SpawnedJob] = {}
        self.count = 0
        self.over: set[int] = set()

    def start(self, session: Session, text: str) -> None:
        """Start what is asked for; the answer comes when it runs, or can't."""
        launcher = self.launcher
        try:
            if launcher.told_to_end is not None:
                raise ValueError("the job is being ended")
            hosts = [place.host for place in launcher.job.places if launcher.reaches(place.host)]
            job = SpawnedJob(launcher.job, hosts, self.count + 1, Request(text), session)
        except ValueError as error:
            session.answered(refusal(str(error)))
            return
        self.count = job.number
        self.jobs[job.number] = job
        launcher.start_job(job)

    def begun(self, job: int) -> None:
        """All its ranks have come to a barrier: they have begun MPI."""
        it = self.jobs.get(job)
        if it is not None:
            it.answer(f"cmd=spawn_result rc=0 jobid={it.name} errcodes={','.join('0' * it.size)}")

    def give_up(self, job: int, reason: str) -> bool:
        """A job can't begin, and its ranks end without a word; False where it has begun already, or is the person's."""
        it = self.jobs.get(job)
        if it is not None and it.answer(refusal(reason)):
            it.is_refused = True
            self.launcher.signal_ranks(signal.SIGKILL, job)
        return it is not None and it.is_refused

    def cancel(self, port: str) -> None:
        """Nobody waits at the port any more for the job that is to meet its parents there: it ends without a word."""
        for number, it in list(self.jobs.items()):  # who is answered may ask for the next
            if it.values.get(PARENT_KEY) == port and number not in self.over:
                it.answer(refusal("whoever has asked for it waits no more"))
                it.is_refused = True
                self.launcher.signal_ranks(signal.SIGKILL, number)

    def connect(self, job: int, rank: int, jobs: set[str]) -> None:
        """The other jobs that a rank is connected with from here on."""
        if job in self.jobs:
            self.jobs[job].connected[rank] = jobs
            self.look_if_parted(job)

    def is_alone(self, rank: Rank) -> bool:
        """Whether a rank has disconnected itself from all other jobs of this launcher's."""
        it = self.jobs.get(rank.job)
        if it is None:
            return False
        here = {space.name for space in self.launcher.spaces.values()}
        return not it.connected.get(rank.number, here) & here

    def end(self, job: int) -> bool:
        """A rank that is alone has failed: the rest of its job ends, once it has parted too; False where that is under way."""
        it = self.jobs[job]
        if it.is_ending:
            return False
        it.is_ending = True
        self.launcher.loop.set_timer(f"part {job}", PARTING, partial(self.end_now, job))
        self.look_if_parted(job)
        return True

    def end_connected(self, job: int, delay: float) -> bool:
        """A job has failed: it ends, and all with whom it is connected; False where that is under way.

        Parameters:
            delay: seconds that its ranks have to say the same.
        """
        if self.jobs[job].is_ending:
            return False
        for number in self.connected_with(job):
            self.jobs[number].is_ending = True
            self.launcher.loop.set_timer(f"part {number}", delay, partial(self.end_now, number))
        return True

    def connected_with(self, job: int) -> set[int]:
        """A spawned job and those that it is connected with, directly or through others of them."""
        numbers = {it.name: number for number, it in self.jobs.items()}
        links = {
            # Who has not told what he is connected with has not met more than those who have asked for him.
            number: {numbers.get(name) for rank in range(it.size) for name in it.connected.get(rank, {it.parent})}
            for number, it in self.jobs.items()
        }
        found: set[int] = set()
        new = {job}
        while new:
            found |= new
            new = {one for one in links if any(one in links[it] or it in links[one] for it in found)} - found
        return found

    def look_if_parted(self, job: int) -> None:
        """Nobody of a job that ends is still at it, or needed by others that are."""
        ranks = [rank for rank in self.launcher.ranks.values() if rank.job == job and rank.status is None]
        if self.jobs[job].is_ending and all(self.is_alone(rank) for rank in ranks):
            self.end_now(job)

    def end_now(self, job: int) -> None:
        launcher = self.launcher
        launcher.loop.drop_timer(f"part {job}")
        launcher.signal_ranks(signal.SIGTERM, job)
        launcher.signal_ranks(signal.SIGCONT, job)
        launcher.loop.set_timer(f"kill {job}", launcher.job.grace, partial(launcher.signal_ranks, signal.SIGKILL, job))

    def look_if_over(self, job: int) -> None:
        """The ranks of a job may all have ended."""
        if job in self.jobs and all(rank.status is not None for rank in self.launcher.ranks.values() if rank.job == job):
            self.over.add(job)

    def close_those_over(self) -> None:
        """Nothing is kept of jobs that are over."""
        launcher = self.launcher
        for job in self.over:
            del self.jobs[job], launcher.spaces[job]
            for key in [key for key in launcher.ranks if key[0] == job]:
                del launcher.ranks[key]
            launcher.loop.drop_timer(f"part {job}")
            launcher.loop.drop_timer(f"kill {job}")
            launcher.local.close_job(job)
            if launcher.hosts is not None:
                launcher.hosts.send("close_job", job=job)
        self.over.clear()
