"""`tests/hostile/chaos.py [--jobs N] [--seed N]`: jobs of which something is killed, stopped or loses its descriptors.

Each job is of 2 to 8 ranks that pass messages round for a moment.  At a random time a random victim (launcher, keeper, both, a
rank) gets SIGKILL, is stopped for a second, or closes some of its own descriptors.  Then: no process and no segment is left ten
seconds later, the exit code is right, and somebody has said what happened.  Exit code 1 when a job did otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))

from launching import Launch

PATIENCE = 60.0
LEFT_AFTER = 10.0
PAUSE = 1.0
CLOSE = int(signal.SIGRTMIN) + 9
# Both for launcher and ranks: at the signal, close a random half of what is open, but standard error.
CLOSER = f"""
import os, random, signal
def close(number, frame):
    for name in os.listdir('/proc/self/fd'):
        if int(name) != 2 and random.random() < 0.5:
            try: os.close(int(name))
            except OSError: pass
signal.signal({CLOSE}, close)
"""
RANK = (
    CLOSER
    + """
import sys, time
from ompy import MPI
comm = MPI.COMM_WORLD
print('up', flush=True)
end = time.monotonic() + 1.5
size = int(os.environ['CHAOS_BYTES'])
while not comm.allreduce(time.monotonic() > end, MPI.LOR):
    comm.sendrecv(b'x' * size, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
print('done', flush=True)
"""
)
LAUNCHER = CLOSER + "import sys\nfrom ompy.cli.ompyrun import main\nsys.exit(main())"
VICTIMS = ("launcher", "keeper", "both", "rank", "rank", "rank")
DEEDS = ("kill", "kill", "stop", "close")


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone by now"


class Case:
    """What is done to one job, drawn from a seed."""

    def __init__(self, seed: int, number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        self.number = number
        self.ranks = rng.randrange(2, 9)
        self.transport = rng.choice(("self,sm", "self,sm", "self,zmq"))
        self.backing = rng.choice(("memfd", "file"))
        self.bytes = rng.choice((8, 5000, 300_000))
        self.victim = rng.choice(VICTIMS)
        self.deed = rng.choice(DEEDS)
        if self.victim in ("keeper", "both") and self.deed == "close":
            self.deed = "kill"
        # From before the ranks are up until the job is at its end.
        self.delay = rng.choice((rng.uniform(0, 0.3), rng.uniform(0, 1.0), rng.uniform(0, 3.0)))
        self.rank = rng.randrange(self.ranks)

    def __str__(self) -> str:
        where = f"rank {self.rank}" if self.victim == "rank" else self.victim
        how = f"{self.ranks} ranks, {self.transport}, {self.backing}, {self.bytes} bytes"
        return f"job {self.number} ({how}): {self.deed} {where} after {self.delay:.2f} s"

    def run(self) -> str:
        """What went wrong, or nothing."""
        words = ("-n", str(self.ranks), "--mca", "btl", self.transport, "--mca", "btl_sm_backing", self.backing)
        command = (sys.executable, "-c", LAUNCHER, *words, "--verbose", sys.executable, "-c", RANK)
        with Launch(environment={"CHAOS_BYTES": str(self.bytes)}, command=command) as job:
            time.sleep(self.delay)
            touched = self.strike(job)
            try:
                code = job.finish(PATIENCE)
            except subprocess.TimeoutExpired:
                return f"still there after {PATIENCE:g} s; {job.living()}"
            left = job.wait_until_gone(LEFT_AFTER)
            if left:
                return f"left: {[(pid, name_of(pid)) for pid in left]}"
            segments = [name for name in os.listdir("/dev/shm") if f"ompy-{job.process.pid}-" in name]
            if segments:
                return f"segments left: {segments}"
            return self.verdict(code, job, touched)

    def strike(self, job: Launch) -> bool:
        """Do it; False when the victim is not there (yet, or any more)."""
        pids = self.pids(job)
        if not pids:
            return False
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "close": CLOSE}[self.deed]
        try:
            for pid in pids:
                os.kill(pid, number)
            if self.deed == "stop":
                time.sleep(PAUSE)
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        return True

    def pids(self, job: Launch) -> list[int]:
        keeper, ranks = [], []
        for pid in job.living():
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == "ompyrun-keeper":
                    keeper.append(pid)
                elif f"PMI_RANK={self.rank}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    ranks.append(pid)
            except OSError:
                continue
        chosen = {"launcher": [job.process.pid], "keeper": keeper, "both": [*keeper, job.process.pid], "rank": ranks[:1]}
        return chosen[self.victim]

    def verdict(self, code: int, job: Launch, touched: bool) -> str:
        whole = code == 0 and job.stdout.split().count("done") == self.ranks
        told = [line for line in job.stderr.splitlines() if line]
        if not touched or self.deed == "stop" or self.victim == "keeper":
            return "" if whole else f"exit code {code} where nothing was broken: {told[-5:]}"
        if self.deed == "close":
            # It may not have mattered, or have come before there was a handler, or before the gaps were filled.
            unharmed = whole or code == -CLOSE or (code == 0 and job.stderr.count("exited with code 0") == self.ranks)
            return "" if unharmed or (code != 0 and told) else f"exit code {code}, said: {told[-5:]}, {job.stdout.split()}"
        if self.victim in ("launcher", "both"):
            return "" if code == -signal.SIGKILL or whole else f"exit code {code} of a killed launcher"
        if whole:
            return ""  # it was at its end already
        named = re.search(rf"rank {self.rank} \(\S+, \d+\) killed by SIGKILL", job.stderr)
        return "" if code == 128 + signal.SIGKILL and named else f"exit code {code}, said: {told[-5:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    print(f"{given.jobs} jobs of seed {given.seed}", flush=True)
    failures = 0
    for number in range(given.first, given.first + given.jobs):
        case = Case(given.seed, number)
        problem = case.run()
        if problem:
            failures += 1
            print(f"{case}: {problem}", flush=True)
    print(f"{failures} of {given.jobs} jobs did not end well")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
