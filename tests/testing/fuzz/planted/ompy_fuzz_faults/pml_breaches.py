"""Ways to get the loss of a process and threads wrong, which random programs don't meet; each class has one."""

from __future__ import annotations

from ompy_pml_planted.request import Receive, Send

from ompy.core.errors import MPIError
from ompy.mca.component import Context, Offer
from ompy_fuzz_faults.pml_faults import Pml


def offer(context: Context, fault: str) -> Offer:
    return Offer(modules=[globals()[fault](context.chosen("bml")[0])])


class ReceivesWaitForTheLost(Pml):
    def peer_lost(self, proc, error):
        posted, self.queues.posted = self.queues.posted, []
        super().peer_lost(proc, error)
        self.queues.posted = posted
        return 0


class SynchronousSendsWaitForTheLost(Pml):
    def peer_lost(self, proc, error):
        unmatched, self.unmatched = self.unmatched, {}
        super().peer_lost(proc, error)
        self.unmatched = unmatched
        return 0


class LossEndsEveryReceive(Pml):
    def peer_lost(self, proc, error):
        super().peer_lost(proc, error)
        for request in self.queues.posted:
            request.fail(proc.failure)
        self.queues.posted.clear()
        return 0


class LossIsForgotten(Pml):
    """By what is posted later."""

    def post(self, request):
        arrival = self.queues.take(request.comm, request.wanted_source, request.wanted_tag)
        if arrival is None:
            self.queues.posted.append(request)
        else:
            self.hand_over(request, arrival)


class ProbesWaitForTheLost(Pml):
    def seen(self, source, tag, comm):
        try:
            return super().seen(source, tag, comm)
        except MPIError:
            return None


class LossIsSuccess(Pml):
    def peer_lost(self, proc, error):
        for request in list(self.unmatched.values()):
            if request.comm.remote_group.member(request.peer) is proc:
                request.succeed()
        self.unmatched.clear()
        return super().peer_lost(proc, error)


class LossOfAnotherName(Pml):
    def peer_lost(self, proc, error):
        return super().peer_lost(proc, "something is wrong")


class SecondLossRaises(Pml):
    def peer_lost(self, proc, error):
        if proc.failure is not None:
            raise RuntimeError("it is lost already")
        return super().peer_lost(proc, error)


class EntersNothing(Pml):
    """What it does for a program's thread, another one meets half done."""

    class send_class(Send):
        def start(self):
            self.activate()
            self.begin_with(self)
            return 0

    class receive_class(Receive):
        def start(self):
            self.activate()
            self.begin_with(self)
            return 0
