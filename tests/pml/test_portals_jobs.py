"""mtl/portals in jobs of several ranks: floods, many communicators, collectives over messages, a peer's death, copies."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

PORTALS = {"pml": "cm", "mtl": "portals"}
HEAP = 1 << 20
FLOOD = Path(__file__).resolve().parents[2] / "docs" / "examples" / "flood.py"


def mtl():
    from ompy.mca.pml import chosen

    return chosen().mtl


@pytest.mark.ompy(2, mca={**PORTALS, "mtl_portals_heap": str(HEAP), "btl_sm_eager_limit": "4096"}, timeout=120)
@pytest.mark.parametrize("messages", [100_000])
def test_a_flood_loses_nothing_and_takes_no_more_memory_than_the_heap(comm, messages):
    memory = bytearray(1024)
    if comm.rank == 0:
        comm.Barrier()
        for number in range(messages):
            memory[:4] = number.to_bytes(4, "little")
            comm.Send(memory, 1, 1)
        # The receiver has not taken these yet, and the library gets through all the same.
        requests = [comm.Isend(memory, 1, 2) for _ in range(3000)]
        comm.Barrier()
        for request in requests:
            request.Wait()
        return
    comm.Barrier()
    while mtl().statistics()["heap_used"] < HEAP // 4:
        comm.Iprobe(source=0, tag=3)  # it computes, and looks now and then
    for number in range(messages):
        comm.Recv(memory, 0, 1)
        assert int.from_bytes(memory[:4], "little") == number
    comm.Barrier()
    for _ in range(3000):
        comm.Recv(memory, 0, 2)
    counts = mtl().statistics()
    assert HEAP // 4 <= counts["heap_most_used"] <= HEAP
    assert counts["heap_used"] == 0


def test_the_flood_of_the_documents_runs() -> None:
    launcher = [str(Path(sys.executable).with_name("ompyrun")), "-n", "2", "--timeout", "60", "--mca", "pml", "cm"]
    command = [*launcher, "--mca", "mtl_portals_heap", str(HEAP), sys.executable, str(FLOOD), "5000"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert result.returncode == 0, result.stderr
    assert "none lost" in result.stdout
    grown = float(re.search(r"grew by ([\d.]+) MiB", result.stdout)[1])
    assert grown < 4


@pytest.mark.ompy(2, mca={**PORTALS, "btl": "self,sm", "btl_sm_single_copy": "cma"})
def test_a_long_message_that_is_expected_is_copied_once(comm):
    size = 4 << 20
    kernel = mtl().engine.kernel
    if comm.rank == 0:
        comm.Recv(bytearray(0), 1)
        comm.Send(b"x" * size, 1)
        comm.Barrier()
        # No byte of the body has passed through this process's kernel.
        assert kernel.statistics["bytes_copied"] < 10_000
        return
    received = bytearray(size)
    request = comm.Irecv(received, 0)
    before = kernel.statistics
    comm.Send(bytearray(0), 0)
    request.Wait()
    after = kernel.statistics
    comm.Barrier()
    assert after["bytes_fetched"] - before["bytes_fetched"] == size
    assert after["bytes_copied"] - before["bytes_copied"] < 1000
    assert received == b"x" * size


@pytest.mark.ompy(3, mca=PORTALS)
def test_communicators_come_and_go(comm, seed):
    rng = random.Random(seed)
    comms = []
    for round_number in range(60):
        if comms and rng.random() < 0.4:
            comms.pop(rng.randrange(len(comms))).Free()
        else:
            color = [rng.randrange(2) for _ in range(comm.size)]
            comms.append(comm.Split(color[comm.rank], key=-comm.rank))
        for made in comms:
            right, left = (made.rank + 1) % made.size, (made.rank - 1) % made.size
            got = made.sendrecv((round_number, made.rank), right, 3, source=left, recvtag=3)
            assert got == (round_number, left)
    for made in comms:
        made.Free()


@pytest.mark.ompy(4, mca={**PORTALS, "coll": "basic"})
def test_the_two_sides_of_an_inter_communicator_and_their_collectives(comm):
    from ompy import MPI

    low = comm.rank < 1
    side = comm.Split(low, comm.rank)
    inter = side.Create_intercomm(0, comm, 1 if low else 0, 5)
    assert inter.allgather(comm.rank) == ([1, 2, 3] if low else [0])
    if low:
        assert sorted(inter.recv(source=MPI.ANY_SOURCE) for _ in range(3)) == [0, 1, 2]
    else:
        inter.send(side.rank, 0)
    whole = inter.Merge()
    assert whole.allreduce(1) == 4
    for made in (whole, inter, side):
        made.Free()


def test_who_waits_for_a_killed_rank_is_told() -> None:
    program = """
import os, signal
from ompy import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
if comm.rank == 1:
    comm.recv(source=0)
    os.kill(os.getpid(), signal.SIGKILL)
comm.send(None, 1)
try:
    comm.Recv(bytearray(8), source=1)
except MPI.Exception as error:
    print("told:", error, flush=True)
"""
    launcher = [str(Path(sys.executable).with_name("ompyrun")), "-n", "2", "--timeout", "30", "--mca", "pml", "cm"]
    result = subprocess.run([*launcher, sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    assert "rank 1" in result.stderr
    assert "killed by SIGKILL" in result.stderr


FEW = {**PORTALS, "mtl_portals_requests": "16"}
LONG = 800_000


def error_of(request):
    from ompy import MPI

    try:
        request.Wait()
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS


@pytest.mark.ompy(2, mca=FEW, timeout=60)
def test_a_send_that_waited_and_finds_no_room_is_an_error_of_its_own_request(comm):
    from ompy import MPI

    if comm.rank == 0:
        requests = [comm.Issend(bytes(8), 1, tag) for tag in range(100)]
        comm.send(None, 1, 1000)
        errors = [error_of(request) for request in requests]
        assert set(errors) == {MPI.SUCCESS, MPI.ERR_NO_MEM}
        failed = [tag for tag, error in enumerate(errors) if error]
        comm.send(failed, 1, 1001)
        return
    received, status = [], MPI.Status()
    while status.tag != 1001:
        comm.Probe(0, MPI.ANY_TAG, status)
        if status.tag < 1000:
            received.append(status.tag)
            comm.Recv(bytearray(8), 0, status.tag)
        elif status.tag == 1000:
            comm.recv(source=0, tag=1000)
    failed = comm.recv(source=0, tag=1001)
    assert received == [tag for tag in range(100) if tag not in failed]


@pytest.mark.ompy(2, mca=FEW, timeout=60)
@pytest.mark.parametrize("call", ["Recv", "Irecv", "recv", "irecv"])
def test_a_matched_message_can_be_received_when_there_is_room_again(comm, call):
    from ompy import MPI

    buffer = bytearray(LONG)
    arguments = [] if call in ("recv", "irecv") else [buffer]

    if comm.rank == 0:
        request = comm.Isend(b"y" * LONG, 1)
        comm.Barrier()
        request.Wait()
        return
    message, receives = comm.Mprobe(0), []
    with contextlib.suppress(MPI.Exception):
        while True:
            receives.append(MPI.COMM_SELF.Irecv(bytearray(1), 0))
    for _ in range(2):
        with pytest.raises(MPI.Exception, match="mtl_portals_requests"):
            getattr(message, call)(*arguments)
        assert message != MPI.MESSAGE_NULL
    for request in receives:
        request.Cancel()
        request.Wait()
    message.Recv(buffer)
    assert buffer == b"y" * LONG
    comm.Barrier()
