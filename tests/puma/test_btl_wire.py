"""Portals over the job's byte transports, beside MPI on the same ones."""

from __future__ import annotations

import pytest
from ompy_puma.application import Application
from ompy_puma.btl_wire import kernel_over
from ompy_puma.capability import GroupCapability
from ompy_puma.descriptor import ACKNOWLEDGE, READ, SAVE_BOTH, SENDER_OFFSET

from ompy.core.progress import progress_once
from ompy.core.reach import refusal
from ompy.mpi.environment import instance

BODY = bytes(range(251)) * 8000  # 2 MB


def member(comm) -> Application:
    """This rank's process, in a group of all ranks."""
    kernel = kernel_over(instance().bml, comm.rank)
    process = Application(1, comm.rank)
    kernel.create_context(process, 1)
    process.grant(GroupCapability(1, [(node, 1) for node in range(comm.size)]))
    comm.Barrier()
    return process


def until(done) -> None:
    while not done():
        progress_once()


def deposited(process: Application) -> list:
    return [event for event in process.events if event.kind.name == "EVENT_DEPOSITED"]


def exchange(comm) -> None:
    process = member(comm)
    memory = bytearray(comm.size)
    process.attach(0, process.single(memory, options=SENDER_OFFSET))
    comm.Barrier()
    for rank in range(comm.size):
        process.send(0, rank, 0, bytes([comm.rank + 1]), offset=comm.rank)
    until(lambda: len(process.events) == comm.size)
    assert memory == bytes(range(1, comm.size + 1))
    comm.Barrier()


def long_messages(comm) -> None:
    process = member(comm)
    after = bytearray(1)
    block = process.independent([bytearray(len(BODY)), after], 0, SAVE_BOTH, ACKNOWLEDGE)
    process.attach(0, block)
    process.attach(1, process.single(BODY, READ, 0, SENDER_OFFSET))
    inbox = bytearray(len(BODY))
    process.attach(2, process.single(inbox))
    process.attach(3, process.single(bytearray(0)))
    comm.Barrier()
    neighbour = (comm.rank + 1) % comm.size
    process.send(0, neighbour, 0, BODY, answer=3)
    process.send(0, neighbour, 0, b"z", answer=3)
    until(lambda: len([each for each in deposited(process) if each.portal in (0, 3)]) == 4)
    assert after == b"z"
    assert process.buffer(block, 0)[1] == len(BODY)
    process.send(0, neighbour, 1, offset=11, answer=2, answer_length=len(BODY) - 11)
    until(lambda: any(event.portal == 2 for event in deposited(process)))
    assert inbox[: len(BODY) - 11] == BODY[11:]
    comm.Barrier()


@pytest.mark.ompy(1, 3, mca={"btl": "self,sm"})
def test_every_process_reaches_every_other_over_shared_memory(comm):
    exchange(comm)


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_every_process_reaches_every_other_over_zeromq(comm):
    exchange(comm)


@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_long_messages_over_shared_memory(comm):
    long_messages(comm)


@pytest.mark.skipif(refusal() is not None, reason=f"the kernel copies nothing between processes: {refusal()}")
@pytest.mark.ompy(2, mca={"btl": "self,sm", "btl_sm_single_copy": "cma"})
def test_long_messages_are_copied_once_where_a_transport_reads_peer_memory(comm):
    long_messages(comm)
    statistics = kernel_over(instance().bml, comm.rank).statistics
    assert statistics["bytes_fetched"] == 2 * len(BODY) - 11
    assert statistics["bytes_copied"] == 1


@pytest.mark.ompy(2, mca={"btl": "self,zmq"})
def test_long_messages_over_zeromq(comm):
    long_messages(comm)
