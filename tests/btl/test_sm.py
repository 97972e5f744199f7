"""btl/sm over its contract: what is sent arrives, once, in order, whatever the ring's state."""

import gc
import os
import random

import pytest
from ompy_btl_sm.module import SmBtl
from two_processes import run

from ompy.core import progress
from ompy.core.errors import ERR_PROC_FAILED, ERR_RMA_RANGE
from ompy.core.proc import Proc
from ompy.core.progress_source import ProgressSource, register_source, unregister_source
from ompy.core.request import Request
from ompy.mca.btl import GET, IN_ORDER, PUT

SMALL_RING = 16384


def small():
    return SmBtl(ring_size=SMALL_RING)


def message(random_source, size):
    return random_source.randbytes(size)


def echo(side):
    """Sends back whatever comes, until an empty message."""
    while data := side.receive():
        side.send(data)


def test_every_size_around_a_limit_arrives_intact():
    sizes = [*range(130), 500, 4095, 4096, 4097, 8160, SMALL_RING // 2 - 72, SMALL_RING // 2 - 8]

    def here(side):
        for size in sizes[1:]:
            data = bytes(index % 251 for index in range(size))
            side.send(data)
            assert side.receive() == data, f"{size} bytes"
        side.send(b"")

    run(small, here, echo)


def test_order_holds_while_the_ring_wraps_and_both_sides_send():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    count = 20000

    def both(side):
        sizes = random.Random(seed)
        fill = random.Random(seed)
        sent = received = 0
        pending = None
        expected = random.Random(seed)
        contents = random.Random(seed)
        while sent < count or received < count:
            if pending is None and sent < count:
                pending = fill.randbytes(sizes.choice((1, 8, 24, 56, 57, 64, 120, 121, 700, 4000, 8000)))
            if pending is not None and side.try_send(pending):
                pending = None
                sent += 1
            else:
                progress.progress_once()
            while side.mailbox.messages:
                data = side.mailbox.messages.popleft()
                size = expected.choice((1, 8, 24, 56, 57, 64, 120, 121, 700, 4000, 8000))
                assert data == contents.randbytes(size), f"message {received}"
                received += 1
        side.meet_up()

    run(small, both, both)


def test_old_payload_that_looks_like_a_head_is_not_taken_for_a_message():
    # Every eight bytes of the payload say "valid, tag 20, 16 bytes".
    head = ((1 << 63) | (20 << 32) | 16).to_bytes(8, "little")
    seed = random.randrange(1 << 32)
    print("seed", seed)

    def here(side):
        sizes = random.Random(seed)
        for _ in range(5000):
            side.send(head * sizes.randrange(1, 200))
        side.meet_up()

    def there(side):
        sizes = random.Random(seed)
        for number in range(5000):
            assert side.receive() == head * sizes.randrange(1, 200), f"message {number}"
        assert not side.mailbox.messages
        side.meet_up()

    run(small, here, there)


def test_a_full_ring_refuses_and_loses_nothing():
    def here(side):
        assert side.btl.flags & IN_ORDER
        taken = 0
        while side.try_send(b"%06d" % taken + bytes(1000)):
            taken += 1
        assert taken >= 10
        assert not side.try_send(bytes(1006))
        assert side.btl.statistics()["ring_full"] == 2
        side.pipe.send(taken)
        while not side.try_send(b"last"):
            progress.progress_once()
        assert side.receive() == b"thanks"
        side.meet_up()

    def there(side):
        taken = side.pipe.recv()
        for number in range(taken):
            assert side.receive() == b"%06d" % number + bytes(1000)
        assert side.receive() == b"last"
        side.send(b"thanks")
        side.meet_up()

    run(small, here, there)


@pytest.mark.parametrize("with_descriptor", [False, True], ids=["futex", "pipe"])
def test_no_wake_up_is_lost(with_descriptor):
    """With a back-stop longer than the test, one lost wake-up is a hang."""
    count = 1000
    seed = random.randrange(1 << 32)
    print("seed", seed)

    class Descriptor(ProgressSource):
        def __init__(self):
            self.reader, self.writer = os.pipe()

        def progress(self):
            return 0

        def descriptor(self):
            return self.reader

    def both(side, first):
        progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=10 * 60 * 1000)
        source = Descriptor()
        if with_descriptor:
            register_source(source)
        pauses = random.Random(seed + first)
        for number in range(count):
            if first:
                side.send(b"%d" % number)
            assert side.wait() == b"%d" % number
            for _ in range(pauses.randrange(300)):
                pass
            if not first:
                side.send(b"%d" % number)
        unregister_source(source)
        progress.configure()
        os.close(source.reader)
        os.close(source.writer)

    run(SmBtl, lambda side: both(side, True), lambda side: both(side, False))


@pytest.mark.timeout(60)
def test_no_wake_up_for_space_is_lost():
    """A ring of three messages is full all the time, and each side sleeps when it has nothing to do."""
    count = 2000
    seed = random.randrange(1 << 32)
    print("seed", seed)

    class Retrying(SmBtl):
        """What found no room is tried again in the round that finds some: a source of its own might not be asked in that."""

        message = sent = None

        def progress(self):
            events = super().progress()
            if self.message is None or not self.side.try_send(self.message):
                return events
            self.message = None
            self.sent.fail(None)
            return events + 1

        def send_whenever(self, message):
            if not self.side.try_send(message):
                self.message, self.sent = message, Request()
                progress.wait_request(self.sent)

    def sleeping():
        progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=10 * 60 * 1000)
        return random.Random(seed + os.getpid())

    def here(side):
        pauses, side.btl.side = sleeping(), side
        for number in range(count):
            side.btl.send_whenever(b"%5000d" % number)
            for _ in range(pauses.randrange(300)):
                pass
        assert side.btl.statistics()["ring_full"] > 10
        progress.configure()

    def there(side):
        pauses = sleeping()
        for number in range(count):
            assert int(side.wait()) == number
            for _ in range(pauses.randrange(300)):
                pass
        progress.configure()

    run(lambda: Retrying(ring_size=SMALL_RING), here, there)


def test_message_before_the_receiver_has_met_the_sender():
    def here(side):
        side.meet()
        side.send(b"hello")
        assert side.receive() == b"hello to you"
        side.meet_up()

    def there(side):
        side.until(lambda: side.mailbox.messages)
        assert side.mailbox.messages.popleft() == b"hello"
        assert side.mailbox.endpoints.popleft() is None
        side.meet()
        side.send(b"hello to you")
        assert side.btl.statistics()["rings_in"] == 1
        side.meet_up()

    run(SmBtl, here, there, met=False)


def test_a_ring_that_was_given_back_goes_once_its_peer_has_found_it():
    """A peer of another job may look for the last message after this process has taken its leave of it."""

    def given_back(side):
        return side.btl.statistics()["rings_given_back"]

    def here(side):
        proc = Proc(1, 1, "another job", "here", side.peer_pid, False, True, side.proc.card, object(), 1)
        (side.endpoint,) = side.btl.add_procs([proc])
        side.send(b"farewell")
        side.btl.del_procs([side.endpoint])
        assert given_back(side) == 1
        side.meet_up()
        side.until(lambda: side.btl.look_at_peers() == 0 and given_back(side) == 0)

    def there(side):
        side.meet_up()
        assert side.receive() == b"farewell"

    run(small, here, there, met=False)


def test_put_and_get_copy_between_processes():
    from ompy.core.memory import address_of

    def here(side):
        if not side.btl.flags & GET:
            pytest.skip("the kernel forbids it here")
        assert side.btl.flags & PUT
        theirs = bytearray(b"theirs" * 50000)
        side.pipe.send((address_of(theirs), len(theirs)))
        side.meet_up()
        assert theirs == b"ours!!" * 50000

    def there(side):
        address, size = side.pipe.recv()
        memory = bytearray(size)
        done = []
        descriptor = side.btl.prepare_dst(side.endpoint, address_of(memory), size)
        descriptor.remote_address = address
        descriptor.context = lambda descriptor, status: done.append(status)
        assert side.btl.get(side.endpoint, descriptor) == 0
        assert memory == b"theirs" * 50000
        memory[:] = b"ours!!" * 50000
        descriptor = side.btl.prepare_dst(side.endpoint, address_of(memory), size)
        descriptor.remote_address = address
        descriptor.context = lambda descriptor, status: done.append(status)
        assert side.btl.put(side.endpoint, descriptor) == 0
        assert done == [0, 0]
        assert side.btl.statistics()["bytes_copied_by_kernel"] == 2 * size
        assert side.btl.statistics()["bytes_copied_in_heap"] == 0
        # An address that is not there is the PML's to deal with, not an exception.
        descriptor = side.btl.prepare_dst(side.endpoint, address_of(memory), size)
        descriptor.remote_address = 8
        descriptor.context = lambda descriptor, status: done.append(status)
        assert side.btl.get(side.endpoint, descriptor) == 0
        assert done[2] != 0
        side.meet_up()

    run(SmBtl, here, there)


def test_an_atomic_on_memory_outside_of_the_heap_is_refused():
    from ompy.core.memory import address_of

    def here(side):
        word = bytearray(16)
        side.pipe.send(address_of(word) + 7 & ~7)
        side.meet_up()
        assert word == bytes(16)

    def there(side):
        memory, done = bytearray(8), []
        descriptor = side.btl.prepare_dst(side.endpoint, address_of(memory), 8)
        descriptor.remote_address = side.pipe.recv()
        descriptor.context = lambda descriptor, status: done.append(status)
        side.btl.atomic(side.endpoint, descriptor, "add", 1, 0)
        assert done == [ERR_RMA_RANGE]
        side.meet_up()

    run(SmBtl, here, there)


def test_without_single_copy_neither_put_nor_get_is_offered():
    btl = SmBtl(single_copy=False)
    assert not btl.flags & (PUT | GET)
    btl.finalize()


def test_memory_that_the_kernel_does_not_let_us_read_drops_put_and_get(monkeypatch):
    told = []

    def make():
        btl = SmBtl()
        btl.on_fallback = told.append
        return btl

    def here(side):
        pid, host, inbox, slots, _, *rest = side.proc.card["sm"].decode().split("\n")
        side.proc.card["sm"] = "\n".join((pid, host, inbox, slots, "8", *rest)).encode()
        side.meet()
        assert not side.btl.flags & (PUT | GET)
        assert len(told) == 1
        assert pid in told[0]
        side.send(b"still works")
        side.meet_up()

    def there(side):
        side.meet()
        assert side.receive() == b"still works"
        side.meet_up()

    run(make, here, there, met=False)


def test_death_of_a_peer_is_reported_after_its_last_message():
    def here(side):
        assert side.receive() == b"first"
        side.pipe.send("die")
        os.waitid(os.P_PID, side.peer_pid, os.WEXITED | os.WNOWAIT)

        def reported():
            side.btl.may_sleep()
            return side.errors

        side.until(reported)
        assert side.mailbox.messages.popleft() == b"last words"
        ((proc, error),) = side.errors
        assert proc is side.proc
        assert error.code == ERR_PROC_FAILED
        assert str(side.peer_pid) in str(error)
        with pytest.raises(type(error)):
            side.try_send(b"anybody there?")

    def there(side):
        side.send(b"first")
        assert side.pipe.recv() == "die"
        side.send(b"last words")
        os.kill(os.getpid(), 9)

    run(SmBtl, here, there)


def test_a_peer_that_closed_is_not_reported_as_dead():
    def here(side):
        side.send(b"ping")
        assert side.receive() == b"pong"
        side.meet_up()
        os.waitid(os.P_PID, side.peer_pid, os.WEXITED | os.WNOWAIT)
        for _ in range(1000):
            side.btl.may_sleep()
            progress.progress_once()
        assert not side.errors

    def there(side):
        assert side.receive() == b"ping"
        side.send(b"pong")
        side.meet_up()

    run(SmBtl, here, there)


def mappings():
    with open("/proc/self/maps") as lines:
        return [line for line in lines if "ompy" in line and ".so" not in line]


def files_of(processes):
    return [name for name in os.listdir("/dev/shm") if any(f".{pid}." in name for pid in processes)]


@pytest.mark.parametrize("backing", ["memfd", "file"])
def test_nothing_is_left_behind(backing):
    gc.collect()  # what earlier tests have left to the collector
    descriptors = set(os.listdir("/proc/self/fd"))
    mapped = mappings()
    processes = []

    def both(side):
        side.send(b"%d " % os.getpid() + b"x" * 10000)
        processes[:] = [os.getpid(), int(side.receive().split()[0])]
        assert backing == "memfd" or files_of(processes)
        side.meet_up()

    run(lambda: SmBtl(backing=backing), both, both)
    assert set(os.listdir("/proc/self/fd")) == descriptors
    assert not files_of(processes)
    assert mappings() == mapped


def test_a_ring_that_can_t_be_mapped_is_an_error_of_its_peer():
    def here(side):
        assert side.pipe.recv() == "announced, and gone"
        side.until(lambda: side.errors)
        ((proc, error),) = side.errors
        assert proc is side.proc
        assert str(side.peer_pid) in str(error)
        assert not side.mailbox.messages

    def there(side):
        before = set(files_of([os.getpid()]))
        assert side.try_send(b"in a ring that nobody finds")
        (ring,) = set(files_of([os.getpid()])) - before
        os.unlink(f"/dev/shm/{ring}")
        side.pipe.send("announced, and gone")

    run(lambda: SmBtl(backing="file"), here, there)


def test_segments_are_for_their_owner_alone():
    for backing in ("memfd", "file"):
        btl = SmBtl(backing=backing)
        inbox = btl.address().decode().split("\n")[2]
        path = inbox if inbox.startswith("/") else "/proc/{}/fd/{}".format(*inbox.split(":"))
        assert os.stat(path).st_mode & 0o777 == 0o600
        btl.finalize()
    progress.shutdown()


def test_peers_of_another_host_are_refused_with_a_reason():
    def here(side):
        fields = side.proc.card["sm"].decode().split("\n")
        fields[1] = "another-boot/pid:[1]/0"
        side.proc.card["sm"] = "\n".join(fields).encode()
        assert "host" in side.meet()
        side.proc.card.clear()
        assert "does not run" in side.meet()

    run(SmBtl, here, lambda side: None, met=False)


@pytest.mark.ompy(5, mca={"btl": "self,sm", "btl_sm_inbox_slots": "1"})
def test_more_peers_than_rings_that_can_be_announced_at_a_time_get_through(comm):
    assert comm.alltoall([comm.rank] * comm.size) == list(range(comm.size))
