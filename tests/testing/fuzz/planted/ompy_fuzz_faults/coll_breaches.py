"""Breaches of the contract of collective components, over coll/basic, one each."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from typing import ClassVar

from ompy.core.errors import MPIError
from ompy.core.memory import address_of, view
from ompy.core.operation import predefined as operation
from ompy.core.progress import wait_request
from ompy.core.progress_source import ProgressSource, register_source
from ompy.core.request import CompletedRequest
from ompy.core.typemap import predefined
from ompy.mca.coll import FUNCTIONS, CollectiveCall
from ompy.mca.component import Context, Offer, Refusal
from ompy.mca.pml import chosen
from ompy_fuzz_faults.coll_faults import Coll, received

STANDARD = 0  # the mode of a send
BYTE = predefined(1)
GOOD = dict.fromkeys(FUNCTIONS, "auto")


def offer(context: Context, fault: str) -> Offer | Refusal:
    communicator = context.communicator
    kind = globals()[fault]
    if communicator is None:
        return Refusal("it serves communicators")
    functions = FUNCTIONS
    if kind is OffersTheLastRankLess and communicator.rank == communicator.size - 1 > 0:
        functions = FUNCTIONS[:5]
    return Offer(modules=[kind(communicator, 4, GOOD)], priority=90, functions=functions)


def message(comm, rank, send: bool, tag: int, data: bytearray | None = None):
    """A message of bytes to or from a rank, or an empty one."""
    memory = (0, 0, BYTE) if data is None else (address_of(data), len(data), BYTE)
    pml = chosen()
    request = pml.isend(*memory, rank, tag, STANDARD, comm) if send else pml.irecv(*memory, rank, tag, comm)
    wait_request(request)


def width(call: CollectiveCall, side: str = "recv") -> int:
    typemap = getattr(call, f"{side}_type")
    return 0 if typemap is None else getattr(call, f"{side}_count") * typemap.size


# -- synchronization


class BarrierDoesNothing(Coll):
    def run(self, function, call, comm) -> int:
        return 0 if FUNCTIONS[function] == "barrier" else super().run(function, call, comm)


class Barrier(Coll):
    """`meet` in its place."""

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] != "barrier" or comm.size == 1:
            return super().run(function, call, comm)
        self.meet(comm, comm.take_collective_tag())
        return 0

    def meet(self, comm, tag) -> None:
        raise NotImplementedError


class BarrierLetsTheRootGo(Barrier):
    """Rank 0 tells all others to go, and waits for none."""

    def meet(self, comm, tag) -> None:
        for peer in range(1, comm.size) if comm.rank == 0 else ():
            message(comm, peer, True, tag)
        if comm.rank:
            message(comm, 0, False, tag)


class BarrierForgetsTheLast(Barrier):
    """All meet but the last, who waits for rank 0."""

    def meet(self, comm, tag) -> None:
        last = comm.size - 1
        if comm.rank == 0:
            for peer in range(1, last):
                message(comm, peer, False, tag)
            for peer in range(1, comm.size):
                message(comm, peer, True, tag)
        else:
            if comm.rank < last:
                message(comm, 0, True, tag)
            message(comm, 0, False, tag)


class BarrierOfNeighbours(Barrier):
    """Each rank waits for the one before it only."""

    def meet(self, comm, tag) -> None:
        request = chosen().isend(0, 0, BYTE, (comm.rank + 1) % comm.size, tag, STANDARD, comm)
        message(comm, (comm.rank - 1) % comm.size, False, tag)
        wait_request(request)


class EverySecondBarrierIsEmpty(Coll):
    turns: ClassVar[Counter] = Counter()

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] == "barrier":
            self.turns[comm.context] += 1
            if self.turns[comm.context] % 2 == 0:
                return 0
        return super().run(function, call, comm)


class StartedBarrierIsDone(Coll):
    """The request is complete at once."""

    def start(self, function, call, comm):
        if FUNCTIONS[function] == "barrier":
            return CompletedRequest()
        return super().start(function, call, comm)


class RootDoesNotWaitForTheReduction(Coll):
    """What it had the last time must do."""

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] == "reduce" and comm.rank == call.root and comm.size > 1:
            self.late = super().start(function, call, comm)
            return 0
        return super().run(function, call, comm)


class GroupsDoNotMeet(Coll):
    """A barrier of two groups is one of each of them: here, none."""

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] == "barrier" and comm.is_inter:
            return 0
        return super().run(function, call, comm)


# -- when memory is whose


class Later(ProgressSource):
    """What is put off until the process is inside MPI again."""

    def __init__(self) -> None:
        self.calls: list = []

    def progress(self) -> int:
        calls, self.calls = self.calls, []
        for call in calls:
            call()
        return len(calls)


class BroadcastGoesOutLater(Coll):
    """The root is done when its messages are written down."""

    later = None

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] == "bcast" and comm.rank == call.root and width(call, "send") > 10_000:
            if self.later is None:
                type(self).later = Later()
                register_source(self.later)
            tag = comm.take_collective_tag()
            self.later.calls += [partial(self.send, call, comm, tag, peer) for peer in range(comm.size) if peer != comm.rank]
            return 0
        if FUNCTIONS[function] == "bcast" and width(call, "send") > 10_000:
            message(comm, call.root, False, comm.take_collective_tag(), view(call.send_address, width(call, "send")))
            return 0
        return super().run(function, call, comm)

    @staticmethod
    def send(call, comm, tag, peer) -> None:
        chosen().isend(call.send_address, width(call, "send"), BYTE, peer, tag, STANDARD, comm)


class StartWaits(Coll):
    def start(self, function, call, comm):
        if FUNCTIONS[function] == "allgather":
            self.run(function, call, comm)
            return CompletedRequest()
        return super().start(function, call, comm)


class PersistentSendsTheFirstDataAgain(Coll):
    """The request packs when it is made."""

    def init(self, function, call, comm):
        if FUNCTIONS[function] == "allreduce" and not call.send_in_place:
            nbytes = width(call, "send")
            self.packed = bytearray(view(call.send_address, nbytes)) or bytearray(1)
            call.send_owner = self.packed
            call.send_address = address_of(self.packed)
        return super().init(function, call, comm)


# -- data


class LosesTheEndOf64KiB(Coll):
    """Of a broadcast of exactly so many bytes."""

    def after(self, name, call, comm) -> None:
        if name == "bcast" and comm.rank != call.root and width(call, "send") == 65536:
            view(call.send_address, 65536)[-1] ^= 1


class HalvesOfAnOddNumber(Coll):
    """A long sum leaves the last element out where the number is odd."""

    def after(self, name, call, comm) -> None:
        if name == "allreduce" and call.recv_count > 1000 and call.recv_count % 2 and comm.size > 1:
            received(call)[-1] ^= 1


class WritesBehindTheEnd(Coll):
    def after(self, name, call, comm) -> None:
        if name == "gather" and comm.rank == call.root and call.recv_type.contiguous:
            view(call.recv_address + width(call) * comm.size, 4)[:] = bytes(4)


class AddsInTheSendBuffer(Coll):
    def after(self, name, call, comm) -> None:
        if name == "reduce" and comm.rank != call.root and width(call, "send"):
            view(call.send_address, 1)[0] ^= 1


class FillsGaps(Coll):
    """What arrives is copied in whole elements."""

    def after(self, name, call, comm) -> None:
        if name == "bcast" and comm.rank != call.root and call.send_type.extent == 16 and call.send_type.size == 8:
            for element in range(call.send_count):
                view(call.send_address + 16 * element + 4, 4)[:] = bytes(4)


class RefusesNothing(Coll):
    """A scatter of no element."""

    def before(self, name, call, comm) -> None:
        if name == "scatter" and call.recv_count == 0 and not call.recv_in_place:
            raise ValueError("there is nothing to scatter")


class HighRanksFirst(Coll):
    """As if every operation commuted."""

    def before(self, name, call, comm) -> None:
        if name == "allreduce" and call.operation.name == "REPLACE":
            call.operation = operation("NO_OP")


class ExtentsOf31Bits(Coll):
    def before(self, name, call, comm) -> None:
        if name == "gather" and call.recv_type is not None and call.recv_type.extent > 1 << 31:
            call.recv_type = call.recv_type.create_resized(0, call.recv_type.extent & 0x7FFFFFFF)


class GroupsAreMixedUp(Coll):
    """Between groups the first byte is another rank's."""

    def run(self, function, call, comm) -> int:
        status = super().run(function, call, comm)
        if comm.is_inter and FUNCTIONS[function] == "allgather" and width(call):
            view(call.recv_address, 1)[0] ^= 1
        return status


# -- several calls


class NewestCallGetsAll(Coll):
    """Results go where the last allgather that was started wants them."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.under_way = None

    def start(self, function, call, comm):
        if FUNCTIONS[function] != "allgather" or not width(call):
            return super().start(function, call, comm)
        if self.under_way is not None and not self.under_way[0].complete:
            call.recv_address = self.under_way[1].recv_address
        request = super().start(function, call, comm)
        self.under_way = request, call
        return request


class BroadcastsAsTheProgram(Coll):
    """With a tag that programs use."""

    def run(self, function, call, comm) -> int:
        if FUNCTIONS[function] != "bcast" or not call.send_type.contiguous or comm.is_inter or not width(call, "send"):
            return super().run(function, call, comm)
        data = view(call.send_address, width(call, "send"))
        if comm.rank != call.root:
            message(comm, call.root, False, 7, data)
        else:
            for peer in range(comm.size):
                if peer != call.root:
                    message(comm, peer, True, 7, data)
        return 0


# -- life cycle


class OffersTheLastRankLess(Coll):
    pass


class KeepsADescriptor(Coll):
    """One for each communicator that it has served."""

    def free(self) -> int:
        os.open(os.devnull, os.O_RDONLY)
        return super().free()


class SwallowsErrors(Coll):
    """Of calls that block: who gets nothing is told that all is well."""

    def run(self, function, call, comm) -> int:
        try:
            return super().run(function, call, comm)
        except MPIError:
            return 0


class Talks(Coll):
    def after(self, name, call, comm) -> None:
        if name == "exscan":
            print("exscan", flush=True)
