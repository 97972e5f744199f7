"""Ways to get a matching transport wrong, over the one that `ompy new mtl` writes; each class has one."""

from __future__ import annotations

from types import SimpleNamespace

from ompy_mtl_planted import module as good
from ompy_mtl_planted.matching import ANY, Queues

from ompy.mca.component import Context, Offer

PIECE = 32768


def offer(context: Context, fault: str) -> Offer:
    made = globals()[fault] if fault else good.PlantedMtl
    return Offer(modules=[made(context.rte, PIECE)])


class Mtl(good.PlantedMtl):
    """The good one, with places where a fault fits in."""

    queues_class = Queues
    turn = 0

    def __init__(self, rte, datagram_size) -> None:
        super().__init__(rte, datagram_size)
        self.queues = self.queues_class()


class NewestMessageFirst(Mtl):
    class queues_class(Queues):
        def find(self, context, source, tag):
            return next((it for it in reversed(self.unexpected) if it.fits(context, source, tag)), None)


class NewestReceiveFirst(Mtl):
    class queues_class(Queues):
        def receiver(self, arrival):
            self.posted.reverse()
            found = super().receiver(arrival)
            self.posted.reverse()
            return found


class ExactReceivesBeforeWildcards(Mtl):
    class queues_class(Queues):
        def receiver(self, arrival):
            self.posted.sort(key=lambda it: it.tag == ANY or it.peer == ANY)
            return super().receiver(arrival)


class WildcardsTakeTheLibrarys(Mtl):
    class queues_class(Queues):
        def find(self, context, source, tag):
            fits = ((source, tag) if tag != ANY else (source, it.tag) for it in self.unexpected)
            return next((it for it, wish in zip(self.unexpected, fits, strict=True) if it.fits(context, *wish)), None)


class ContextsMix(Mtl):
    class queues_class(Queues):
        def find(self, context, source, tag):
            return next((it for it in self.unexpected if it.fits(it.context, source, tag)), None)


class MessageLost(Mtl):
    def push(self) -> int:
        self.turn += 1
        if self.turn % 90 == 0 and len(self.outgoing) == 1 and self.outgoing[0][1][0] == good.DATA:
            _, _, done = self.outgoing.popleft()
            if done is not None:
                done.succeed()
        return super().push()


class LastByteOfADatagram(Mtl):
    def hand_over(self, request, arrival) -> None:
        if len(arrival.data) % 500 == 0 and arrival.data:
            arrival.data[-1] ^= 255
        super().hand_over(request, arrival)


class SynchronousIsNot(Mtl):
    def isend(self, request) -> int:
        done = super().isend(request)
        for number, waiting in list(self.unmatched.items()):
            if waiting is request:
                self.unmatched[number] = SimpleNamespace(succeed=lambda: None)
                request.succeed()
        return done


class ReadLate(Mtl):
    """Complete at once, read when there is time."""

    def isend(self, request) -> int:
        late = request.length > 400 and request.mode != good.SYNCHRONOUS
        before = len(self.outgoing)
        if late:
            view = request.view
            self.push = lambda: 0
        super().isend(request)
        if late:
            del self.push
            rank, datagram, _ = self.outgoing[before]
            while len(self.outgoing) > before:
                self.outgoing.pop()
            self.late = [*getattr(self, "late", []), (rank, datagram[: good.HEADER.size], view)]
            request.succeed()
        return 0

    def progress(self) -> int:
        late, self.late = getattr(self, "late", []), []
        for rank, header, view in late:
            data = bytes(view)
            for start in range(0, len(data), self.piece):
                self.outgoing.append((rank, header + data[start : start + self.piece], None))
        return super().progress()


class WithdrawRefuses(Mtl):
    def withdraw(self, request) -> bool:
        return False


class SeenTellsMore(Mtl):
    def seen(self, source, tag, comm):
        found = super().seen(source, tag, comm)
        return found and (found[0], found[1], found[2] + (found[2] > 400))


class ProbeLeavesTheMessage(Mtl):
    def improbe(self, source, tag, comm):
        message = super().improbe(source, tag, comm)
        if message is not None:
            self.queues.unexpected.append(message.arrival)
        return message


class CutsWithoutAWord(Mtl):
    def hand_over(self, request, arrival) -> None:
        if 0 < request.capacity < len(arrival.data):
            del arrival.data[request.capacity :]
        super().hand_over(request, arrival)


class StatusOfTheWish(Mtl):
    def hand_over(self, request, arrival) -> None:
        if request.tag == ANY:
            arrival.tag = 0
        super().hand_over(request, arrival)


class FreeEndsWhatIsPosted(Mtl):
    def del_comm(self, comm) -> int:
        self.queues.posted = []
        return super().del_comm(comm)


class LossEndsNothing(Mtl):
    def peer_lost(self, proc) -> int:
        return 0


class LossLeavesSynchronousSends(Mtl):
    def peer_lost(self, proc) -> int:
        unmatched, self.unmatched = self.unmatched, {}
        super().peer_lost(proc)
        self.unmatched = unmatched
        return 0


class LossEndsAllReceives(Mtl):
    def peer_lost(self, proc) -> int:
        for request in self.queues.posted:
            request.fail(proc.failure)
        self.queues.posted = []
        return super().peer_lost(proc)


class LossIsASuccess(Mtl):
    def peer_lost(self, proc) -> int:
        for request in self.unmatched.values():
            request.succeed()
        self.unmatched = {}
        return super().peer_lost(proc)


class LaterReceivesWait(Mtl):
    def irecv(self, request) -> int:
        if self.queues.find(request.communicator.context, request.peer, request.tag) is None:
            self.queues.posted.append(request)
            return 0
        return super().irecv(request)


class CreditComesBackWithMessages(Mtl):
    """So many messages may be under way to a peer; what comes from there says what has arrived, and nothing else does."""

    CREDIT = 4000

    def __init__(self, rte, datagram_size) -> None:
        super().__init__(rte, datagram_size)
        self.credit = {}

    def isend(self, request) -> int:
        rank = request.communicator.remote_group.member(request.peer).rank
        left = self.credit[rank] = self.credit.get(rank, self.CREDIT) - 1
        if left >= 0:
            super().isend(request)
        return 0

    def hand_over(self, request, arrival) -> None:
        peer = request.communicator.remote_group.member(arrival.source).rank
        self.credit.pop(peer, None)
        super().hand_over(request, arrival)
