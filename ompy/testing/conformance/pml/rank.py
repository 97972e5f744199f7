"""A rank of a job whose messages the layer under test carries, by the layer's own functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ompy.core.memory import address_of
from ompy.core.progress import progress_once
from ompy.core.typemap import predefined
from ompy.mca import discovery, loading, selection
from ompy.testing.conformance.check import Breach, Check
from ompy.testing.conformance.mpi.rank import MpiRank
from ompy.testing.conformance.wire import Wire

if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy.core.request import Request
    from ompy.core.typemap import Typemap
    from ompy.mca.pml import Message, Pml

# Modes of sends, as in `ompy/core/constants.pxd`.
STANDARD, SYNCHRONOUS, READY = 0, 2, 3
# Of the silence that a check may keep: a rank that waits in vain looks at other things before it says so.
PARTS = 3
# Seconds that a rank with nothing to do leaves its core to others.
PAUSE = 0.0002
BYTE = 1  # of `ompy/core/basic.pxd`


class Channel:
    """A communicator of the job.

    Attributes:
        index: in the order in which they were made.
        handle, core: MPI's and the layer's; None on a rank that is not in it.
        sides: world ranks of either group; the same list twice where there is one group.
    """

    def __init__(self, index: int, handle: Any, core: Communicator | None, sides: tuple[list[int], list[int]]) -> None:
        self.index = index
        self.handle = handle
        self.core = core
        self.sides = sides

    def peers(self, rank: int) -> list[int]:
        """World ranks of those whom a rank of the world exchanges messages with here, in the order of their ranks here."""
        here, there = self.sides
        if rank in here:
            return there
        return here if rank in there else []


class PmlRank(MpiRank):
    """One rank.

    Attributes:
        pml: the layer.
        patience: seconds in which what must happen does.
        bytes: the type of the kit's messages.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        from ompy.mca.pml import chosen
        from ompy.mpi.environment import instance

        self.world: Communicator = instance().world
        module = chosen()
        assert module is not None
        self.pml: Pml = module
        served = [verdict.component for verdict in selection.verdicts(wire.setting.framework) if verdict.chosen]
        if wire.setting.component not in served:
            raise Breach("open", f"{wire.setting.framework} {wire.setting.component} does not serve this job, {served} does")
        self.patience = wire.setting.patience / PARTS
        served_by = discovery.installed()[wire.setting.framework][wire.setting.component]
        capabilities = loading.load(served_by).component.capabilities
        # Where time passes for all ranks at once, whoever rests holds up the others.
        self.pause = 0.0 if capabilities.get("lockstep") else PAUSE
        self.progress = progress_once
        self.lent: list[bytearray] = []
        self.bytes: Typemap = predefined(BYTE)

    def begin(self, check: Check) -> None:
        self.lent.clear()
        super().begin(check)

    # -- time and meeting

    def step(self) -> None:
        """Between checks others may need this rank's progress."""
        self.attend()

    def meet(self, value: object = None) -> list[Any]:
        """Every rank's value, out of band; meanwhile this rank makes progress."""
        return self.wire.exchange(value, self.attend)

    def attend(self) -> None:
        """Progress for others' sake, and the core for whoever needs it more."""
        self.progress()
        if self.pause:
            self.wire.connection.poll(self.pause)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Make progress until something holds; False when it does not, and for a while nothing has happened at all."""
        end = time.monotonic() + self.patience
        while not condition():
            if self.progress():
                end = time.monotonic() + self.patience
            elif time.monotonic() > end:
                return condition()
        return True

    # -- communicators

    @cached_property
    def channels(self) -> list[Channel]:
        """The world, a duplicate of it, the world backwards, some of its ranks, and both halves as an inter-communicator."""
        world, everyone = self.comm, list(range(self.size))
        made: list[tuple[Any, tuple[list[int], list[int]]]] = [(world, (everyone, everyone))]
        made.append((world.Dup(), (everyone, everyone)))
        backwards = everyone[::-1]
        made.append((world.Split(0, -self.rank), (backwards, backwards)))
        some = everyone[:1] + everyone[2:]
        part = world.Split(0 if self.rank in some else self.MPI.UNDEFINED, self.rank)
        made.append((part if self.rank in some else None, (some, some)))
        if self.size > 1:
            halves = everyone[::2], everyone[1::2]
            mine: Any = world.Split(self.rank % 2, self.rank)
            made.append((mine.Create_intercomm(0, world, 1 - self.rank % 2, 9), halves))
            mine.Free()
        return [
            Channel(index, handle, None if handle is None else self.core_of(handle), sides)
            for index, (handle, sides) in enumerate(made)
        ]

    def core_of(self, handle: Any) -> Communicator:
        """The communicator of one of MPI's handles."""
        from ompy.mpi.comm import core_of

        core = core_of(handle)
        assert core is not None
        return core

    # -- the layer's functions, on bytes, which are kept alive until the check is over

    def lend(self, data: bytearray) -> int:
        """The address of memory of the check's."""
        self.lent.append(data)
        return address_of(data)

    def isend(self, data: bytearray, dest: int, tag: int, mode: int, comm: Communicator) -> Request:
        return self.pml.isend(self.lend(data), len(data), self.bytes, dest, tag, mode, comm)

    def send(self, data: bytearray, dest: int, tag: int, mode: int, comm: Communicator) -> Request | None:
        return self.pml.send(self.lend(data), len(data), self.bytes, dest, tag, mode, comm)

    def isend_init(self, data: bytearray, dest: int, tag: int, mode: int, comm: Communicator) -> Request:
        return self.pml.isend_init(self.lend(data), len(data), self.bytes, dest, tag, mode, comm)

    def irecv(self, data: bytearray, room: int, source: int, tag: int, comm: Communicator) -> Request:
        """Into the first `room` bytes."""
        return self.pml.irecv(self.lend(data), room, self.bytes, source, tag, comm)

    def irecv_init(self, data: bytearray, room: int, source: int, tag: int, comm: Communicator) -> Request:
        return self.pml.irecv_init(self.lend(data), room, self.bytes, source, tag, comm)

    def imrecv(self, data: bytearray, room: int, message: Message) -> Request:
        return self.pml.imrecv(self.lend(data), room, self.bytes, message)
