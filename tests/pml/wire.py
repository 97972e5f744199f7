"""Two PMLs in one process, joined by transports whose behaviour a test chooses."""

from __future__ import annotations

import ctypes
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence

from ompy_bml_r2.module import R2
from ompy_mtl_portals.module import PortalsMtl
from ompy_pml_cm.module import Cm
from ompy_pml_ob1.module import Ob1

from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, MPIError
from ompy.core.group import make_group, set_this_process
from ompy.core.memory import address_of
from ompy.core.proc import Proc, process_table
from ompy.core.request import Request
from ompy.core.typemap import Typemap, predefined
from ompy.mca.bml import Bml
from ompy.mca.btl import BACK_PRESSURE, GET, IN_ORDER, NEEDS_REGISTRATION, PUT, SEND, TAKEN, Btl, Descriptor, Endpoint
from ompy.mca.frameworks import declare
from ompy.mca.pml import Pml

declare()  # r2 asks how much it is to say


class WireBtl(Btl):
    """One end of a wire: what is sent waits in the other end's queue.

    Parameters:
        name: as a component's.
        room: messages that the other end's queue holds; a send beyond that is refused.
        disorder: draws which waiting message is delivered next; None for the oldest.
        fails: "get", "put", or ob1's "fragment", "answer" (ACK) or "ending" (FIN), which then complete with an error.
        breaks: one of these, which then raise what no contract speaks of.
        failing: which of them fail or raise, by number from 0 on; none: all.
        error: that they complete with.
        lacks: "get" or "put", which then raise for want of memory.
        most_registered: stretches of memory at a time.
        lazy: nothing is read, written or complete while messages wait.
        at_once: what is read or written is complete within the call.

    Attributes:
        refuses: kinds of header for which there is no room; a test changes that.
    """

    def __init__(
        self,
        name: str,
        room: int = 1 << 30,
        disorder: random.Random | None = None,
        fails: str = "",
        failing: Collection[int] = (),
        error: int = ERR_OTHER,
        lacks: str = "",
        most_registered: int = 1 << 30,
        breaks: str = "",
        lazy: bool = False,
        at_once: bool = False,
        **limits: int,
    ):
        self.name = name
        self.room = room
        self.disorder = disorder
        self.fails = fails
        self.failing = failing
        self.error = error
        self.lacks = lacks
        self.most_registered = most_registered
        self.breaks = breaks
        self.lazy = lazy
        self.at_once = at_once
        self.refuses: Collection[int] = ()
        self.peer: WireBtl | None = None
        self.queue: deque[tuple[int, bytes]] = deque()
        self.unfinished: list[tuple[Descriptor, tuple[int, int]]] = []
        self.registered: dict[bytes, tuple[int, int]] = {}
        self.registrations = 0
        self.kinds: list[int] = []
        self.done: list[str] = []
        for limit, value in limits.items():
            setattr(self, limit, value)

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint]:
        return [Endpoint(self, proc) for proc in procs]

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert self.peer is not None
        assert descriptor.total_length <= self.max_send_size
        if len(self.peer.queue) >= self.room:
            return BACK_PRESSURE
        packet = bytes(descriptor.view) + bytes(descriptor.payload_view)
        if packet[0] in self.refuses:
            return BACK_PRESSURE
        self.kinds.append(packet[0])
        if packet[0] in NAMES and self.meets_trouble(NAMES[packet[0]]):
            descriptor.complete(self.error)
            return TAKEN
        self.peer.queue.append((tag, packet))
        self.unfinished.append((descriptor, (0, 0)))
        return TAKEN

    def meets_trouble(self, what: str) -> bool:
        """Whether this one completes with an error; it may raise, too."""
        self.done.append(what)
        if what == self.lacks:
            raise MPIError(ERR_NO_MEM, f"no memory for a {what}")
        chosen = not self.failing or self.done.count(what) - 1 in self.failing
        if what == self.breaks and chosen:
            raise ZeroDivisionError(f"this {what} was to raise")
        return what == self.fails and chosen

    def progress(self) -> int:
        events = 0
        if not (self.lazy and self.queue):
            unfinished, self.unfinished = self.unfinished, []
            events += len(unfinished)
            for descriptor, (target, source) in unfinished:
                if target:
                    ctypes.memmove(target, source, descriptor.size)
                descriptor.complete()
        if self.queue:
            index = self.disorder.randrange(len(self.queue)) if self.disorder else 0
            tag, packet = self.queue[index]
            del self.queue[index]
            self.deliver_view(tag, None, packet)
            events += 1
        return events

    def register_mem(self, endpoint: Endpoint, address: int, size: int) -> bytes:
        if len(self.registered) >= self.most_registered:
            raise MPIError(ERR_NO_MEM, f"{self.most_registered} stretches of memory are registered")
        self.registrations += 1
        handle = b"%s-%d" % (self.name.encode(), self.registrations)
        self.registered[handle] = (address, size)
        return handle

    def deregister_mem(self, handle: bytes) -> int:
        del self.registered[handle]
        return 0

    def check_registered(self, handle: bytes, address: int, size: int) -> None:
        if self.flags & NEEDS_REGISTRATION:
            begin, length = self.registered[handle]
            assert begin <= address
            assert address + size <= begin + length

    def put(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.access(descriptor, "put", descriptor.remote_address, descriptor.local_address, self.put_limit)

    def get(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.access(descriptor, "get", descriptor.local_address, descriptor.remote_address, self.get_limit)

    def access(self, descriptor: Descriptor, what: str, target: int, source: int, limit: int) -> int:
        assert self.peer is not None
        assert not limit or descriptor.size <= limit
        if self.meets_trouble(what):
            descriptor.complete(self.error)
            return TAKEN
        self.check_registered(descriptor.local_handle, descriptor.local_address, descriptor.size)
        self.peer.check_registered(descriptor.remote_handle, descriptor.remote_address, descriptor.size)
        if not self.lazy:
            ctypes.memmove(target, source, descriptor.size)
        if self.at_once and not self.lazy:
            descriptor.complete()
        else:
            self.unfinished.append((descriptor, (target, source) if self.lazy else (0, 0)))
        return TAKEN


def ob1(bml: Bml, rank: int, **options: object) -> tuple[Pml, Callable[[], int]]:
    """An ob1, and what drives it."""
    pml = Ob1(bml, **options)
    return pml, pml.engine.progress


def cm(bml: Bml, rank: int, **options: object) -> tuple[Pml, Callable[[], int]]:
    """A cm over portals, and what drives it."""
    mtl = PortalsMtl(bml, rank, **options)
    return Cm(mtl, bml), mtl.engine.kernel.progress


class Side:
    """One of the two processes."""

    def __init__(
        self, rank: int, btls: Sequence[WireBtl], make_pml: Callable[..., tuple[Pml, Callable[[], int]]], **options: object
    ):
        set_this_process(rank)
        self.rank = rank
        self.btls = list(btls)
        self.pml, self.poll = make_pml(R2(btls), rank, **options)
        self.comm = Communicator(7, make_group([0, 1]), None, f"wire of rank {rank}")
        self.pml.add_comm(self.comm)

    def isend(self, data: bytearray, tag: int, mode: int = 0, typemap: Typemap | None = None, count: int = -1) -> Request:
        typemap, count = self.typed(data, typemap, count)
        request = self.pml.isend(address_of(data), count, typemap, 1 - self.rank, tag, mode, self.comm)
        request.buffer = data
        return request

    def irecv(
        self, data: bytearray, tag: int, source: int | None = None, typemap: Typemap | None = None, count: int = -1
    ) -> Request:
        typemap, count = self.typed(data, typemap, count)
        source = 1 - self.rank if source is None else source
        request = self.pml.irecv(address_of(data), count, typemap, source, tag, self.comm)
        request.buffer = data
        return request

    def typed(self, data: bytearray, typemap: Typemap | None, count: int) -> tuple[Typemap, int]:
        return (typemap, count) if typemap is not None else (predefined(1), len(data))


class Pair:
    """Two sides, and the loop that drives them."""

    def __init__(
        self,
        make: Callable[[], Sequence[WireBtl]],
        make_pml: Callable[..., tuple[Pml, Callable[[], int]]] = ob1,
        **options: object,
    ):
        process_table().clear()
        process_table().extend(2)
        process_table().set_resolver(lambda index: Proc(index, index, "pair", "here", 1, False, True, {}))
        ends = [make(), make()]
        for left, right in zip(*ends, strict=True):
            left.peer, right.peer = right, left
        self.sides = [Side(rank, btls, make_pml, **options) for rank, btls in enumerate(ends)]

    def step(self) -> int:
        events = 0
        for side in self.sides:
            for btl in side.btls:
                events += btl.progress()
            events += side.poll()
        return events

    def run(self, *requests: Request) -> None:
        """Drive both until the requests are complete; fails when nothing moves any more."""
        idle = 0
        while not all(request.complete for request in requests):
            idle = 0 if self.step() else idle + 1
            assert idle < 100, f"nothing moves: {[side.pml.dump(side.comm) for side in self.sides]}"
        while self.step():
            pass

    def kinds(self) -> set[int]:
        """Kinds of header that crossed the wire."""
        return {kind for side in self.sides for btl in side.btls for kind in btl.kinds}


BYTE = predefined(1)
LIMITS = {"eager_limit": 256, "rndv_eager_limit": 100, "max_send_size": 512, "rdma_pipeline_send_length": 300,
          "rdma_pipeline_frag_size": 700, "min_rdma_pipeline_size": 600}  # fmt: skip
SYNCHRONOUS = 2


def wires(flags: int = SEND | IN_ORDER, count: int = 1, **options):
    """A maker of `count` like ends."""
    return lambda: [WireBtl(f"wire{number}", flags=flags, **{**LIMITS, **options}) for number in range(count)]


def payload(size: int, seed: int = 1) -> bytearray:
    return bytearray(random.Random(seed).randbytes(size))


def exchange(pair: Pair, size: int, mode: int = 0, receive_first: bool = True) -> None:
    """One message from side 0 to side 1, checked."""
    left, right = pair.sides
    sent, received = payload(size), bytearray(size)
    if receive_first:
        receive = right.irecv(received, 5)
        send = left.isend(sent, 5, mode)
    else:
        send = left.isend(sent, 5, mode)
        while pair.step():
            pass
        receive = right.irecv(received, 5)
    pair.run(send, receive)
    assert received == sent
    assert receive.error is None
    assert receive.result == (0, 5, 0, False, size)


MATCH, RNDV, RGET, ACK, FRAG, PUT_KIND, FIN = range(1, 8)
NAMES = {ACK: "answer", FRAG: "fragment", FIN: "ending"}
__all__ = [
    "ACK",
    "BYTE",
    "FIN",
    "FRAG",
    "GET",
    "LIMITS",
    "MATCH",
    "NAMES",
    "NEEDS_REGISTRATION",
    "PUT",
    "PUT_KIND",
    "RGET",
    "RNDV",
    "SYNCHRONOUS",
    "Pair",
    "Side",
    "WireBtl",
    "cm",
    "exchange",
    "ob1",
    "payload",
    "wires",
]
