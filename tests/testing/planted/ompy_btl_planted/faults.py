"""Ways to get a transport wrong: each class breaks the clause that it names, and none before it in the kit's order."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import pickle
import tempfile
import threading
import time
from collections import deque
from select import EPOLLIN
from socket import AF_UNIX, SOCK_NONBLOCK, SOCK_STREAM, socket

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED
from ompy.core.memory import view
from ompy.mca import btl as contract
from ompy.mca.btl import BACK_PRESSURE, TAKEN, Descriptor
from ompy_btl_planted.good import ATOMIC, DONE, GET, LARGEST, MESSAGE, PUT, GoodBtl, Peer

RENEWED = DONE + 1  # a kind of packet that the good one does not have

# -- from opening to the first message


class EagerAboveTheMaximum(GoodBtl):
    clause = "open"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.eager_limit = self.max_send_size + 1


class NoAlignment(GoodBtl):
    clause = "open"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.put_alignment = 0


class OrderNotFlagged(GoodBtl):
    clause = "declaration"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.flags &= ~contract.IN_ORDER


class AddressChanges(GoodBtl):
    clause = "publish"
    asked = 0

    def address(self) -> bytes:
        self.asked += 1
        return super().address() + b"?" * (self.asked - 1)


class DropsStrangers(GoodBtl):
    clause = "connect"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        if sender in self.peers:
            super().arrived(sender, tag, data)


class RefusesWithoutReason(GoodBtl):
    clause = "reach"

    def reach(self, proc):
        return super().reach(proc) if not proc.is_self else ""


class AnotherEndpointEachTime(GoodBtl):
    clause = "reach"

    def reach(self, proc):
        if not proc.is_self and proc.card[self.name] in self.peers:
            self.del_procs([self.peers[proc.card[self.name]]])
        return super().reach(proc)


class AnswersOutOfOrder(GoodBtl):
    clause = "reach"

    def add_procs(self, procs):
        return super().add_procs(procs)[::-1]


class ProgressWaits(GoodBtl):
    clause = "progress"

    def progress(self) -> int:
        return super().progress() or (self.watched.poll(0.01) and 0) or 0


class AlwaysBusy(GoodBtl):
    clause = "progress"

    def progress(self) -> int:
        return super().progress() + 1


class CountsNothing(GoodBtl):
    clause = "progress"

    def progress(self) -> int:
        return super().progress() or -1


class NeverSleeps(GoodBtl):
    clause = "sleep"

    def may_sleep(self) -> bool:
        return False


class WakesNobody(GoodBtl):
    clause = "sleep"

    def descriptor(self) -> int:
        return -1


class GivesTheOldEndpoint(GoodBtl):
    """`del_procs` closes what an endpoint holds, and `add_procs` finds it again."""

    clause = "reach"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.known: dict[int, Peer] = {}

    def reach(self, proc):
        if proc.rank not in self.known:
            answer = super().reach(proc)
            if not isinstance(answer, Peer):
                return answer
            self.known[proc.rank] = answer
        return self.known[proc.rank]


class StatisticsOfNothing(GoodBtl):
    """An average, before there is anything to take it of."""

    clause = "statistics"

    def statistics(self):
        return {"mean size": 0 // len(self.peers)}


class StatisticsOfTheirOwnThread(GoodBtl):
    clause = "statistics"

    def statistics(self):
        assert threading.current_thread() is threading.main_thread(), "asked from elsewhere"
        return {"peers": len(self.peers)}


# -- messages


class LosesOne(GoodBtl):
    clause = "delivery"
    count = 0

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.count += 1
        if self.count % 90:
            super().arrived(sender, tag, data)


class DeliversTwice(GoodBtl):
    clause = "delivery"
    count = 0

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.count += 1
        for _ in range(1 if self.count % 90 else 2):
            super().arrived(sender, tag, data)


class ChangesAByte(GoodBtl):
    clause = "delivery"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        if len(data) > 300:
            data = data[:200] + bytes([data[200] ^ 1]) + data[201:]
        super().arrived(sender, tag, data)


class SwapsTags(GoodBtl):
    clause = "tag"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        super().arrived(sender, {100: 101, 101: 100}.get(tag, tag), data)


class TagWithoutReceiver(GoodBtl):
    clause = "tag"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        super().arrived(sender, tag & 0x7F, data)


class NamesNoSender(GoodBtl):
    clause = "sender"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.deliver_view(tag, None, data)


class LosesEmptyMessagesOfTheLastTag(GoodBtl):
    clause = "tag"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        if data or tag != 255:
            super().arrived(sender, tag, data)


class TruncatesTheLargest(GoodBtl):
    clause = "size"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        super().arrived(sender, tag, data[: LARGEST - 1])


class OffByOneAtTheEagerLimit(GoodBtl):
    clause = "size"

    def pack(self, descriptor: Descriptor, tag: int) -> bytes:
        packet = super().pack(descriptor, tag)
        return packet[:-1] if descriptor.total_length == self.eager_limit + 1 else packet


class DropsEmptyMessages(GoodBtl):
    clause = "size"

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        if data:
            super().arrived(sender, tag, data)


class GivesLessRoom(GoodBtl):
    clause = "size"

    def alloc(self, endpoint, size):
        return super().alloc(endpoint, min(size, LARGEST - 64))


class LosesACallback(GoodBtl):
    clause = "completion"
    count = 0

    def sent(self, descriptor: Descriptor) -> None:
        self.count += 1
        if self.count % 90:
            super().sent(descriptor)


class CallbackTwice(GoodBtl):
    clause = "completion"

    def sent(self, descriptor: Descriptor) -> None:
        descriptor.complete()
        descriptor.complete()


class CallbackTwiceUnawares(GoodBtl):
    """Past the check of `complete`, which knows one descriptor's state only."""

    clause = "completion"

    def sent(self, descriptor: Descriptor) -> None:
        callback = descriptor.context
        descriptor.complete()
        if callback is not None:
            callback(descriptor, 0)


class SaysThatItFailed(GoodBtl):
    clause = "completion"

    def sent(self, descriptor: Descriptor) -> None:
        descriptor.complete(ERR_OTHER)


class CallbackBeforeTheDataIsRead(GoodBtl):
    clause = "ownership"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.later: deque[tuple[bytes, Descriptor, int, int]] = deque()

    def send(self, endpoint, descriptor, tag):
        self.later.append((endpoint.proc.card[self.name], descriptor, descriptor.length, tag))
        descriptor.complete()
        return TAKEN

    def progress(self) -> int:
        if self.later:
            address, descriptor, length, tag = self.later[0]
            descriptor.length = length
            if self.transmit(address, self.pack(descriptor, tag)):
                self.later.popleft()
        return super().progress()

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.later


class PayloadReadTooLate(GoodBtl):
    """Header at once, the program's memory later; small messages are copied."""

    clause = "ownership"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.later: deque[tuple[bytes, bytes, int, int]] = deque()

    def prepare_src(self, endpoint, address, header_size, size):
        if size < 4096:
            return super().prepare_src(endpoint, address, header_size, size)
        descriptor = self.alloc(endpoint, header_size + size)
        descriptor.local_address = address
        descriptor.size = size
        return descriptor

    def free(self, descriptor):
        descriptor.size = 0
        return super().free(descriptor)

    def send(self, endpoint, descriptor, tag):
        if descriptor.size < 4096 or descriptor.length <= 4096:
            return super().send(endpoint, descriptor, tag)
        header = bytes(descriptor.view[: descriptor.length - descriptor.size])
        packet = endpoint.proc.card[self.name], bytes([MESSAGE, tag]) + header, descriptor.local_address, descriptor.size
        self.later.append(packet)
        self.sent(descriptor)
        return TAKEN

    def progress(self) -> int:
        if self.later:
            target, start, address, size = self.later[0]
            if self.transmit(target, start + view(address, size)):
                self.later.popleft()
        return super().progress()

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.later


class HandsOutWhatIsUnderWay(GoodBtl):
    """Completes from progress, and takes a descriptor for free as soon as it was sent."""

    clause = "ownership"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.under_way: deque[Descriptor] = deque()

    def alloc(self, endpoint, size):
        if self.under_way and self.under_way[-1].capacity >= size:
            descriptor = self.under_way[-1]
            descriptor.length = size
            return descriptor
        return super().alloc(endpoint, size)

    def sent(self, descriptor: Descriptor) -> None:
        self.under_way.append(descriptor)

    def progress(self) -> int:
        events = len(self.under_way)
        while self.under_way:
            self.under_way.popleft().complete()
        return super().progress() + events


class ReceivesIntoWhatItSendsFrom(GoodBtl):
    clause = "receipt"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.buffer = bytearray(2 * LARGEST)

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        memory = memoryview(self.buffer)[: len(data)]
        memory[:] = data
        self.deliver_view(tag, self.peers.get(sender), memory)

    def pack(self, descriptor: Descriptor, tag: int) -> bytes:
        packet = super().pack(descriptor, tag)
        self.buffer[: len(packet)] = packet
        return packet


class Overtakes(GoodBtl):
    clause = "order"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.kept: deque[tuple[bytes, int, bytes]] = deque()
        self.count = 0

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.count += 1
        if self.count % 50 == 0:
            self.kept.append((sender, tag, data))
        else:
            super().arrived(sender, tag, data)

    def progress(self) -> int:
        events = super().progress()
        if not events and self.kept:
            super().arrived(*self.kept.popleft())
            return 1
        return events

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.kept


class OvertakesLongOnes(GoodBtl):
    """What is above 20,000 bytes is put together apart, and handed over after what is short."""

    clause = "order"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.long: deque[tuple[bytes, int, bytes]] = deque()

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        if len(data) > 20_000:
            self.long.append((sender, tag, data))
        else:
            super().arrived(sender, tag, data)

    def progress(self) -> int:
        events = super().progress()
        if not events and self.long:
            super().arrived(*self.long.popleft())
            return 1
        return events

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.long


class ReusesTheBufferOfAReceiverThatRaised(GoodBtl):
    """Reads messages by twos; what a receiver's exception kept from being handed over is read into again."""

    clause = "receipt"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.buffers = [bytearray(2 * LARGEST), bytearray(2 * LARGEST)]
        self.waiting: list[tuple[bytes, int, int, int]] = []

    def take(self, packet, sender):
        if packet[0] != MESSAGE:
            super().take(packet, sender)
            return
        place = len(self.waiting)
        self.buffers[place][: len(packet) - 2] = packet[2:]
        self.waiting.append((sender, packet[1], place, len(packet) - 2))
        if len(self.waiting) == 2:
            self.hand_over()

    def hand_over(self) -> None:
        waiting, self.waiting = self.waiting, []
        for sender, tag, place, length in waiting:
            self.arrived(sender, tag, bytes(self.buffers[place][:length]))

    def progress(self) -> int:
        events = super().progress()
        if not events and self.waiting:
            self.hand_over()
            return 1
        return events

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.waiting


class HandsOverAgainWhatAReceiverRaisedOf(GoodBtl):
    clause = "receipt"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.queue: deque[tuple[bytes, int, bytes]] = deque()

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.queue.append((sender, tag, data))
        super().arrived(*self.queue[0])
        self.queue.popleft()


class DeliversInSend(GoodBtl):
    """Looks for arrivals before it sends, so that there is room at the peer."""

    clause = "nesting"

    def send(self, endpoint, descriptor, tag):
        ready = [number for number, _ in self.watched.poll(0)]
        if not self.inside and self.socket.fileno() in ready:
            self.take(*self.socket.recvfrom(2 * LARGEST))
        return super().send(endpoint, descriptor, tag)

    inside = False

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        before, self.inside = self.inside, True
        super().arrived(sender, tag, data)
        self.inside = before


class ProgressFromWithin(GoodBtl):
    """Makes room in `send` by receiving, even when it was called by a receiver."""

    clause = "nesting"

    def send(self, endpoint, descriptor, tag):
        taken = super().send(endpoint, descriptor, tag)
        if tag == 16 and descriptor.length == 40:
            self.progress()
        return taken


class KeepsEveryMessage(GoodBtl):
    clause = "thrift"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.history: list[object] = []

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.history.append([data, tag])
        super().arrived(sender, tag, data)


class KeepsDescriptors(GoodBtl):
    clause = "thrift"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.history: list[Descriptor] = []

    def alloc(self, endpoint, size):
        descriptor = Descriptor(self, max(size, 64))
        descriptor.length = size
        self.history.append(descriptor)
        return descriptor


class OpensAFileForEachTwenty(GoodBtl):
    clause = "thrift"
    count = 0

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.count += 1
        if self.count % 20 == 0:
            os.dup(1)
        super().arrived(sender, tag, data)


# -- pressure


class RaisesWhenFull(GoodBtl):
    clause = "back-pressure"

    def refuse(self, endpoint, descriptor, tag):
        raise BlockingIOError("no room at the peer")


class RefusesAndTakes(GoodBtl):
    clause = "back-pressure"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.later: deque[tuple[bytes, bytes]] = deque()

    def refuse(self, endpoint, descriptor, tag):
        self.later.append((endpoint.proc.card[self.name], self.pack(descriptor, tag)))
        return BACK_PRESSURE

    def progress(self) -> int:
        if self.later and self.transmit(*self.later[0]):
            self.later.popleft()
        return super().progress()


class RefusesAndCallsBack(GoodBtl):
    clause = "back-pressure"

    def refuse(self, endpoint, descriptor, tag):
        descriptor.complete(ERR_OTHER)
        return BACK_PRESSURE


class AnswersNothing(GoodBtl):
    clause = "back-pressure"

    def refuse(self, endpoint, descriptor, tag):
        return None


class KeepsWhatItRefused(GoodBtl):
    """Notes each refusal, to be fair to whoever was refused first."""

    clause = "thrift"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.refusals: list[list[object]] = []

    def refuse(self, endpoint, descriptor, tag):
        self.refusals.append([endpoint, descriptor.length, tag])
        return BACK_PRESSURE


class CreditsThatDoNotReturn(GoodBtl):
    """A thousand messages to each peer; an answer brings as many credits as there were messages, and only an answer."""

    clause = "back-pressure"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.credits: dict[bytes, int] = {}

    def send(self, endpoint, descriptor, tag):
        name = endpoint.proc.card[self.name]
        if self.credits.setdefault(name, 1000) == 0:
            return BACK_PRESSURE
        taken = super().send(endpoint, descriptor, tag)
        self.credits[name] -= taken == TAKEN
        return taken

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.credits[sender] = 1000
        super().arrived(sender, tag, data)


class BlocksInSend(GoodBtl):
    """Two that send to each other wait for each other."""

    clause = "back-pressure"

    def refuse(self, endpoint, descriptor, tag):
        while not self.transmit(endpoint.proc.card[self.name], self.pack(descriptor, tag)):
            time.sleep(0.001)
        self.sent(descriptor)
        return TAKEN


class RefusesForEverAfterAWrap(GoodBtl):
    """At the end of rank 0's ring there is less room than a message needs; nobody goes on to its beginning."""

    clause = "back-pressure"
    RING = 1 << 18

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.place = 0

    def send(self, endpoint, descriptor, tag):
        length = descriptor.total_length
        if self.rte.rank == 0 and self.place < self.RING < self.place + length:
            return BACK_PRESSURE
        taken = super().send(endpoint, descriptor, tag)
        if taken == TAKEN:
            self.place += length
        return taken


class StarvesThePeersBehindTheFirst(GoodBtl):
    """A queue for each peer; the first that is not empty is served."""

    clause = "fairness"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.queues: dict[bytes, deque[bytes]] = {}

    def progress(self) -> int:
        while self.socket.fileno() in {number for number, _ in self.watched.poll(0)}:
            packet, sender = self.socket.recvfrom(2 * LARGEST)
            self.queues.setdefault(sender, deque()).append(packet)
        for sender in sorted(self.queues):
            if self.queues[sender]:
                self.take(self.queues[sender].popleft(), sender)
                return 1
        return super().progress()

    def may_sleep(self) -> bool:
        return super().may_sleep() and not any(self.queues.values())


class SendsBeforeItReceives(GoodBtl):
    """What it could not send it keeps, and looks for arrivals only when that is gone: two such wait for each other."""

    clause = "back-pressure"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.stuck: Descriptor | None = None

    def refuse(self, endpoint, descriptor, tag):
        self.stuck = endpoint
        return BACK_PRESSURE

    def send(self, endpoint, descriptor, tag):
        self.stuck = None
        return super().send(endpoint, descriptor, tag)

    def progress(self) -> int:
        return 0 if self.stuck is not None else super().progress()


# -- remote memory


class PutsBesideThePlace(GoodBtl):
    clause = "put"

    def serve(self, kind, handle, address, *fields):
        if kind == PUT and len(fields[0]) % 2:
            address += 1
        return super().serve(kind, handle, address, *fields)


class PutsLessThanAsked(GoodBtl):
    clause = "put"

    def put(self, endpoint, descriptor):
        return self.request(endpoint, descriptor, PUT, bytes(descriptor.local_view)[:4096])


class PutsTooLate(GoodBtl):
    """Says that a put is done when it has arrived, and carries it out later."""

    clause = "put"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.waiting: deque[tuple[object, ...]] = deque()
        self.looks = 0

    def serve(self, kind, handle, address, *fields):
        if kind == PUT:
            self.waiting.append((kind, handle, address, *fields))
            self.looks = 0
            return b""
        return super().serve(kind, handle, address, *fields)

    def progress(self) -> int:
        self.looks += 1
        if self.waiting and self.looks > 3000:
            super().serve(*self.waiting.popleft())
        return super().progress()


class GetsPastTheEnd(GoodBtl):
    clause = "get"

    def store(self, descriptor, data):
        super().store(descriptor, data + b"\1" if descriptor.size > 8 else data)


class GetsOtherBytes(GoodBtl):
    """Answers of several gets under way go to the one that was asked last."""

    clause = "get"

    def done(self, number, data):
        if data and len(data) > 8 and len(self.requests) > 1:
            other = max(self.requests)
            self.requests[number], self.requests[other] = self.requests[other], self.requests[number]
        super().done(number, data)


class GetsTooLate(GoodBtl):
    """The callback runs when the request is on its way."""

    clause = "get"

    def get(self, endpoint, descriptor):
        copy = Descriptor(self, 0)
        copy.local_address, copy.size = descriptor.local_address, descriptor.size
        copy.remote_address, copy.remote_handle = descriptor.remote_address, descriptor.remote_handle
        copy.in_flight = True
        taken = super().get(endpoint, copy)
        if taken == TAKEN:
            descriptor.complete()
        return taken


class WithdrawsInWordsAlone(GoodBtl):
    clause = "withdrawal"

    def is_withdrawn(self, address, size):
        return False


class WithdrawsFromReadersAlone(GoodBtl):
    clause = "withdrawal"

    def serve(self, kind, handle, address, *fields):
        if kind != PUT:
            return super().serve(kind, handle, address, *fields)
        withdrawn, self.withdrawn = self.withdrawn, []
        answer = super().serve(kind, handle, address, *fields)
        self.withdrawn = withdrawn
        return answer


class ReadsOnAfterWithdrawal(GoodBtl):
    """A get that had been asked for before is answered from what is there now."""

    clause = "withdrawal"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.delayed: deque[tuple[bytes, bytes]] = deque()
        self.looks = 0

    def take(self, packet, sender):
        if packet[0] != GET or self.is_withdrawn(*pickle.loads(packet[1:])[2:4]):
            super().take(packet, sender)
        else:
            self.delayed.append((packet, sender))

    def progress(self):
        events = super().progress()
        self.looks += 1
        if self.delayed and self.looks % 20 == 0:
            withdrawn, self.withdrawn = self.withdrawn, []
            super().take(*self.delayed.popleft())
            self.withdrawn = withdrawn
            return 1
        return events

    def may_sleep(self):
        return super().may_sleep() and not self.delayed


class ComparesUnsigned(GoodBtl):
    clause = "atomics"

    def compute(self, operation, old, operand, compare):
        mask = (1 << 64) - 1
        if operation == "min":
            return min(old & mask, operand & mask)
        return super().compute(operation, old, operand, compare)


class TakesEveryWordForEightBytes(GoodBtl):
    clause = "atomics"

    def serve(self, kind, handle, address, *fields):
        if kind == ATOMIC:
            fields = (*fields[:3], 8)
        return super().serve(kind, handle, address, *fields)


class GivesTheNewValue(GoodBtl):
    clause = "atomics"

    def old_value(self, before, after):
        return after


class PromisesAsynchrony(GoodBtl):
    clause = "asynchrony"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.flags |= contract.ASYNCHRONOUS


# -- renewal


class RenewsInVain(GoodBtl):
    clause = "renewal"
    renewed: set = set()

    def renew(self, endpoint) -> int:
        self.renewed = {*self.renewed, endpoint}
        return 0

    def send(self, endpoint, descriptor, tag):
        if endpoint in self.renewed:
            descriptor.complete()
            return TAKEN
        return super().send(endpoint, descriptor, tag)


class RefusesWhoRenews(GoodBtl):
    clause = "renewal"
    refused: set = set()

    def renew(self, endpoint) -> int:
        self.transmit(endpoint.proc.card[self.name], bytes([RENEWED]))
        return 0

    def take(self, packet, sender) -> None:
        if packet[0] == RENEWED:
            self.refused = {*self.refused, sender}
        elif sender not in self.refused:
            super().take(packet, sender)


class RepeatsWhenRenewed(GoodBtl):
    clause = "delivery"
    last: tuple[bytes, bytes] = b"", b""

    def transmit(self, address, packet) -> bool:
        self.last = address, packet
        return super().transmit(address, packet)

    def renew(self, endpoint) -> int:
        if self.last[1]:
            super().transmit(*self.last)
        return 0


# -- the end


class SaysGoodbyeInEveryProcess(GoodBtl):
    """At the interpreter's end it tells its peers that it is gone, and a forked child ends too."""

    clause = "fork"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.gone: set[bytes] = set()
        atexit.register(self.say_goodbye)

    def say_goodbye(self) -> None:
        for address in self.peers:
            self.transmit(address, bytes([MESSAGE, 0]))

    def arrived(self, sender, tag, data):
        if tag == 0:
            self.gone.add(sender)
        elif sender not in self.gone:
            super().arrived(sender, tag, data)

    def finalize(self) -> int:
        atexit.unregister(self.say_goodbye)
        return super().finalize()


class ChildEmptiesTheSharedEpoll(GoodBtl):
    """Callbacks run when a descriptor is readable that a child, which ends as Python does, takes out of the epoll of both."""

    clause = "fork"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.sent_some = os.eventfd(0, os.EFD_NONBLOCK)
        self.watched.register(self.sent_some, EPOLLIN)
        self.under_way: list[Descriptor] = []
        atexit.register(self.forget)

    def forget(self) -> None:
        self.watched.unregister(self.sent_some)

    def sent(self, descriptor: Descriptor) -> None:
        self.under_way.append(descriptor)
        os.eventfd_write(self.sent_some, 1)

    def progress(self) -> int:
        if self.sent_some in {number for number, _ in self.watched.poll(0)}:
            os.eventfd_read(self.sent_some)
            under_way, self.under_way = self.under_way, []
            for descriptor in under_way:
                descriptor.complete()
            return len(under_way)
        return super().progress()

    def finalize(self) -> int:
        atexit.unregister(self.forget)
        os.close(self.sent_some)
        return super().finalize()


class LearnsOfADeathByAConnection(GoodBtl):
    """A peer's end is the end of a connection to it, of which a child of the peer's has a copy."""

    clause = "fork"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK)
        self.listener.bind("")
        self.listener.listen(64)
        self.accepted: list[socket] = []

    def address(self) -> bytes:
        return super().address() + b"|" + bytes(self.listener.getsockname())

    def reach(self, proc):
        name, bar, listener = proc.card[self.name].partition(b"|")
        proc.card[self.name] = name
        if proc.is_self or not bar:
            return super().reach(proc)
        connection = socket(AF_UNIX, SOCK_STREAM)
        connection.connect(listener)
        peer = super().reach(proc)
        self.watched.unregister(peer.life)
        os.close(peer.life)
        peer.life = connection.detach()
        self.watched.register(peer.life, EPOLLIN)
        return peer

    def progress(self) -> int:
        with contextlib.suppress(BlockingIOError):
            self.accepted.append(self.listener.accept()[0])
        return super().progress()

    def finalize(self) -> int:
        for it in (self.listener, *self.accepted):
            it.close()
        return super().finalize()


class HoldsTheLastMessagesBack(GoodBtl):
    """What nothing follows leaves after a moment, from `progress`."""

    clause = "close"
    MOMENT = 0.1

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.held: deque[tuple[bytes, bytes]] = deque()
        self.since = 0.0

    def send(self, endpoint, descriptor, tag):
        if not self.flushed():
            return BACK_PRESSURE
        if endpoint.lost:
            return super().send(endpoint, descriptor, tag)
        self.held.append((endpoint.proc.card[self.name], self.pack(descriptor, tag)))
        self.since = time.monotonic()
        descriptor.complete()
        return TAKEN

    def flushed(self) -> bool:
        while self.held and self.transmit(*self.held[0]):
            self.held.popleft()
        return not self.held

    def put(self, endpoint, descriptor):
        return super().put(endpoint, descriptor) if self.flushed() else BACK_PRESSURE

    def progress(self) -> int:
        if self.held and time.monotonic() - self.since > self.MOMENT:
            self.flushed()
        return super().progress()

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.held


class LeavesAFifo(GoodBtl):
    clause = "close"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        os.mkfifo(tempfile.mktemp(prefix="planted"))


class LeavesAFileOfItsNumber(GoodBtl):
    clause = "close"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        path = f"/tmp/planted.{os.getpid()}"
        open(path, "w").close()
        atexit.register(lambda: os.path.exists(path) and os.unlink(path))


class LeavesItsSocket(GoodBtl):
    clause = "close"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.another = os.dup(self.socket.fileno())


class LeavesAThread(GoodBtl):
    clause = "close"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


class LeavesASegment(GoodBtl):
    clause = "close"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        import mmap

        self.path = f"/dev/shm/planted-{os.getpid()}"
        with open(self.path, "w+b") as stream:
            stream.truncate(4096)
            self.segment = mmap.mmap(stream.fileno(), 4096)
        atexit.register(lambda: os.path.exists(self.path) and os.unlink(self.path))

    def finalize(self) -> int:
        self.segment.close()
        return super().finalize()


class OpensOnce(GoodBtl):
    clause = "reopen"
    opened = False

    def __init__(self, rte) -> None:
        if OpensOnce.opened:
            raise OSError("it is open already")
        OpensOnce.opened = True
        super().__init__(rte)


class OverlooksADeath(GoodBtl):
    clause = "broken peer"

    def bury(self, dead: list[Peer]) -> int:
        for peer in dead:
            peer.lost = True
            self.watched.unregister(peer.life)
            os.close(peer.life)
        return len(dead)


class ReportsADeathTwice(GoodBtl):
    clause = "broken peer"

    def bury(self, dead: list[Peer]) -> int:
        for peer in dead:
            self.report_error(peer.proc, ConnectionError("it does not answer"))
        return super().bury(dead)


class RefusesForTheDead(GoodBtl):
    clause = "broken peer"

    def send(self, endpoint, descriptor, tag):
        return BACK_PRESSURE if endpoint.lost else super().send(endpoint, descriptor, tag)


class KeepsWhatGoesToTheDead(GoodBtl):
    clause = "broken peer"

    def send(self, endpoint, descriptor, tag):
        return TAKEN if endpoint.lost else super().send(endpoint, descriptor, tag)


class SaysThatTheDeadHaveReceived(GoodBtl):
    clause = "broken peer"

    def send(self, endpoint, descriptor, tag):
        if endpoint.lost:
            descriptor.complete()
            return TAKEN
        return super().send(endpoint, descriptor, tag)


class SaysThatTheDeadHaveBeenWrittenTo(GoodBtl):
    clause = "broken peer"

    def put(self, endpoint, descriptor):
        if endpoint.lost:
            descriptor.complete()
            return TAKEN
        return super().put(endpoint, descriptor)


class KeepsGetsOfTheDead(GoodBtl):
    clause = "broken peer"

    def get(self, endpoint, descriptor):
        return TAKEN if endpoint.lost else super().get(endpoint, descriptor)


class RaisesOfTheDead(GoodBtl):
    clause = "broken peer"

    def send(self, endpoint, descriptor, tag):
        if endpoint.lost:
            raise ConnectionRefusedError("nobody is there")
        return super().send(endpoint, descriptor, tag)


class CallsBackTwiceOfTheDead(GoodBtl):
    """What found no room waits here; a peer's end completes it, and the callback runs again when it is thrown away."""

    clause = "completion"

    def __init__(self, rte) -> None:
        super().__init__(rte)
        self.later: deque[tuple[Peer, Descriptor, int]] = deque()

    def send(self, endpoint, descriptor, tag):
        if any(peer is endpoint for peer, _, _ in self.later):
            return BACK_PRESSURE
        return super().send(endpoint, descriptor, tag)

    def refuse(self, endpoint, descriptor, tag):
        self.later.append((endpoint, descriptor, tag))
        return TAKEN

    def progress(self) -> int:
        for _ in range(len(self.later)):
            peer, descriptor, tag = self.later.popleft()
            callback = descriptor.context
            try:
                self.socket.sendto(self.pack(descriptor, tag), peer.proc.card[self.name])
                descriptor.complete()
            except BlockingIOError:
                self.later.append((peer, descriptor, tag))
            except ConnectionError:
                descriptor.complete(ERR_PROC_FAILED)
                callback(descriptor, ERR_PROC_FAILED)
        return super().progress()

    def may_sleep(self) -> bool:
        return super().may_sleep() and not self.later


class AccusesTheLiving(GoodBtl):
    clause = "broken peer"

    def bury(self, dead: list[Peer]) -> int:
        for peer in self.peers.values():
            if peer not in dead:
                self.report_error(peer.proc, ConnectionError("it must be gone as well"))
        return super().bury(dead)


class Prints(GoodBtl):
    clause = "quiet"

    def reach(self, proc):
        print("planted: reaching", proc)
        return super().reach(proc)


class Exits(GoodBtl):
    clause = "quiet"

    def bury(self, dead: list[Peer]) -> int:
        os._exit(1)


class WritesBehindAMessage(GoodBtl):
    """A zero behind each text, as C has it, and no room for that."""

    clause = "quiet"

    def send(self, endpoint, descriptor, tag):
        copy = ctypes.create_string_buffer(descriptor.length)
        ctypes.memset(ctypes.addressof(copy) + descriptor.length, 0, 1)
        return super().send(endpoint, descriptor, tag)


class WritesBehindMemoryOfTheLibrary(GoodBtl):
    """The same in memory that the C library gives."""

    clause = "quiet"

    def send(self, endpoint, descriptor, tag):
        library = ctypes.CDLL(None)
        library.malloc.restype = ctypes.c_void_p
        address = library.malloc(ctypes.c_size_t(descriptor.length))
        ctypes.memset(address + descriptor.length, 0, 1)
        library.free(ctypes.c_void_p(address))
        return super().send(endpoint, descriptor, tag)


FAULTS = {name: fault for name, fault in list(globals().items()) if isinstance(fault, type) and "clause" in vars(fault)}
# These need a third rank.
RANKS = {"AccusesTheLiving": 3, "StarvesThePeersBehindTheFirst": 3}
