"""Two networks between two hosts: how much more two links carry than one, and what the loss of one costs."""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

from machines import Launched, Machines

DEVICES = {"link1": "10.78.1", "link2": "10.78.2"}
# May a peer be out of reach, in milliseconds.
PATIENCE = 60_000

# Of each device, while bandwidths are compared: what two processors can do without effort.
RATE = ("tbf", "rate", "200mbit", "burst", "64kb", "latency", "100ms")
STREAM = """
import time
from ompy import MPI
comm = MPI.COMM_WORLD
size, count = 1 << 20, 48
data = [bytearray(size) for _ in range(8)]
for turn in range(2):
    comm.Barrier()
    begun = time.perf_counter()
    move = comm.Isend if comm.rank == 0 else comm.Irecv
    requests = [move(data[number % 8], 1 - comm.rank, number) for number in range(count)]
    MPI.Request.Waitall(requests)
    comm.Barrier()
if comm.rank == 0:
    print(size * count / (time.perf_counter() - begun) / 1e6)
"""

# Both ranks send and check, in windows; the longest window that had to wait is the stall.
MESSAGES = """
import random, sys, time
from ompy import MPI
comm = MPI.COMM_WORLD
peer, count, window = 1 - comm.rank, int(sys.argv[1]), 50
rng, status, longest = random.Random(sys.argv[2]), MPI.Status(), 0.0
if comm.rank == 0:
    print("begun", flush=True)
for first in range(0, count, window):
    begun = time.perf_counter()
    sizes = rng.choices([0, 1, 8, 100, 4096, 20_000, 100_000, 1 << 20], [100, 100, 400, 300, 60, 20, 5, 1], k=window)
    requests = []
    for number, size in enumerate(sizes, first):
        sent = number.to_bytes(8, "little") + bytes([(number + comm.rank) % 251]) * (size - 8) if size >= 8 else bytes(size)
        requests.append(comm.Isend(sent, peer, number % 7))
    for number, size in enumerate(sizes, first):
        data = bytearray(size + 1)
        comm.Recv([data, size + 1, MPI.BYTE], peer, MPI.ANY_TAG, status)
        assert (status.tag, status.Get_count(MPI.BYTE)) == (number % 7, size), (number, size, status.tag)
        if size >= 8:
            assert int.from_bytes(data[:8], "little") == number, (number, data[:8])
            assert data[8:size] == bytes([(number + peer) % 251]) * (size - 8), number
    MPI.Request.Waitall(requests)
    longest = max(longest, time.perf_counter() - begun)
longest = comm.allreduce(longest, MPI.MAX)
if comm.rank == 0:
    print("longest", longest, flush=True)
"""
# Seconds between two losses, and for which a link is away.
PAUSE = 3.0
AWAY = 1.5


def over(transport: str, links: int) -> dict[str, object]:
    """Parameters for so many links, where what was lost with one is sent again."""
    if transport == "tcp":
        names = ",".join(DEVICES)
        return {"btl": "tcp,self", "btl_tcp_if_include": names, "btl_tcp_links": links, "btl_tcp_failover_timeout": PATIENCE}
    names = ",".join([*DEVICES][:links])
    ways = {"btl": "zmq,self", "btl_zmq_interface": names, "btl_zmq_links": links}
    return ways | {"pml": "dr", "pml_dr_failover_timeout": PATIENCE}


def mca(parameters: dict[str, object]) -> list[str]:
    """As words for ompyrun."""
    return [word for name, value in parameters.items() for word in ("--mca", name, str(value))]


def ompyrun(machines: Machines, parameters: dict[str, object], *program: str) -> list[str]:
    words = [sys.executable, "-m", "ompy.cli.ompyrun", "--mca", "plm_ssh_agent", machines.agent, "--host", "n1:1,n2:1"]
    return [*words, *mca(parameters), sys.executable, "-c", *program]


def compare_links(folder: Path, transport: str, rounds: int, messages: int) -> int:
    """Print the bandwidths and their ratio; then the longest stall under losses."""
    machines = Machines(folder, 2)
    try:
        for device, subnet in DEVICES.items():
            machines.join("n1", "n2", device, subnet)
        return compare_bandwidths(machines, folder, transport, rounds) or lose_links(machines, folder, transport, messages)
    finally:
        machines.end()


def compare_bandwidths(machines: Machines, folder: Path, transport: str, rounds: int) -> int:
    for name in ("n1", "n2"):
        for device in DEVICES:
            machines[name].run("tc", "qdisc", "add", "dev", device, "root", *RATE)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for links, found in rates.items():
            with Launched(machines["n1"], ompyrun(machines, over(transport, links), STREAM), folder) as job:
                if job.finish(300):
                    print(job.stderr, file=sys.stderr)
                    return 1
                found.append(float(job.stdout))
    for name in ("n1", "n2"):
        for device in DEVICES:
            machines[name].run("tc", "qdisc", "delete", "dev", device, "root")
    for links, found in rates.items():
        print(
            f"{transport}, {links} of 2 links of {RATE[2]}: "
            f"median {statistics.median(found):.1f} MB/s, {min(found):.1f} to {max(found):.1f}"
        )
    print(
        f"median of the ratios {statistics.median(two / one for one, two in zip(*rates.values(), strict=True)):.2f}", flush=True
    )
    return 0


def lose_links(machines: Machines, folder: Path, transport: str, messages: int) -> int:
    """One link goes every few seconds, its device or its address, until all messages have been taken."""
    rng = random.Random(messages)
    losses = 0
    with Launched(
        machines["n1"], ompyrun(machines, over(transport, 2), MESSAGES, str(messages // 2), str(messages)), folder
    ) as job:
        begun = job.line()
        start = time.monotonic()
        while begun and job.process.poll() is None:
            device, host = rng.choice(list(DEVICES)), rng.choice(("n1", "n2"))
            address = f"{DEVICES[device]}.{1 if host == 'n1' else 2}/24"
            ways = ((("link", "set", "dev", device, "down"), ("link", "set", "dev", device, "up")),
                    (("address", "delete", address, "dev", device), ("address", "add", address, "dev", device)))  # fmt: skip
            away, back = rng.choice(ways)
            machines[host].ip(*away)
            time.sleep(AWAY)
            machines[host].ip(*back)
            losses += 1
            time.sleep(PAUSE - AWAY)
        seconds = time.monotonic() - start
        if job.finish(60) or "longest" not in job.stdout:
            print(job.stdout, job.stderr, file=sys.stderr)
            return 1
    stall = float(job.stdout.split()[1])
    print(f"{transport}, {messages} messages in {seconds:.0f} s, a link lost {losses} times: none lost, twice or out of order; "
          f"longest stall {stall:.2f} s")  # fmt: skip
    return 0
