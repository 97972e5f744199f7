"""ob1 with checksums: whatever is wrong with a message, both sides end with an error that names the other, and none waits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from ompy_pml_ob1.checked import CheckedBtl
from wire import ACK, FIN, FRAG, MATCH, PUT_KIND, RGET, RNDV, Pair, WireBtl, ob1

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.request import Request
from ompy.mca.bml import Bml
from ompy.mca.btl import GET, IN_ORDER, PUT, SEND, TAKEN, Descriptor, Endpoint
from ompy.mca.pml import Pml

FRAME = 40
LIMITS = {"eager_limit": 300, "rndv_eager_limit": 100, "max_send_size": 600, "rdma_pipeline_send_length": 300,
          "rdma_pipeline_frag_size": 700, "min_rdma_pipeline_size": 600}  # fmt: skip

Fault = Callable[[list[tuple[int, bytes]], int, bytes], None]


class FaultyWire(WireBtl):
    """A wire with a fault that befalls the first packet of one kind, or what is read or written in place.

    The send of the first packet of another kind raises.
    """

    fault: Fault | None = None
    kind = raises = 0
    spoils = False
    fired = 0

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        kind = bytes(descriptor.view)[FRAME] if descriptor.length > FRAME else 0
        if kind and kind == self.raises and not self.fired:
            self.fired += 1
            raise ZeroDivisionError("this send was to raise")
        taken = super().send(endpoint, descriptor, tag)
        if taken == TAKEN and self.fault is not None and kind == self.kind and not self.fired:
            self.fired += 1
            self.fault(self.peer.queue, *self.peer.queue.pop())
        return taken

    def access(self, descriptor: Descriptor, what: str, target: int, source: int, limit: int) -> int:
        taken = super().access(descriptor, what, target, source, limit)
        if self.spoils:
            self.fired += 1
            byte = ctypes.c_ubyte.from_address(target + descriptor.size // 2)
            byte.value ^= 0x10
        return taken


def damage_data(queue: list[tuple[int, bytes]], tag: int, packet: bytes) -> None:
    queue.append((tag, packet[:-1] + bytes([packet[-1] ^ 1])))


def damage_frame(queue: list[tuple[int, bytes]], tag: int, packet: bytes) -> None:
    queue.append((tag, packet[:20] + bytes([packet[20] ^ 1]) + packet[21:]))


def cut(queue: list[tuple[int, bytes]], tag: int, packet: bytes) -> None:
    queue.append((tag, packet[:30]))


def lose(queue: list[tuple[int, bytes]], tag: int, packet: bytes) -> None:
    pass


def repeat(queue: list[tuple[int, bytes]], tag: int, packet: bytes) -> None:
    queue.extend([(tag, packet)] * 2)


def checked(bml: Bml, rank: int, **options: object) -> tuple[Pml, Callable[[], int]]:
    bml.wrap(lambda btl: CheckedBtl(btl, "pair", rank, 2))
    return ob1(bml, rank, **options)


@pytest.fixture
def make() -> Iterator[Callable[[int], Pair]]:
    pairs = []

    def make(flags: int = SEND) -> Pair:
        pair = Pair(
            lambda: [FaultyWire("wire", flags=flags | IN_ORDER, **LIMITS)],
            checked,
            checksum=True,
        )
        pairs.append(pair)
        return pair

    yield make
    for pair in pairs:
        for side in pair.sides:
            for btl in side.pml.bml.btls:
                btl.finalize()


def drive(pair: Pair, *requests: Request) -> None:
    for _ in range(1000):
        pair.step()
        for side in pair.sides:
            for btl in side.pml.bml.btls:
                btl.progress()
        if all(request.complete for request in requests):
            return
    raise AssertionError("nothing moves")


def exchange(pair: Pair, size: int) -> tuple[list[Request], bool]:
    """Three messages from side 0 to side 1; the requests, and whether all arrived as they were sent."""
    left, right = pair.sides
    sent = [bytearray([number + 1]) * size for number in range(3)]
    received = [bytearray(size) for _ in sent]
    receives = [right.irecv(buffer, 5) for buffer in received]
    sends = []
    for data in sent:
        with suppress(MPIError):  # contact may have ended already
            sends.append(left.isend(data, 5))
    drive(pair, *receives, *sends)
    return [*receives, *sends], received == sent


SETTINGS = [
    (SEND, 200, MATCH, 0),
    (SEND, 5000, RNDV, 0),
    (SEND, 5000, ACK, 1),
    (SEND, 5000, FRAG, 0),
    (SEND | GET, 5000, RGET, 0),
    (SEND | GET, 5000, FIN, 1),
    (SEND | PUT, 5000, PUT_KIND, 1),
    (SEND | PUT, 5000, FIN, 0),
]


@pytest.mark.parametrize(("flags", "size"), [(SEND, 0), (SEND, 200), (SEND, 5000), (SEND | GET, 5000), (SEND | PUT, 5000)])
def test_without_a_fault_everything_arrives(make, flags: int, size: int) -> None:
    pair = make(flags)
    requests, right = exchange(pair, size)
    assert right
    assert [request.error for request in requests] == [None] * len(requests)


@pytest.mark.parametrize("fault", [damage_data, damage_frame, cut, lose, repeat], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize(("flags", "size", "kind", "sender"), SETTINGS)
def test_a_wrong_message_is_an_error_on_both_sides_and_nobody_waits(
    make, flags: int, size: int, kind: int, sender: int, fault: Fault
) -> None:
    pair = make(flags)
    wire = pair.sides[sender].btls[0]
    wire.kind, wire.fault = kind, fault
    requests, right = exchange(pair, size)
    assert wire.fired == 1
    failed = [request.error for request in requests if request.error is not None]
    for error in failed:
        assert error.code == ERR_OTHER
        assert "rank 0 of pair" in str(error) or "rank 1 of pair" in str(error)
    assert failed or right
    # Loss of the very last message shows with the next; here there is always one more.
    for side in pair.sides:
        with suppress(MPIError):
            drive(pair, side.isend(bytearray(8), 7))
    drive(pair)
    for side in pair.sides:
        with pytest.raises(Exception, match=f"ended contact with rank {1 - side.rank} of pair .host here, pid 1"):
            side.isend(bytearray(8), 7)
        for source in (1 - side.rank, -1):
            late = side.irecv(bytearray(8), 9, source=source)
            assert late.complete, "a receive that nothing can satisfy waits"
            assert late.error.code == ERR_OTHER


@pytest.mark.parametrize("flags", [SEND | GET, SEND | PUT])
def test_what_remote_memory_access_spoils_is_an_error_on_both_sides(make, flags: int) -> None:
    pair = make(flags)
    for side in pair.sides:
        side.btls[0].spoils = True
    requests, _ = exchange(pair, 5000)
    assert sum(side.btls[0].fired for side in pair.sides)
    assert all(request.error is not None for request in requests[:3])
    assert all("5000 bytes from rank 0" in str(request.error) for request in requests[:3])
    for request in requests:
        assert request.error is None or request.error.code == ERR_OTHER


@pytest.mark.parametrize(("size", "kind"), [(200, MATCH), (5000, RNDV), (5000, FRAG)])
def test_contact_goes_on_after_a_send_in_which_the_transport_raises(make, size: int, kind: int) -> None:
    pair = make()
    left, right = pair.sides
    left.btls[0].raises = kind
    matched = [right.irecv(bytearray(size), 6)] if kind == FRAG else []
    with suppress(ZeroDivisionError):
        drive(pair, left.isend(bytearray(size), 6), *matched)
    assert left.btls[0].fired == 1
    requests, all_right = exchange(pair, size)
    assert all_right
    assert [request.error for request in requests] == [None] * 6


def test_a_longer_message_than_the_buffer_is_the_usual_error(make) -> None:
    pair = make(SEND | GET)
    left, right = pair.sides
    received = bytearray(64)
    receive, send = right.irecv(received, 1), left.isend(bytearray(b"y" * 5000), 1)
    drive(pair, receive, send)
    assert received == b"y" * 64
    assert "holds 64 bytes" in str(receive.error)
    assert send.error is None
