"""Counts, displacements and extents past 31 and 32 bits, in memory of which next to nothing is ever touched."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

from ompy.core.memory import address_of
from ompy.core.typemap import predefined
from ompy.mca.coll import CollectiveCall
from ompy.testing.conformance.check import Breach, Collection, Unsuitable
from ompy.testing.conformance.coll.calls import NUMBERS
from ompy.testing.conformance.coll.rank import CollRank

check = Collection()

# From one block to the next: so far that no 32 bits tell the third from the first.
FAR = (1 << 31) + 64
MOST_RANKS = 3
PIECE = 8  # bytes of a block
NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux
BYTE = predefined(1)
FAR_PIECE = BYTE.create_contiguous(PIECE).create_resized(0, FAR)
NOTHING = BYTE.create_contiguous(0)
MOST = (1 << 31) + 5  # elements

FUNCTIONS = (
    "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"
)  # fmt: skip


class Expanse:
    """Memory for blocks that are far from each other."""

    def __init__(self, blocks: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        try:
            self.memory = mmap.mmap(-1, (blocks - 1) * FAR + mmap.PAGESIZE, flags=flags)
        except OSError as error:
            raise Unsuitable(f"the system lends no addresses for blocks {FAR} bytes apart: {error}") from None

    def fill(self, blocks: Sequence[bytes]) -> None:
        for number, data in enumerate(blocks):
            self.memory[number * FAR : number * FAR + PIECE] = data

    def check(self, blocks: Sequence[bytes], words: str) -> None:
        for number, wanted in enumerate(blocks):
            found = self.memory[number * FAR : number * FAR + PIECE]
            if found != wanted:
                where = f"block {number}, {number * FAR} bytes behind the first"
                raise Breach("large", f"{words}: {where}, holds {found.hex()}, not {wanted.hex()}")


def piece(source: int, destination: int) -> bytes:
    return bytes([source + 1, destination + 1] * (PIECE // 2))


class FarCall:
    """One rank's call of a function in which blocks are far apart: by displacements, or by the extent of an element.

    The root is the last rank.
    """

    def __init__(self, function: str, rank: int, size: int) -> None:
        self.function = function
        self.call = CollectiveCall()
        self.call.root = root = size - 1
        self.vectors: dict[str, list[int]] = {}
        self.send = self.recv = None
        self.wanted: list[bytes] = []
        everybody = range(size)
        if function == "bcast":
            self.send = self.side("send", size)
            self.wanted = [piece(root, number) for number in everybody]
            if rank == root:
                self.send.fill(self.wanted)
        elif function.startswith("scatter"):
            if rank == root:
                self.send = self.side("send", size)
                self.send.fill([piece(root, target) for target in everybody])
            self.recv = self.side("recv", 1)
            self.wanted = [piece(root, rank)]
        elif function.startswith("alltoall"):
            self.send, self.recv = self.side("send", size), self.side("recv", size)
            self.send.fill([piece(rank, target) for target in everybody])
            self.wanted = [piece(source, rank) for source in everybody]
        else:
            self.send = self.side("send", 1)
            self.send.fill([piece(rank, 0)])
            if rank == root or function.startswith("all"):
                self.recv = self.side("recv", size)
                self.wanted = [piece(source, 0) for source in everybody]
        self.call.set_vectors(**self.vectors)

    def side(self, name: str, blocks: int) -> Expanse:
        expanse = Expanse(blocks)
        many = blocks > 1 or self.function.startswith("alltoall")
        vector = many and self.function[-1] in "vw"
        setattr(self.call, f"{name}_address", address_of(expanse.memory))
        setattr(self.call, f"{name}_type", FAR_PIECE if many and not vector else BYTE)
        setattr(self.call, f"{name}_count", blocks if self.function == "bcast" else 1 if many else PIECE)
        if vector:
            self.vectors |= {f"{name}_counts": [PIECE] * blocks, f"{name}_displacements": [FAR * it for it in range(blocks)]}
        if vector and self.function[-1] == "w":
            setattr(self.call, f"{name}_types", [BYTE] * blocks)
        return expanse

    def check(self, words: str) -> None:
        if (expanse := self.recv or self.send) and self.wanted:
            expanse.check(self.wanted, words)


@check("large", ranks=2)
def blocks_far_apart_find_their_places(rank: CollRank) -> None:
    size = min(rank.size, MOST_RANKS)
    for function in FUNCTIONS:
        if function not in rank.functions or size not in rank.groups:
            continue
        comm = rank.groups[size]
        for algorithm, module in rank.serving(comm, function):
            rank.alive()
            far = FarCall(function, rank.rank, size)
            words = f"{function} ({algorithm}) with blocks {FAR} bytes apart, rank {rank.rank} of {size}"
            rank.complete(module, rank.forms[0], NUMBERS[function], far.call, comm)
            far.check(words)


@check("large", "empty")
def more_elements_than_31_bits_count_may_be_empty(rank: CollRank) -> None:
    comm = rank.groups[rank.size]
    for function in ("bcast", "gather", "scatter", "allgather", "alltoall"):
        if function not in rank.functions:
            continue
        for algorithm, module in rank.serving(comm, function):
            rank.alive()
            expanse = Expanse(1)
            call = CollectiveCall()
            call.send_address = call.recv_address = address_of(expanse.memory)
            call.send_type = call.recv_type = NOTHING
            call.send_count = call.recv_count = MOST
            rank.complete(module, rank.forms[0], NUMBERS[function], call, comm)
            expanse.check([bytes(PIECE)], f"{function} ({algorithm}) of {MOST} elements without data, rank {rank.rank}")


@check("large", "sizes", option="bytes")
def so_many_bytes_come_from_one_to_all(rank: CollRank) -> None:
    """A broadcast of as many bytes as --bytes asks for, in one call."""
    comm, total = rank.groups[rank.size], int(rank.wire.setting.options["bytes"])
    if "bcast" not in rank.functions:
        return
    part = rank.content(0, 0, 0, 1 << 20)
    memory = mmap.mmap(-1, total)
    for at in range(0, total if rank.rank == 0 else 0, len(part)):
        memory[at : at + len(part)] = part[: total - at]
        rank.alive()
    call = CollectiveCall()
    call.send_address, call.send_type, call.send_count = address_of(memory), BYTE, total
    with rank.module(comm, "bcast") as module:
        if module is not None:
            rank.meet()
            rank.complete(module, rank.forms[0], NUMBERS["bcast"], call, comm)
    for at in range(0, total, len(part)):
        if memory[at : at + len(part)] != part[: total - at]:
            raise Breach("large", f"bcast of {total} bytes: those from {at} on are wrong")
        rank.alive()
