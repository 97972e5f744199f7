"""Calls of every collective with known data, and what each rank's memory must hold afterwards.

Every value tells where it comes from: `value(source, destination, index)`.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from ompy.core.communicator import Communicator
from ompy.core.memory import address_of
from ompy.core.operation import Operation
from ompy.core.operation import predefined as operation
from ompy.core.typemap import Typemap, predefined
from ompy.mca.coll import FUNCTIONS, CollectiveCall
from ompy.testing.conformance.check import Breach

INT32 = predefined(9)
UNTOUCHED, SPOILT = -7, -9
STEP = 3
NUMBERS = {name: number for number, name in enumerate(FUNCTIONS)}
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan")
ROOTED = ("bcast", "gather", "gatherv", "scatter", "scatterv", "reduce")
IN_PLACE = (*ROOTED[1:], "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", *REDUCTIONS[1:])
ROOT, PROC_NULL = -4, -2


class Reduction:
    """A core operation, and what it does to two numbers, the lower rank's first."""

    def __init__(self, core: Operation, of: Callable[[int, int], int]) -> None:
        self.core = core
        self.of = of

    def __repr__(self) -> str:
        return self.core.name


SUM = Reduction(operation("SUM"), operator.add)
MAX = Reduction(operation("MAX"), max)
FIRST = Reduction(operation("REPLACE"), lambda left, right: left)
LAST = Reduction(operation("NO_OP"), lambda left, right: right)


class Shape:
    """A datatype of int32 entries, and where they lie: `places` in one element, `step` from one element to the next."""

    def __init__(self, name: str, typemap: Typemap, places: Sequence[int], step: int) -> None:
        self.name = name
        self.typemap = typemap
        self.places = places
        self.step = step

    def __repr__(self) -> str:
        return self.name


PLAIN = Shape("plain", INT32, (0,), 1)
PAIR_WITH_GAP = Shape("pair with gap", INT32.create_vector(2, 1, 2).create_resized(0, 16), (0, 2), 4)
SHIFTED = Shape("shifted", INT32.create_hindexed([1], [4]).create_resized(0, 12), (1,), 3)
SHAPES = (PLAIN, PAIR_WITH_GAP, SHIFTED)


def value(source: int, destination: int, index: int) -> int:
    return source * 10007 + destination * 101 + index * STEP + 1


# Numbers, and where they stand in an array.
Patch = tuple[slice, "array[int]"]


class Memory:
    """One side of a rank's call: int32s, what they are before it, and what they must be afterwards.

    Parameters:
        size: how many.

    Attributes:
        array: what the component is given.
        loose: what is not expected to be something may be anything.
    """

    def __init__(self, size: int) -> None:
        self.array = array("i", [UNTOUCHED]) * max(size, 1)
        self.loose = False
        self.filled: list[Patch] = []
        self.expected: list[Patch] = []
        self.found: array[int] | None = None
        self.factor = 1

    @property
    def address(self) -> int:
        return address_of(self.array)

    def fill(self, shape: Shape, first: int, numbers: Sequence[int]) -> None:
        """Have elements hold numbers before the call, from the one whose first byte is at index `first`."""
        self.filled += patches(shape, first, numbers)

    def expect(self, shape: Shape, first: int, numbers: Sequence[int]) -> None:
        """Have them hold numbers after it."""
        self.expected += patches(shape, first, numbers)

    def ready(self, factor: int = 1) -> None:
        """As it is before the call, each number so many times as great; every operation's result is so, too."""
        self.factor, self.found = factor, None
        self.array[:] = self.before()

    def before(self) -> array[int]:
        return patched(array("i", [UNTOUCHED]) * len(self.array), self.filled, self.factor)

    def collect(self) -> None:
        """After the call: keep what it gave, and write over it, as a program may."""
        self.found = self.array[:]
        self.array[:] = array("i", [SPOILT]) * len(self.array)

    def check(self, words: str) -> None:
        """Raises Breach: a wrong result, or memory changed that is none of the call's."""
        found = self.array if self.found is None else self.found
        wanted = patched(found[:] if self.loose else self.before(), self.expected, self.factor)
        if found == wanted:
            return
        wrong = [index for index, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other]
        at = wrong[0]
        clause = "result" if any(at in range(len(found))[place] for place, _ in self.expected) else "bounds"
        where = f"entry {at} of {len(wanted)} is {found[at]}, not {wanted[at]}"
        raise Breach(clause, f"{words}: {where}; {len(wrong)} entries are wrong")


def patches(shape: Shape, first: int, numbers: Sequence[int]) -> Iterator[Patch]:
    """Numbers, and where they stand, from the element whose first byte is at index `first`."""
    every = len(shape.places)
    for turn, place in enumerate(shape.places):
        if piece := array("i", numbers[turn::every]):
            start = first + place
            yield slice(start, start + (len(piece) - 1) * shape.step + 1, shape.step), piece


def patched(memory: array[int], changes: Iterable[Patch], factor: int) -> array[int]:
    for place, numbers in changes:
        memory[place] = numbers if factor == 1 else array("i", [factor * number for number in numbers])
    return memory


def values(source: int, destination: int, count: int, shape: Shape) -> range:
    return range(value(source, destination, 0), value(source, destination, count * len(shape.places)), STEP)


class Side:
    """Blocks of elements, one for each peer: in a row, or for the v and w forms apart from each other and backwards."""

    def __init__(self, counts: Iterable[int], shape: Shape, form: str) -> None:
        self.shape = shape
        self.counts = list(counts)
        self.form = form
        if form == "plain":
            self.starts = [sum(self.counts[:peer]) for peer in range(len(self.counts))]
            elements = sum(self.counts)
        else:
            self.starts, elements = [0] * len(self.counts), 0
            for peer in reversed(range(len(self.counts))):
                self.starts[peer] = elements
                elements += self.counts[peer] + 1
        self.memory = Memory((elements + 2) * shape.step)

    def first(self, peer: int) -> int:
        return self.starts[peer] * self.shape.step

    def fill(self, peer: int, numbers: Sequence[int]) -> None:
        self.memory.fill(self.shape, self.first(peer), numbers)

    def expect(self, peer: int, numbers: Sequence[int]) -> None:
        self.memory.expect(self.shape, self.first(peer), numbers)

    def put_into(self, call: CollectiveCall, side: str) -> dict[str, list[int]]:
        setattr(call, f"{side}_address", self.memory.address)
        setattr(call, f"{side}_type", self.shape.typemap)
        setattr(call, f"{side}_count", self.counts[0] if self.counts else 0)
        if self.form == "plain":
            return {}
        unit = self.shape.typemap.extent if self.form == "w" else 1
        if self.form == "w":
            setattr(call, f"{side}_types", [self.shape.typemap] * len(self.counts))
        return {f"{side}_counts": self.counts, f"{side}_displacements": [start * unit for start in self.starts]}


class Case:
    """One rank's call and what it must do."""

    def __init__(self) -> None:
        self.call = CollectiveCall()
        self.send: Side | None = None
        self.recv: Side | None = None
        self.vectors: dict[str, list[int]] = {}

    def ready(self, send: Side | None, recv: Side | None, operation: Reduction | None = None, root: int = 0) -> Case:
        if send is not None:
            self.send = send
            self.vectors |= send.put_into(self.call, "send")
        if recv is not None:
            self.recv = recv
            self.vectors |= recv.put_into(self.call, "recv")
        self.call.set_vectors(**self.vectors)
        self.call.operation = operation.core if operation else None
        self.call.root = root
        self.again()
        return self

    @property
    def sides(self) -> dict[str, Side]:
        """Those that the call has."""
        return {name: side for name, side in (("send", self.send), ("recv", self.recv)) if side is not None}

    def again(self, factor: int = 1) -> None:
        """The memory as before a call with so many times as great numbers: for a persistent request's next start."""
        for side in self.sides.values():
            side.memory.ready(factor)

    def collect(self) -> None:
        """Keep what the call gave for `check`, and write over its memory, which is the program's again."""
        for side in self.sides.values():
            side.memory.collect()

    def check(self, words: str) -> None:
        for name, side in self.sides.items():
            side.memory.check(f"{words}, {name} side")


def uneven(source: int, destination: int, count: int) -> int:
    """Elements from one rank to another in a v form, the same both ways so that it can be done in place."""
    return (source + destination) % 3 * count


def form_of(function: str) -> str:
    return "w" if function.endswith("w") else "v" if function.endswith("v") else "plain"


def combined(operation: Reduction | None, ranks: Sequence[int], destination: int, count: int, shape: Shape) -> Sequence[int]:
    """What a reduction of these ranks' data gives, in rank order."""
    assert operation is not None
    total: Sequence[int] = values(ranks[0], destination, count, shape)
    for rank in ranks[1:]:
        total = list(map(operation.of, total, values(rank, destination, count, shape)))
    return total


def intra_case(
    function: str, rank: int, size: int, count: int, shape: Shape, root: int, in_place: bool, operation: Reduction | None
) -> Case:
    """The case of one rank of an intra-communicator."""
    send: Side | None
    recv: Side | None
    case = Case()
    form = form_of(function)
    vector = form != "plain"

    def many(a: int, b: int) -> int:
        return uneven(a, b, count) if vector else count

    if function == "barrier":
        return case.ready(None, None)
    if function == "bcast":
        side = Side([count], shape, "plain")
        (side.fill if rank == root else side.expect)(0, values(root, 0, count, shape))
        return case.ready(side, None, root=root)
    if function in ("gather", "gatherv", "allgather", "allgatherv"):
        everywhere = function.startswith("all")
        target = 0 if everywhere else root
        counts = [many(source, 0) for source in range(size)]
        own = values(rank, 0, counts[rank], shape)
        recv = Side(counts, shape, form) if everywhere or rank == root else None
        case.call.send_in_place = in_place and (everywhere or rank == root)
        if recv:
            for source in range(size):
                recv.expect(source, values(source, 0, counts[source], shape))
        if recv and case.call.send_in_place:
            recv.fill(rank, own)
            return case.ready(None, recv, root=target)
        send = Side([counts[rank]], shape, "plain")
        send.fill(0, own)
        return case.ready(send, recv, root=target)
    if function in ("scatter", "scatterv"):
        counts = [many(0, target) for target in range(size)]
        send = Side(counts, shape, form) if rank == root else None
        if send:
            for target in range(size):
                send.fill(target, values(root, target, counts[target], shape))
        case.call.recv_in_place = in_place and rank == root
        if case.call.recv_in_place:
            return case.ready(send, None, root=root)
        recv = Side([counts[rank]], shape, "plain")
        recv.expect(0, values(root, rank, counts[rank], shape))
        return case.ready(send, recv, root=root)
    if function.startswith("alltoall"):
        counts = [many(rank, peer) for peer in range(size)]
        recv = Side(counts, shape, form)
        for peer in range(size):
            recv.expect(peer, values(peer, rank, counts[peer], shape))
        sending = recv if in_place else Side(counts, shape, form)
        for peer in range(size):
            sending.fill(peer, values(rank, peer, counts[peer], shape))
        case.call.send_in_place = in_place
        return case.ready(None if in_place else sending, recv)
    return reduction_case(case, function, rank, size, count, shape, root, in_place, operation)


def reduction_case(
    case: Case,
    function: str,
    rank: int,
    size: int,
    count: int,
    shape: Shape,
    root: int,
    in_place: bool,
    operation: Reduction | None,
) -> Case:
    send: Side | None
    recv: Side | None
    ranks = list(range(size))
    if function.startswith("reduce_scatter"):
        parts = [count] * size if function.endswith("block") else [uneven(peer, 1, count) for peer in ranks]
        send = Side(parts, shape, "plain")
        for peer in ranks:
            send.fill(peer, values(rank, peer, parts[peer], shape))
        result = combined(operation, ranks, rank, parts[rank], shape)
        case.call.send_in_place = in_place
        if in_place:
            # Beyond the result the memory's contents are the library's own business.
            recv = send
            recv.memory.loose = True
            recv.expect(0, result)
        else:
            recv = Side([parts[rank]], shape, "plain")
            recv.expect(0, result)
        case.ready(None if in_place else send, recv, operation)
        case.call.recv_count = count
        if not function.endswith("block"):
            case.vectors["recv_counts"] = parts
            case.call.set_vectors(**case.vectors)
        return case
    own = values(rank, 0, count, shape)
    with_result = function != "reduce" or rank == root
    case.call.send_in_place = in_place and with_result
    recv = Side([count], shape, "plain") if with_result else None
    if recv:
        involved = {"scan": ranks[: rank + 1], "exscan": ranks[:rank]}.get(function, ranks)
        if involved:
            recv.expect(0, combined(operation, involved, 0, count, shape))
    if recv and case.call.send_in_place:
        recv.fill(0, own)
        return case.ready(None, recv, operation, root)
    send = Side([count], shape, "plain")
    send.fill(0, own)
    return case.ready(send, recv, operation, root)


def inter_case(
    function: str,
    process: int,
    size: int,
    remote_size: int,
    count: int,
    shape: Shape,
    root: int,
    operation: Reduction | None,
) -> Case:
    """The case of one process of an inter-communicator; a root is a process of the first group, or of the second."""
    here = process < size
    rank = process if here else process - size
    local, remote = (size, remote_size) if here else (remote_size, size)
    remote_base = size if here else 0
    form = form_of(function)
    case = Case()

    def many(a: int, b: int) -> int:
        return uneven(a, b, count) if form != "plain" else count

    if function in ROOTED:
        same_group = (root < size) == here
        if same_group:
            named = ROOT if root == process else PROC_NULL
        else:
            named = root if root < size else root - size
    else:
        named = 0
    if function == "barrier":
        return case.ready(None, None)
    if named == PROC_NULL:
        return case.ready(None, None, operation, root=named)
    peers = [remote_base + peer for peer in range(remote)]
    if function == "bcast":
        side = Side([count], shape, "plain")
        (side.fill if named == ROOT else side.expect)(0, values(root, 0, count, shape))
        return case.ready(side, None, root=named)
    if function in ("gather", "gatherv", "allgather", "allgatherv"):
        everywhere = function.startswith("all")
        send = recv = None
        if everywhere or named == ROOT:
            recv = Side([many(peer, 0) for peer in peers], shape, form)
            for index, peer in enumerate(peers):
                recv.expect(index, values(peer, 0, many(peer, 0), shape))
        if everywhere or named != ROOT:
            send = Side([many(process, 0)], shape, "plain")
            send.fill(0, values(process, 0, many(process, 0), shape))
        return case.ready(send, recv, root=named)
    if function in ("scatter", "scatterv"):
        if named == ROOT:
            send = Side([many(0, peer) for peer in peers], shape, form)
            for index, peer in enumerate(peers):
                send.fill(index, values(process, peer, many(0, peer), shape))
            return case.ready(send, None, root=named)
        recv = Side([many(0, process)], shape, "plain")
        recv.expect(0, values(root, process, many(0, process), shape))
        return case.ready(None, recv, root=named)
    if function.startswith("alltoall"):
        counts = [many(process, peer) for peer in peers]
        send, recv = Side(counts, shape, form), Side(counts, shape, form)
        for index, peer in enumerate(peers):
            send.fill(index, values(process, peer, counts[index], shape))
            recv.expect(index, values(peer, process, counts[index], shape))
        return case.ready(send, recv)
    if function.startswith("reduce_scatter"):
        # Each group shares out the same number of elements among its own ranks: here `local` parts of `remote * count`.
        parts = [remote * count] * local
        total = sum(parts)
        send, recv = Side([total], shape, "plain"), Side([parts[rank]], shape, "plain")
        send.fill(0, values(process, 0, total, shape))
        start = rank * parts[rank] * len(shape.places)
        recv.expect(0, combined(operation, peers, 0, total, shape)[start : start + parts[rank] * len(shape.places)])
        case.ready(send, recv, operation)
        case.call.recv_count = parts[rank]
        if not function.endswith("block"):
            case.vectors["recv_counts"] = parts
            case.call.set_vectors(**case.vectors)
        return case
    send = recv = None
    if function == "allreduce" or named == ROOT:
        recv = Side([count], shape, "plain")
        recv.expect(0, combined(operation, peers, 0, count, shape))
    if function == "allreduce" or named != ROOT:
        send = Side([count], shape, "plain")
        send.fill(0, values(process, 0, count, shape))
    return case.ready(send, recv, operation, root=named)


def neighbor_case(
    function: str,
    comm: Communicator,
    rank: int,
    count: int,
    shape: Shape,
    arrives: Callable[[int, int], tuple[int, int] | None],
) -> Case:
    """The case of one rank of a topology; `arrives(rank, slot)` is the (rank, slot) that an in-block comes from, or None."""
    topology = comm.attributes["topology"]
    form = form_of(function)
    same = "allgather" in function
    case = Case()

    def many(source: int, slot: int) -> int:
        return uneven(source, 0 if same else slot, count) if form != "plain" else count

    origins = [arrives(rank, slot) for slot in range(len(topology.in_neighbors))]
    recv = Side([many(*origin) if origin else count for origin in origins], shape, form)
    for slot, origin in enumerate(origins):
        if origin:
            recv.expect(slot, values(origin[0], 0 if same else origin[1], many(*origin), shape))
    if same:
        send = Side([many(rank, 0)], shape, "plain")
        send.fill(0, values(rank, 0, many(rank, 0), shape))
    else:
        slots = range(len(topology.out_neighbors))
        send = Side([many(rank, slot) for slot in slots], shape, form)
        for slot in slots:
            send.fill(slot, values(rank, slot, many(rank, slot), shape))
    case.ready(send, recv)
    case.call.send_count = case.call.recv_count = count
    if same:
        case.call.send_count = many(rank, 0)
    return case
