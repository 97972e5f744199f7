"""Several networks between two hosts: messages go over all of them, and past the loss of any."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from links import DEVICES, mca, over
from machines import Machines, Start

pytestmark = pytest.mark.long

# Both ranks send and check; rank 0 says how far it is, and waits until it is told that the network has changed.
EXCHANGES = """
import random, sys
from ompy import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.rank
rng = random.Random({seed})
for turn in range({turns}):
    if comm.rank == 0:
        print(turn, flush=True)
        sys.stdin.readline()
    comm.Barrier()
    sizes = rng.choices([0, 1, 8, 4096, 100_000, 1 << 20], [20, 20, 20, 10, 5, 1], k=600)
    requests = []
    for number, size in enumerate(sizes):
        requests.append(comm.Isend(bytes([(turn + number + comm.rank) % 251]) * size, peer, number % 3))
        data = bytearray(size + 1)
        status = MPI.Status()
        comm.Recv([data, size + 1, MPI.BYTE], peer, number % 3, status)
        assert status.Get_count(MPI.BYTE) == size, (turn, number, size, status.Get_count(MPI.BYTE))
        assert data[:size] == bytes([(turn + number + peer) % 251]) * size, (turn, number, size)
    MPI.Request.Waitall(requests)
print("good", flush=True)
"""


@pytest.fixture
def wires(machines: Machines) -> Iterator[None]:
    for device, subnet in DEVICES.items():
        machines.join("n1", "n2", device, subnet)
    yield
    for device in DEVICES:
        machines["n1"].ip("link", "delete", "dev", device)


KINDS = {
    "a link of tcp": over("tcp", 1),
    "two links of tcp": over("tcp", 2),
    "two links of zmq": over("zmq", 2),
    "tcp, which goes first, and zmq": over("zmq", 1) | {"btl": "tcp,zmq,self", "btl_tcp_if_include": "link2"},
    "zmq, which goes first, and tcp": over("zmq", 1)
    | {"btl": "tcp,zmq,self", "btl_tcp_if_include": "link1", "btl_zmq_interface": "link2"},
}


@pytest.mark.usefixtures("wires")
@pytest.mark.parametrize("kind", KINDS)
def test_devices_that_go_down_and_come_back_lose_nothing(machines: Machines, ompyrun: Start, kind: str) -> None:
    turns = 8
    program = EXCHANGES.format(seed=len(kind), turns=turns)
    with ompyrun("--host", "n1:1,n2:1", *mca(KINDS[kind]), sys.executable, "-c", program, stdin="") as job:
        assert job.process.stdin is not None
        for turn in range(turns):
            assert job.line() == f"{turn}\n", job.finish(30)
            down, up = ("link1", "link2") if turn % 2 else ("link2", "link1")
            machines["n1"].ip("link", "set", "dev", up, "up")
            machines["n1"].ip("link", "set", "dev", down, "down")
            job.process.stdin.write(b"\n")
        machines["n1"].ip("link", "set", "dev", "link1", "up")
        assert [job.line(), job.line()] == ["good\n"] * 2, job.stderr
        assert job.finish(60) == 0, job.stderr
