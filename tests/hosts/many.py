"""Very many ranks on hosts that are namespaces: they start, make one allreduce, and end."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from machines import Launched, Machines

LIMIT = 1800.0  # seconds
PROGRAM = """
import os, time
from ompy import MPI
comm = MPI.COMM_WORLD
begun, used = time.time(), sum(os.times()[:2])
assert comm.allreduce(comm.rank) == comm.size * (comm.size - 1) // 2
done, more = time.time(), sum(os.times()[:2]) - used
from ompy.mpi.environment import instance
with open("/proc/self/smaps_rollup") as stream:
    sizes = dict(line.split()[:2] for line in stream if line.endswith("kB\\n"))
kilobytes = [int(sizes[name + ":"]) for name in ("Rss", "Pss", "Private_Dirty")]
print(comm.rank, begun, done, used, more, len(instance().modex.made), *kilobytes)
"""


def start_many(folder: Path, hosts: int, ranks: int, fan_out: int) -> int:
    """Print how long it took, and what each rank holds."""
    machines = Machines(folder, hosts, are_light=True)
    try:
        names = ",".join(f"{it.name}:{ranks}" for it in machines.machines)
        words = [sys.executable, "-m", "ompy.cli.ompyrun", "--launch-agent", machines.agent, "--host", names]
        words += ["--mca", "ompyrun_fan_out", str(fan_out), "--mca", "ompyrun_host_silence", "120"]
        words += ["--mca", "ompyrun_start_timeout", str(LIMIT), sys.executable, "-c", PROGRAM]
        begun = time.time()
        job = Launched(machines["n1"], words, folder)
        status = job.finish(LIMIT)
        if status:
            print(job.stderr, file=sys.stderr)
            return status
        report([line.split() for line in job.stdout.splitlines()], begun, job.seconds, hosts)
        return 0
    finally:
        machines.end()


def report(lines: list[list[str]], begun: float, seconds: float, hosts: int) -> None:
    first, last = (max(float(line[place]) for line in lines) - begun for place in (1, 2))
    print(f"{len(lines)} ranks on {hosts} hosts: all begun after {first:.1f} s, allreduce {last:.1f} s, end {seconds:.1f} s")
    for place, name in ((3, "to begin"), (4, "for the allreduce")):
        used = [float(line[place]) for line in lines]
        print(f"processor time of a rank {name}: median {statistics.median(used):.2f} s, most {max(used):.2f} s")
    peers = [int(line[5]) - 1 for line in lines]
    print(f"cards of peers that a rank has: {min(peers)} to {max(peers)}")
    for place, name in enumerate(("resident", "proportional share", "private, written"), 6):
        sizes = [int(line[place]) / 1024 for line in lines]
        print(f"memory of a rank, {name}: median {statistics.median(sizes):.1f} MiB, most {max(sizes):.1f} MiB")
