"""Ways to get collectives wrong, over coll/basic."""

from __future__ import annotations

from ompy_coll_basic.module import BasicModule

from ompy.core.memory import view
from ompy.mca.coll import FUNCTIONS
from ompy.mca.component import Context, Offer, Refusal


def offer(context: Context, fault: str) -> Offer | Refusal:
    if context.communicator is None:
        return Refusal("it serves communicators")
    made = globals()[fault] if fault else BasicModule
    return Offer(modules=[made(context.communicator, 4, {name: "auto" for name in FUNCTIONS if name != "none"})], priority=90)


class Coll(BasicModule):
    """The good one; `after` may damage what a blocking call gave, or `before` what it is given."""

    def run(self, function, call, comm) -> int:
        name = FUNCTIONS[function]
        if comm.is_inter:
            return super().run(function, call, comm)
        self.before(name, call, comm)
        status = super().run(function, call, comm)
        # Agreements of the library on new communicators are small; they are left alone.
        self.after(name, call, comm)
        return status

    def before(self, name, call, comm) -> None:
        pass

    def after(self, name, call, comm) -> None:
        pass


def received(call, blocks: int = 1):
    return view(call.recv_address, call.recv_count * call.recv_type.size * blocks)


class ReductionReadsAfterItAnswered(Coll):
    """The first element of a sum is taken from memory that is the program's again."""

    def after(self, name, call, comm) -> None:
        if name == "allreduce" and call.recv_count > 8 and comm.rank == comm.size - 1 and not call.send_in_place:
            width = call.recv_type.size
            received(call)[:width] = view(call.send_address, width)


class ScanLeavesOneOut(Coll):
    def after(self, name, call, comm) -> None:
        if name == "scan" and comm.rank == 1 and not call.send_in_place and call.recv_count:
            n = call.recv_count * call.recv_type.size
            received(call)[:] = view(call.send_address, n)


class ExclusiveScanIsInclusive(Coll):
    def run(self, function, call, comm) -> int:
        return super().run(
            FUNCTIONS.index("scan") if FUNCTIONS[function] == "exscan" and comm.rank < 0 else function, call, comm
        )

    def after(self, name, call, comm) -> None:
        if name == "exscan" and comm.rank == 2 and call.recv_count and not call.send_in_place:
            received(call)[:] = view(call.send_address, call.recv_count * call.recv_type.size)


class RootIsZero(Coll):
    """A long gather from any root comes to it without its own part."""

    def after(self, name, call, comm) -> None:
        if name == "gather" and comm.rank == call.root != 0 and call.recv_count * call.recv_type.size > 64:
            width = call.recv_count * call.recv_type.size
            received(call, comm.size)[call.root * width : (call.root + 1) * width] = bytes(width)


class InPlaceForgotten(Coll):
    def after(self, name, call, comm) -> None:
        if name == "allgather" and call.send_in_place and comm.size > 1 and call.recv_count:
            width = call.recv_count * call.recv_type.size
            received(call, comm.size)[comm.rank * width : comm.rank * width + 1] = b"\0"


class BlockOfTheWrongRank(Coll):
    def after(self, name, call, comm) -> None:
        if name == "alltoall" and comm.size > 1 and call.recv_count * call.recv_type.size > 200:
            width = call.recv_count * call.recv_type.size
            whole = received(call, comm.size)
            first = bytes(whole[:width])
            whole[:width] = whole[width : 2 * width]
            whole[width : 2 * width] = first
