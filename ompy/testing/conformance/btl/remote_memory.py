"""Put, get and atomics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from mmap import mmap
from typing import NamedTuple

from ompy.core.heap import Block
from ompy.core.memory import address_of
from ompy.mca import btl as contract
from ompy.mca.btl import FREE_TAGS, TAKEN, Descriptor
from ompy.testing.conformance.btl.rank import BtlRank, Sending
from ompy.testing.conformance.check import Breach, Collection, Unsuitable

check = Collection()

LARGEST = 1 << 20  # bytes of one transfer, where the limit is higher
GUARD = 256  # bytes around it that must stay as they are
AT_ONCE = 8
TURNS = 20  # of each rank
WORD = 8
INCREMENTS = 40


class Region:
    """Memory of this process that peers may touch, aligned as the transport wants it.

    Parameters:
        heap: it lies in the shared heap, where there is one.
    """

    def __init__(self, rank: BtlRank, size: int, alignment: int, heap: bool = False) -> None:
        self.rank = rank
        # A mapping costs nothing where it is not touched.
        self.block = Block(size + alignment) if heap else None
        self.memory = self.block.view if self.block else mmap(-1, size + alignment)
        start = address_of(self.memory)
        self.skipped = -start % alignment
        self.address = start + self.skipped
        self.size = size
        # A peer's endpoint is asked for the registration; that of any serves all.
        self.handle = None
        if rank.btl.flags & contract.NEEDS_REGISTRATION:
            self.handle = rank.btl.hold_mem(next(iter(rank.peers.values())), self.address, size)

    @property
    def view(self) -> memoryview:
        return memoryview(self.memory)[self.skipped : self.skipped + self.size]

    def close(self) -> None:
        if self.handle is not None:
            self.rank.btl.release_mem(self.handle)


class Window(NamedTuple):
    """A peer's region as it is named to the others."""

    address: int
    handle: bytes | None


def exposed(rank: BtlRank, region: Region) -> list[Window]:
    """Every rank's region."""
    return [Window(*it) for it in rank.exchange((region.address, region.handle))]


def transfer_sizes(limit: int) -> list[int]:
    largest = min(limit or LARGEST, LARGEST)
    return [size for size in (1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65536, largest - 1, largest) if 0 < size <= largest]


def issue(rank: BtlRank, kind: str, peer: int, local: Region, at: int, window: Window, remote_at: int, size: int) -> Sending:
    """One put or get between places of the local region and of the peer's."""
    return rank.insist(lambda: attempt(rank, kind, peer, local, at, window, remote_at, size))


def attempt(
    rank: BtlRank, kind: str, peer: int, local: Region, at: int, window: Window, remote_at: int, size: int
) -> Sending | None:
    """The same, if there is room for it now."""
    descriptor = rank.btl.prepare_dst(rank.peers[peer], local.address + at, size)
    if descriptor is None:
        return None
    descriptor.remote_address = window.address + remote_at
    descriptor.remote_handle = window.handle
    return rank.issue(descriptor, lambda: getattr(rank.btl, kind)(rank.peers[peer], descriptor))


def at_once(begin: Callable[[int], Sending], more: Callable[[int, int], Sending | None], owner: int) -> list[Sending]:
    """As many accesses as find room, one at least, while their owner makes no progress."""
    begun = [begin(owner)]
    for slot in range(1, AT_ONCE):
        if (sending := more(owner, slot)) is None:
            break
        begun.append(sending)
    return begun


def flush(rank: BtlRank, peer: int) -> None:
    clause, rank.clause = rank.clause, "put"
    rank.until(lambda: rank.btl.flush(rank.peers[peer]) == TAKEN, "flush never says that all is visible", own=True)
    rank.clause = clause


def places(rank: BtlRank, limit: int, alignment: int) -> Iterator[tuple[int, int, int]]:
    """(number, size, offset) of each transfer, at aligned offsets behind the guard."""
    shared = rank.common_random("places")
    for number, size in enumerate(transfer_sizes(limit)):
        yield number, size, -(-GUARD // alignment) * alignment + alignment * shared.randrange(8)


def one_after_the_other(rank: BtlRank) -> Iterator[int]:
    """Each rank in turn may write into its peers; all meet in between."""
    for turn in range(rank.size):
        rank.meet()
        yield turn


def require(rank: BtlRank, flag: int, name: str) -> None:
    """A flag that stands for circumstances (a string in the declaration) may be absent in these."""
    if not rank.btl.flags & flag:
        raise Unsuitable(f"not in these circumstances: {rank.component.capabilities.get(name)}")


@check("put", "completion", needs="put")
def put_writes_exactly_its_bytes(rank: BtlRank) -> None:
    require(rank, contract.PUT, "put")
    alignment = rank.btl.put_alignment
    room = LARGEST + 2 * GUARD + 10 * alignment
    mine, local = Region(rank, room, alignment), Region(rank, room, alignment)
    windows = exposed(rank, mine)
    for turn in one_after_the_other(rank):
        for number, size, at in places(rank, rank.btl.put_limit, alignment):
            mine.view[:] = bytes(room)
            rank.meet()
            if turn == rank.rank:
                for peer in rank.peers:
                    local.view[at : at + size] = rank.content(turn, peer, number, size)
                    issue(rank, "put", peer, local, at, windows[peer], at, size)
                    rank.land(f"a put of {size} bytes")
                    flush(rank, peer)
            rank.meet()
            reached = turn in rank.sources
            wanted = rank.content(turn, rank.rank, number, size) if reached else bytes(size)
            look(mine.view, at, wanted, f"put of {size} bytes by rank {turn}", "put")
            rank.meet()
    mine.close()
    local.close()


def look(view: memoryview, at: int, wanted: bytes, words: str, clause: str) -> None:
    """The bytes at `at` are those, and what is around them is zero."""
    size = len(wanted)
    if view[at : at + size] != wanted:
        found = bytes(view)
        where = found.find(wanted)
        elsewhere = f": they are at offset {where - at:+d}" if size > 7 and where >= 0 else ""
        raise Breach(clause, f"a {words}: the bytes are not where they belong{elsewhere}")
    for start, end, side in ((0, at, "before"), (at + size, len(view), "behind")):
        if bytes(view[start:end]).count(0) < end - start:
            raise Breach(clause, f"a {words} changed bytes {side} it")


@check("put", needs="put")
def a_message_after_a_put_finds_it_done(rank: BtlRank) -> None:
    require(rank, contract.PUT, "put")
    alignment = rank.btl.put_alignment
    size = min(rank.btl.put_limit or LARGEST, 30_000)
    place = -(-size // alignment) * alignment
    mine, local = Region(rank, place * rank.size, alignment), Region(rank, place * rank.size, alignment)
    windows = exposed(rank, mine)
    rank.react = lambda arrival, endpoint, view: notice(rank, mine, place, size, int(arrival.data[0]))
    rank.meet()
    for peer in rank.peers:
        at = place * rank.rank
        local.view[at : at + size] = rank.content(rank.rank, peer, 0, size)
        issue(rank, "put", peer, local, at, windows[peer], at, size)
        rank.land()
        rank.send(peer, bytes([rank.rank]) * 24)
    rank.until(lambda: len(rank.arrived) >= len(rank.sources), "messages are missing")
    rank.meet()
    rank.land()
    rank.arrived.clear()
    rank.meet()
    mine.close()
    local.close()


def notice(rank: BtlRank, mine: Region, place: int, size: int, source: int) -> None:
    at = place * source
    if mine.view[at : at + size] != rank.content(source, rank.rank, 0, size):
        raise Breach("put", f"the callback of rank {source}'s put had run, and a message after it was here before the bytes")


@check("get", "completion", needs="get")
def get_reads_exactly_its_bytes(rank: BtlRank) -> None:
    """Several at once; at the callback the bytes are here."""
    require(rank, contract.GET, "get")
    alignment = rank.btl.get_alignment
    room = LARGEST + 2 * GUARD + 10 * alignment
    mine, local = Region(rank, room, alignment), Region(rank, room, alignment)
    windows = exposed(rank, mine)
    mine.view[:] = rank.content(rank.rank, rank.rank, 0, room)
    rank.meet()
    for peer in rank.peers:
        theirs = rank.content(peer, peer, 0, room)
        for _, size, at in places(rank, rank.btl.get_limit, alignment):
            local.view[:] = bytes(room)
            sending = issue(rank, "get", peer, local, at, windows[peer], at, size)
            rank.land(f"a get of {size} bytes")
            if sending.calls != 1:
                raise Breach("completion", f"the callback of a get ran {sending.calls} times")
            look(local.view, at, theirs[at : at + size], f"get of {size} bytes from rank {peer}", "get")
        size = min(rank.btl.get_limit or 4096, 4096)
        step = -(-size // alignment) * alignment
        for index in range(AT_ONCE):
            issue(rank, "get", peer, local, step * index, windows[peer], step * (AT_ONCE - 1 - index), size)
        rank.land()
        for index in range(AT_ONCE):
            start = step * (AT_ONCE - 1 - index)
            if local.view[step * index : step * index + size] != theirs[start : start + size]:
                raise Breach("get", f"of {AT_ONCE} gets at once, number {index} brought other bytes than it asked for")
    rank.meet()
    mine.close()
    local.close()


def under_way_when_withdrawn(rank: BtlRank, turn: int) -> bool:
    """Whether all peers have begun accesses before the owner looks again: so it is in half of each owner's turns."""
    return turn // rank.size % 2 == 1


def wait_for_accesses(rank: BtlRank, turn: int) -> None:
    """As the owner of memory that peers are at: a random while; or until all have begun, and then a few looks.

    The looks grow by one with each of its turns, so that memory is withdrawn early and late in what they began.
    """
    if under_way_when_withdrawn(rank, turn):
        rank.wire.exchange(None)
        looks = turn // rank.size // 2 + 1
    else:
        looks = rank.random.randrange(10 ** rank.random.randrange(1, 4))
    for _ in range(looks):
        rank.poll()


@check("withdrawal", "completion", needs="get", ranks=2)
def memory_that_was_taken_back_is_not_read(rank: BtlRank) -> None:
    """Peers get the same bytes again and again; in the middle their owner takes the memory back, and writes into it.

    A transport that never can take it back (`withdraw` is False) has nothing to lose here.
    """
    require(rank, contract.GET, "get")
    size = min(rank.btl.get_limit or LARGEST, 30_000)
    alignment = rank.btl.get_alignment
    step = -(-size // alignment) * alignment
    mine, local = Region(rank, size, alignment), Region(rank, step * AT_ONCE, alignment)
    windows = exposed(rank, mine)
    # What reaches a peer back is perhaps there only once both have heard of each other.
    rank.transfer(lambda source: [(target, FREE_TAGS[0], bytes([source]) * 24) for target in range(rank.size)])

    def begin(owner: int) -> Sending:
        return issue(rank, "get", owner, local, 0, windows[owner], 0, size)

    def more(owner: int, slot: int) -> Sending | None:
        return attempt(rank, "get", owner, local, step * slot, windows[owner], 0, size)

    def status_of(sending: Sending, wanted: bytes, slot: int = 0) -> int:
        rank.land(f"a get of {size} bytes")
        if sending.status == 0 and local.view[step * slot : step * slot + size] != wanted:
            raise Breach(
                "withdrawal", "a get of memory that was taken back completed without an error, and not with what was there"
            )
        return sending.status

    for turn in range(TURNS * rank.size):
        owner = turn % rank.size
        before, after = (rank.content(owner, owner, 2 * turn + version, size) for version in (0, 1))
        mine.view[:] = before
        rank.meet()
        rank.may_fail = True
        taken_back, statuses = [], []
        if owner == rank.rank:
            wait_for_accesses(rank, turn)
            taken_back = [peer for peer in rank.peers if rank.btl.withdraw(rank.peers[peer], mine.address, size)]
            if len(taken_back) == len(rank.peers):
                mine.view[:] = after
        elif under_way_when_withdrawn(rank, turn):
            begun = at_once(begin, more, owner) if owner in rank.peers else []
            rank.wire.exchange(None)
            statuses = [status_of(sending, before, slot) for slot, sending in enumerate(begun)]
        elif owner in rank.peers:
            statuses = [status_of(begin(owner), before) for _ in range(rank.random.randrange(1, 40))]
        taken_back = rank.exchange(taken_back)[owner]
        if rank.rank not in taken_back and any(statuses):
            raise Breach("completion", "a get failed, though its memory was not taken back")
        rank.meet()
        if rank.rank in taken_back and owner in rank.peers:
            status_of(begin(owner), b"")  # nothing that it could bring is right
        rank.meet()
        if owner == rank.rank:
            for peer in taken_back:
                rank.btl.restore(rank.peers[peer], mine.address, size)
            mine.view[:] = after
        rank.meet()
        rank.may_fail = False
        if owner in rank.peers:
            status_of(begin(owner), after)
        rank.meet()
    mine.close()
    local.close()


@check("withdrawal", "completion", needs="put", ranks=2)
def memory_that_was_taken_back_is_not_written(rank: BtlRank) -> None:
    """Peers put into the same place again and again; in the middle its owner takes it back, and stores what must stay."""
    require(rank, contract.PUT, "put")
    alignment = rank.btl.put_alignment
    size = min(rank.btl.put_limit or LARGEST, 30_000) // alignment * alignment
    mine, local = Region(rank, size, alignment), Region(rank, size * AT_ONCE, alignment)
    windows = exposed(rank, mine)
    rank.transfer(lambda source: [(target, FREE_TAGS[0], bytes([source]) * 24) for target in range(rank.size)])

    def begin(owner: int) -> Sending:
        local.view[:size] = rank.content(rank.rank, owner, 0, size)
        return issue(rank, "put", owner, local, 0, windows[owner], 0, size)

    def more(owner: int, slot: int) -> Sending | None:
        local.view[size * slot : size * (slot + 1)] = rank.content(rank.rank, owner, slot, size)
        return attempt(rank, "put", owner, local, size * slot, windows[owner], 0, size)

    def status_of(sending: Sending, owner: int) -> int:
        rank.land(f"a put of {size} bytes")
        flush(rank, owner)
        return sending.status

    for turn in range(TURNS * rank.size):
        owner = turn % rank.size
        rank.meet()
        rank.may_fail = True
        taken_back, statuses = [], []
        if owner == rank.rank:
            wait_for_accesses(rank, turn)
            taken_back = [peer for peer in rank.peers if rank.btl.withdraw(rank.peers[peer], mine.address, size)]
            mine.view[:] = stored = rank.content(owner, owner, turn, size)
        elif under_way_when_withdrawn(rank, turn):
            begun = at_once(begin, more, owner) if owner in rank.peers else []
            rank.wire.exchange(None)
            statuses = [status_of(sending, owner) for sending in begun]
        elif owner in rank.peers:
            statuses = [status_of(begin(owner), owner) for _ in range(rank.random.randrange(1, 40))]
        taken_back = rank.exchange(taken_back)[owner]
        if rank.rank not in taken_back and any(statuses):
            raise Breach("completion", "a put failed, though its memory was not taken back")
        if rank.rank in taken_back and owner in rank.peers:
            # A sender may be told of the error, or never learn that its bytes were dropped.
            status_of(begin(owner), owner)
        rank.meet()
        if owner == rank.rank:
            if len(taken_back) == len(rank.sources) and mine.view != stored:
                raise Breach("withdrawal", "a put has changed memory that was taken back")
            for peer in taken_back:
                rank.btl.restore(rank.peers[peer], mine.address, size)
        rank.meet()
        rank.may_fail = False
        if owner in rank.peers:
            status_of(begin(owner), owner)
        rank.meet()
    mine.close()
    local.close()


@check("thrift", needs="get", option="bytes")
def so_many_bytes_are_read(rank: BtlRank) -> None:
    """One region of --bytes, read by the next rank in pieces of `get_limit`."""
    require(rank, contract.GET, "get")
    total = int(rank.options["bytes"])
    mine, local = Region(rank, total, rank.btl.get_alignment), Region(rank, total, rank.btl.get_alignment)
    piece = rank.content(rank.rank, 0, 0, 1 << 20)
    for at in range(0, total, len(piece)):
        mine.view[at : at + len(piece)] = piece[: total - at]
        rank.alive()
    windows = exposed(rank, mine)
    peer = (rank.rank + 1) % rank.size
    if peer not in rank.peers:
        peer = rank.rank
    limit = rank.btl.get_limit or total
    for at in range(0, total, limit):
        issue(rank, "get", peer, local, at, windows[peer], at, min(limit, total - at))
    rank.land()
    piece = rank.content(peer, 0, 0, 1 << 20)
    for at in range(0, total, len(piece)):
        if local.view[at : at + len(piece)] != piece[: total - at]:
            raise Breach("get", f"of {total} bytes those from {at} on are wrong")
        rank.alive()
    rank.meet()
    mine.close()
    local.close()


OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, operand, compare: old + operand,
    "and": lambda old, operand, compare: old & operand,
    "or": lambda old, operand, compare: old | operand,
    "xor": lambda old, operand, compare: old ^ operand,
    "swap": lambda old, operand, compare: operand,
    "min": lambda old, operand, compare: min(old, operand),
    "max": lambda old, operand, compare: max(old, operand),
    "cswap": lambda old, operand, compare: operand if old == compare else old,
}
WIDTHS = (4, 8)


def signed(value: int, width: int) -> int:
    """What a word of so many bytes keeps of it."""
    return int.from_bytes((value & (1 << 8 * width) - 1).to_bytes(width, "little"), "little", signed=True)


class Word(NamedTuple):
    """Where an atomic goes: a word of a peer's region."""

    peer: int
    window: Window
    at: int
    width: int


def atomic(rank: BtlRank, local: Region, word: Word, operation: str, operand: int, compare: int) -> int:
    """One atomic; returns the old value."""

    def attempt() -> Sending | None:
        descriptor: Descriptor | None = rank.btl.prepare_dst(rank.peers[word.peer], local.address, word.width)
        if descriptor is None:
            return None
        descriptor.remote_address, descriptor.remote_handle = word.window.address + word.at, word.window.handle
        return rank.issue(descriptor, lambda: rank.btl.atomic(rank.peers[word.peer], descriptor, operation, operand, compare))

    rank.insist(attempt)
    rank.land()
    return int.from_bytes(local.view[: word.width], "little", signed=True)


@check("atomics", needs="atomics")
def atomics_compute_and_give_the_old_value(rank: BtlRank) -> None:
    """On words of four and of eight bytes, whose neighbours stay as they are."""
    require(rank, contract.ATOMICS, "atomics")
    mine, local = (Region(rank, 3 * WORD, WORD, heap=True) for _ in range(2))
    windows = exposed(rank, mine)
    shared = rank.common_random("atomics")
    for width in WIDTHS:
        for turn in one_after_the_other(rank):
            before, behind = shared.randbytes(WORD), shared.randbytes(2 * WORD - width)
            mine.view[:] = before + bytes(width) + behind
            rank.meet()
            value = 0
            for operation, compute in OPERATIONS.items():
                for _ in range(3):
                    operand, other = shared.randrange(-(1 << 5 * width), 1 << 5 * width), shared.randrange(-9, 9)
                    compare = value if shared.random() < 0.5 else other
                    operand = signed(operand, width)
                    if turn == rank.rank:
                        for peer in rank.peers:
                            old = atomic(rank, local, Word(peer, windows[peer], WORD, width), operation, operand, compare)
                            if old != value:
                                words = f"{operation} of {operand} on {width} bytes found {old}, where {value} was"
                                raise Breach("atomics", words)
                    value = signed(compute(value, operand, compare), width)
            if turn == rank.rank:
                for peer in rank.peers:
                    flush(rank, peer)
            rank.meet()
            found = int.from_bytes(mine.view[WORD : WORD + width], "little", signed=True)
            if turn in rank.sources and found != value:
                raise Breach("atomics", f"after operations by rank {turn} the word of {width} bytes is {found}, not {value}")
            if mine.view[:WORD] != before or mine.view[WORD + width :] != behind:
                raise Breach("atomics", f"operations on {width} bytes have changed those beside them")
    mine.close()
    local.close()


@check("atomics", needs="atomics", ranks=2)
def no_increment_is_lost(rank: BtlRank) -> None:
    """Every rank adds 1 to one word, again and again; each finds another old value."""
    require(rank, contract.ATOMICS, "atomics")
    for width in WIDTHS:
        mine, local = (Region(rank, WORD, WORD, heap=True) for _ in range(2))
        windows = exposed(rank, mine)
        target = rank.size - 1
        word = Word(target, windows[target], 0, width)
        seen = [atomic(rank, local, word, "add", 1, 0) for _ in range(INCREMENTS) if target in rank.peers]
        everybody = [value for values in rank.exchange(seen) for value in values]
        if sorted(everybody) != list(range(len(everybody))):
            raise Breach("atomics", f"{len(everybody)} increments found {len(set(everybody))} different values before them")
        mine.close()
        local.close()
