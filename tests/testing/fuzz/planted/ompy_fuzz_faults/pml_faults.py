"""Ways to get matching, requests and messages wrong; each class has one."""

from __future__ import annotations

import time

from ompy_pml_planted import module as good
from ompy_pml_planted.matching import Queues, fits
from ompy_pml_planted.request import ANY, Memory, Receive, Send

from ompy.mca.component import Context, Offer


def offer(context: Context, fault: str) -> Offer:
    made = globals()[fault] if fault else good.PlantedPml
    return Offer(modules=[made(context.chosen("bml")[0])])


class Pml(good.PlantedPml):
    """The good one, with places where a fault fits in."""

    queues_class = Queues
    receive_class = Receive
    send_class = Send

    def __init__(self, bml) -> None:
        super().__init__(bml)
        self.queues = self.queues_class()

    def receive(self, memory, allocate, source, tag, comm):
        return self.receive_class(memory, allocate, source, tag, comm, self.post, self.withdraw)

    def isend_init(self, address, count, typemap, dest, tag, mode, comm):
        request = self.send_class(Memory(address, count, typemap), dest, tag, mode, comm, self.dispatch)
        request.persist()
        return request

    def isend(self, address, count, typemap, dest, tag, mode, comm):
        request = self.send_class(Memory(address, count, typemap), dest, tag, mode, comm, self.dispatch)
        request.start()
        return request


# -- order and matching


class NewestMessageFirst(Pml):
    class queues_class(Queues):
        def find(self, comm, source, tag):
            return next((it for it in reversed(self.unexpected) if fits(it, comm.context, source, tag)), None)


class WildcardTakesTheNewest(Pml):
    class queues_class(Queues):
        def find(self, comm, source, tag):
            waiting = reversed(self.unexpected) if ANY in (source, tag) else self.unexpected
            return next((it for it in waiting if fits(it, comm.context, source, tag)), None)


class NewestReceiveFirst(Pml):
    class queues_class(Queues):
        def receiver(self, arrival):
            for request in reversed(self.posted):
                if fits(arrival, request.comm.context, request.wanted_source, request.wanted_tag):
                    self.posted.remove(request)
                    return request
            return None


class ExactReceivesBeforeWildcards(Pml):
    class queues_class(Queues):
        def receiver(self, arrival):
            self.posted.sort(key=lambda it: it.wanted_tag == ANY or it.wanted_source == ANY)
            return super().receiver(arrival)


class TagsModuloFour(Pml):
    class queues_class(Queues):
        def receiver(self, arrival):
            for request in self.posted:
                tag = request.wanted_tag
                if tag > 90 and arrival.tag > 90 and tag % 4 == arrival.tag % 4:
                    tag = arrival.tag
                if fits(arrival, request.comm.context, request.wanted_source, tag):
                    self.posted.remove(request)
                    return request
            return None


class SequenceNotChecked(Pml):
    """What was held back and what comes later change places."""

    turn = 0

    def dispatch(self, request) -> None:
        super().dispatch(request)
        self.turn += 1

    def push(self) -> int:
        if self.turn % 7 == 0 and len(self.outgoing) > 1:
            first, second = self.outgoing[-2], self.outgoing[-1]
            if first[0] is second[0] and first[2] is not None and second[2] is not None and first[2] is not second[2]:
                self.outgoing[-2], self.outgoing[-1] = second, first
        return super().push()


class QueueIsAStackWhenLong(Pml):
    """Beyond so many unexpected messages the newest is taken: as a sequence number that comes round."""

    class queues_class(Queues):
        def find(self, comm, source, tag):
            waiting = reversed(self.unexpected) if len(self.unexpected) > 24 else self.unexpected
            return next((it for it in waiting if fits(it, comm.context, source, tag)), None)


class ContextsOfDuplicatesMix(Pml):
    class queues_class(Queues):
        def find(self, comm, source, tag):
            found = super().find(comm, source, tag)
            if found is None and source >= 0 and tag >= 0:
                near = (it for it in self.unexpected if 0 < abs(it.context - comm.context) < 8)
                found = next((it for it in near if it.source == source and it.tag == tag), None)
            return found


# -- messages and their contents


class MessageTwice(Pml):
    turn = 0

    def hand_over(self, request, arrival) -> None:
        self.turn += 1
        if self.turn % 40 == 0 and arrival.tag >= 0 and not arrival.number:
            self.queues.unexpected.append(arrival)
        super().hand_over(request, arrival)


class MessageLost(Pml):
    turn = 0

    def arrived(self, data) -> None:
        kind, _, tag, *_, length = good.HEADER.unpack_from(data)
        self.turn += kind == good.DATA and tag >= 0
        if self.turn % 150 == 149 and length < 1000 and kind == good.DATA and tag >= 0:
            self.turn += 1
            return
        super().arrived(data)


class LastByteOfAFullPiece(Pml):
    def arrived(self, data) -> None:
        if len(data) == self.largest():
            data = memoryview(bytes(data[:-1]) + b"\0")
        super().arrived(data)

    def largest(self) -> int:
        return 4096


class TypesEndAtABlock(Pml):
    """Of a message in gapped memory the last bytes stay behind."""

    class receive_class(Receive):
        def take(self, arrival) -> None:
            typed = self.memory is not None and 64 < len(arrival.data) < self.memory.nbytes
            if typed:
                tail = bytes(arrival.data[-4:])
                arrival.data[-4:] = b"\0\0\0\0"
                del tail
            super().take(arrival)


class SendReadLate(Pml):
    """Complete at once, read later."""

    def dispatch(self, request) -> None:
        if request.tag < 0 or request.mode == good.SYNCHRONOUS or request.nbytes < 512:
            super().dispatch(request)
            return
        self.late = [*getattr(self, "late", []), (request.memory, request)]
        request.succeed()

    def push(self) -> int:
        late, self.late = getattr(self, "late", []), []
        for memory, request in late:
            route, data = self.route(request.comm, request.peer), memory.read()
            header = good.HEADER.pack(good.DATA, request.comm.rank, request.tag, 0, request.comm.context, 0, len(data))
            size = route.btl.max_send_size - len(header)
            for start in range(0, len(data), size) or range(1):
                self.outgoing.append((route, header + data[start : start + size], None))
        return super().push()


class ReceiveCompleteEarly(Pml):
    """The last bytes are written after the request is complete."""

    class receive_class(Receive):
        def take(self, arrival) -> None:
            if self.memory is None or len(arrival.data) < 600 or arrival.tag < 0:
                super().take(arrival)
                return
            whole, memory = bytes(arrival.data), self.memory
            arrival.data[-100:] = bytes(100)
            super().take(arrival)
            self.rest = lambda: memory.write(memoryview(whole)[: memory.nbytes])


# -- statuses and probes


class CountOffByOne(Pml):
    class receive_class(Receive):
        def settle(self, source=-1, tag=-1, nbytes=0, **more) -> None:
            super().settle(source, tag, nbytes - (nbytes > 1000), **more)


class StatusOfTheWish(Pml):
    """A receive of any tag says that the tag was 0."""

    class receive_class(Receive):
        def settle(self, source=-1, tag=-1, nbytes=0, **more) -> None:
            super().settle(source, 0 if self.wanted_tag == ANY else tag, nbytes, **more)


class ProbeTellsTheRoom(Pml):
    def seen(self, source, tag, comm):
        found = super().seen(source, tag, comm)
        return found and (found[0], found[1], found[2] + (found[2] > 4000))


class ProbeSeesOtherTags(Pml):
    def seen(self, source, tag, comm):
        return super().seen(source, tag, comm) or (super().seen(source, ANY, comm) if tag >= 0 else None)


class MatchedProbeLeavesTheMessage(Pml):
    turn = 0

    def improbe(self, source, tag, comm):
        message = super().improbe(source, tag, comm)
        if message is not None:
            self.turn += 1
            if self.turn % 4 == 0:
                self.queues.unexpected.append(message.arrival)
        return message


# -- the life of requests


class SynchronousIsNot(Pml):
    def isend(self, address, count, typemap, dest, tag, mode, comm):
        return super().isend(address, count, typemap, dest, tag, 0 if mode == good.SYNCHRONOUS else mode, comm)


class PersistentSendsItsFirstData(Pml):
    class send_class(Send):
        first = None

        def start(self) -> int:
            if self.tag >= 0 and self.first is None:
                data = self.memory.read()
                self.first = data
                self.memory.read = lambda: data
            return super().start()


class RequestResetLate(Pml):
    """A persistent receive that is started again is complete with the message before."""

    class receive_class(Receive):
        starts = 0

        def start(self) -> int:
            self.starts += 1
            if self.starts == 3:
                self.activate()
                self.settle(self.wanted_source, self.wanted_tag, self.nbytes)
                return 0
            return super().start()


class CancelAfterTheMatch(Pml):
    """A receive that is cancelled takes its message with it."""

    class receive_class(Receive):
        def cancel(self) -> int:
            self.withdraw(self)
            if not self.complete:
                self.settle(cancelled=True)
            return 0

    def withdraw(self, request) -> bool:
        return True


class CancelLeavesTheReceive(Pml):
    class receive_class(Receive):
        def cancel(self) -> int:
            if self.withdraw(self):
                self.settle(cancelled=True)
            return 0

        def take(self, arrival) -> None:
            if not getattr(self, "gone", False):
                super().take(arrival)

    def withdraw(self, request) -> bool:
        waits = request in self.queues.posted
        request.gone = waits
        return waits


class FreeEndsWhatIsPosted(Pml):
    """On other communicators: on its own there is nothing any more when the PML hears of it."""

    def del_comm(self, comm) -> int:
        self.queues.posted = []
        return super().del_comm(comm)


class TruncationWritesOn(Pml):
    """A message too long for its receive ends the next one too."""

    class receive_class(Receive):
        def take(self, arrival) -> None:
            if self.memory is not None and len(arrival.data) > self.memory.nbytes:
                del arrival.data[self.memory.nbytes :]
            super().take(arrival)


# -- threads


class OnePackingBuffer(Pml):
    """Threads share a buffer, and let one another go on between filling and sending it."""

    scratch = b""

    def isend(self, address, count, typemap, dest, tag, mode, comm):
        request = Send(Memory(address, count, typemap), dest, tag, mode, comm, self.dispatch)
        if tag >= 0 and request.memory.nbytes:
            type(self).scratch = request.memory.read()
            time.sleep(0)
            ours = type(self).scratch
            if len(ours) == request.memory.nbytes:
                request.memory.read = lambda: ours
        request.start()
        return request
