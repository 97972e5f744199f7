"""Many ranks in one process: a PML whose messages lie in memory until a seeded hand delivers them, in any order.

A message from one rank to another overtakes none of the same pair and tag, as MPI demands; everything else is shuffled,
so an algorithm that leans on a lucky order fails under some seed.
"""

from __future__ import annotations

from collections import deque

from ompy.core.communicator import Communicator
from ompy.core.group import make_group, set_this_process
from ompy.core.memory import address_of
from ompy.core.progress import progress_once
from ompy.core.request import Request
from ompy.core.schedule import Schedule
from ompy.core.typemap import predefined
from ompy.mca import pml

BYTE = predefined(1)


def intra(size):
    """One communicator as each of its ranks sees it."""
    ranks = []
    for rank in range(size):
        set_this_process(rank)
        ranks.append(Communicator(1, make_group(range(size)), name=f"of {size}"))
    set_this_process(0)
    return ranks


def inter(size, remote_size):
    """An inter-communicator, first as each rank of one group sees it, then as each of the other."""
    ranks = []
    groups = (range(size), range(size, size + remote_size))
    for process in range(size + remote_size):
        set_this_process(process)
        here, there = groups if process < size else groups[::-1]
        ranks.append(Communicator(2, make_group(list(here)), make_group(list(there)), name=f"{size}+{remote_size}"))
    set_this_process(0)
    return ranks


class Envelope:
    def __init__(self, request, address, count, typemap):
        self.request = request
        self.address = address
        self.count = count
        self.typemap = typemap
        self.nbytes = count * typemap.size


class InMemoryPml(pml.Pml):
    """Messages wait until `deliver` moves one.  `eager`: a send is complete before that, its data set aside."""

    def __init__(self, random, eager):
        self.random = random
        self.eager = eager
        self.sent = {}
        self.wanted = {}
        self.copier = intra(1)[0]
        self.messages = 0

    @staticmethod
    def process(group, rank):
        return group.indices()[rank]

    def isend(self, address, count, typemap, dest, tag, mode, comm):
        request = Request()
        request.peer = dest
        envelope = Envelope(request, address, count, typemap)
        if self.eager and self.random.random() < 0.7:
            kept = bytearray(envelope.nbytes)
            target = address_of(kept) if kept else 0
            self.copy(address, count, typemap, target, envelope.nbytes, BYTE)
            envelope.address, envelope.count, envelope.typemap, envelope.kept = target, envelope.nbytes, BYTE, kept
            request.succeed()
        key = (comm.context, tag, self.process(comm.group, comm.rank), self.process(comm.remote_group, dest))
        self.sent.setdefault(key, deque()).append(envelope)
        self.messages += 1
        return request

    def irecv(self, address, count, typemap, source, tag, comm):
        request = Request()
        request.peer = source
        key = (comm.context, tag, self.process(comm.remote_group, source), self.process(comm.group, comm.rank))
        self.wanted.setdefault(key, deque()).append(Envelope(request, address, count, typemap))
        return request

    def copy(self, source, source_count, source_type, target, target_count, target_type):
        if source_count * source_type.size:
            move = Schedule(self.copier)
            move.copy(source, source_count, source_type, target, target_count, target_type)
            move.run()

    def deliver(self):
        """Move one message that is sent and wanted; False when there is none."""
        ready = [key for key in self.sent if self.sent[key] and self.wanted.get(key)]
        if not ready:
            return False
        key = self.random.choice(ready)
        message, wanted = self.sent[key].popleft(), self.wanted[key].popleft()
        assert message.nbytes == wanted.nbytes, f"{message.nbytes} bytes sent, {wanted.nbytes} expected: {key}"
        self.copy(message.address, message.count, message.typemap, wanted.address, wanted.count, wanted.typemap)
        if not message.request.complete:
            message.request.succeed()
        wanted.request.succeed(nbytes=message.nbytes)
        return True

    def left_over(self):
        return {key for queues in (self.sent, self.wanted) for key in queues if queues[key]}


def finish(messages, requests):
    """Deliver and advance until every request is complete; raises the first error, and says who waits when nothing moves."""
    while True:
        moved = messages.deliver()
        advanced = progress_once()
        errors = [request.error for request in requests if request.error is not None]
        if errors:
            raise errors[0]
        if not moved and not advanced:
            break
    waiting = {rank: request.peer for rank, request in enumerate(requests) if not request.complete}
    assert not waiting, f"nothing moves, and these ranks wait (rank: for rank): {waiting}"
    assert not messages.left_over(), f"never received or never sent: {messages.left_over()}"
