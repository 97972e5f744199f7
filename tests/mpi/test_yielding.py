"""Ranks that share cores: who asks in vain whether something has come offers its own to those that have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ompy import MPI
from ompy.core.progress import counters

ASKED = 100
SHARING = {"mpi_yield_when_idle": "yes"}

Ask = Callable[[], object]


def yields_while(ask: Ask) -> int:
    before = counters()["yields"]
    for _ in range(ASKED):
        ask()
    return counters()["yields"] - before


def receive(comm: MPI.Intracomm, ask_of: Callable[[Any], object]) -> Iterator[Ask]:
    number = np.zeros(1)
    request = comm.Irecv(number, 1, 7)
    yield lambda: ask_of(request)
    comm.send(None, 1)
    request.Wait()


def partitioned(comm: MPI.Intracomm) -> Iterator[Ask]:
    request = comm.Precv_init(np.zeros(2), 2, 1, 7)
    request.Start()
    yield lambda: request.Parrived(0)
    comm.send(None, 1)
    request.Wait()
    request.Free()


def probe(comm: MPI.Intracomm, name: str) -> Iterator[Ask]:
    yield lambda: getattr(comm, name)(1, 7)
    comm.send(None, 1)
    comm.Recv(np.zeros(1), 1, 7)


WAYS: dict[str, Callable[[MPI.Intracomm], Iterator[Ask]]] = {
    "Test": lambda comm: receive(comm, lambda request: request.Test()),
    "Testall": lambda comm: receive(comm, lambda request: MPI.Request.Testall([request])),
    "Testany": lambda comm: receive(comm, lambda request: MPI.Request.Testany([request])),
    "Testsome": lambda comm: receive(comm, lambda request: MPI.Request.Testsome([request])),
    "Get_status": lambda comm: receive(comm, lambda request: request.Get_status()),
    "Iprobe": lambda comm: probe(comm, "Iprobe"),
    "Improbe": lambda comm: probe(comm, "Improbe"),
    "Parrived": partitioned,
}


def answer(comm: MPI.Intracomm, way: str) -> None:
    comm.recv(None, 0)
    if way == "Parrived":
        request = comm.Psend_init(np.zeros(2), 2, 0, 7)
        request.Start()
        request.Pready_range(0, 1)
        request.Wait()
        request.Free()
    else:
        comm.Send(np.zeros(1), 0, 7)


def asking(comm: MPI.Intracomm, way: str) -> int:
    """The yields of rank 0, which asks for what rank 1 sends once it has asked often enough."""
    yields = 0
    if comm.rank == 0:
        for ask in WAYS[way](comm):
            yields = yields_while(ask)
    else:
        answer(comm, way)
    return yields


def ask_in_every_way(comm: MPI.Intracomm, without: str = "") -> dict[str, int]:
    """Of each way the yields of rank 0."""
    return {way: asking(comm, way) for way in WAYS if way != without}


def assert_each_yields(comm: MPI.Intracomm, without: str = "") -> None:
    for way, yields in ask_in_every_way(comm, without).items():
        assert comm.rank or ASKED // 8 <= yields <= ASKED, way


@pytest.mark.ompy(2, mca=SHARING | {"btl": "self,sm"})
def test_who_asks_in_vain_yields_over_shared_memory(comm: MPI.Intracomm) -> None:
    assert_each_yields(comm)


@pytest.mark.ompy(2, mca=SHARING | {"btl": "self,tcp"})
def test_who_asks_in_vain_yields_over_sockets(comm: MPI.Intracomm) -> None:
    assert_each_yields(comm)


@pytest.mark.ompy(2, mca=SHARING | {"pml": "cm", "mtl": "portals"})
def test_who_asks_in_vain_yields_over_a_matching_transport(comm: MPI.Intracomm) -> None:
    assert_each_yields(comm)


@pytest.mark.ompy(2, mca=SHARING | {"pml": "rpi"})
def test_who_asks_in_vain_yields_over_a_request_progression_interface(comm: MPI.Intracomm) -> None:
    assert_each_yields(comm, without="Parrived")


@pytest.mark.ompy(2, mca={"mpi_yield_when_idle": "no"})
def test_who_has_a_core_to_itself_asks_without_yielding(comm: MPI.Intracomm) -> None:
    assert set(ask_in_every_way(comm).values()) == {0}


def look_at_a_window(comm: MPI.Intracomm) -> None:
    """Rank 0 at its own: whether its exposure is over, and what is in its memory."""
    win = MPI.Win.Allocate(8, 8, comm=comm)
    others = comm.Get_group().Incl([1 - comm.rank])
    if comm.rank == 0:
        win.Post(others)
        assert yields_while(win.Test) >= ASKED // 8
        comm.send(None, 1)
        win.Wait()
    else:
        win.Start(others)
        comm.recv(None, 0)
        win.Complete()
    win.Lock_all()
    if comm.rank == 0:
        assert yields_while(win.Sync) >= ASKED // 8
    win.Unlock_all()
    others.Free()
    win.Free()


@pytest.mark.ompy(2, mca=SHARING | {"osc": "sm"})
def test_who_looks_at_its_window_yields_in_shared_memory(comm: MPI.Intracomm) -> None:
    look_at_a_window(comm)


@pytest.mark.ompy(2, mca=SHARING | {"osc": "pt2pt"})
def test_who_looks_at_its_window_yields_over_messages(comm: MPI.Intracomm) -> None:
    look_at_a_window(comm)


@pytest.mark.ompy(2, mca=SHARING | {"osc": "rdma"})
def test_who_looks_at_its_window_yields_over_remote_memory(comm: MPI.Intracomm) -> None:
    look_at_a_window(comm)


@pytest.mark.ompy(2, mca=SHARING)
def test_a_test_that_brings_something_does_not_yield(comm: MPI.Intracomm) -> None:
    number, yields = np.zeros(1), 0
    for _ in range(ASKED):
        if comm.rank == 0:
            request = comm.Irecv(number, 1, 7)
            comm.send(None, 1)
            comm.recv(None, 1, 8)  # the other one has come before it
            before = counters()["yields"]
            assert request.Test()
            yields += counters()["yields"] - before
        else:
            comm.recv(None, 0)
            comm.Send(number, 0, 7)
            comm.send(None, 0, 8)
    assert yields == 0
