"""Random messages between four ranks arrive intact and in MPI's order, whatever their sizes, tags and receives.

All ranks draw the same plan from the seed.  Each receiver posts receives at random, with wildcards, some of them before
the messages are sent and some after, and holds what it gets against a plain model of MPI's matching: of the messages of
one sender that a receive could take, it takes the first.
"""

from __future__ import annotations

import os
import random

import numpy
import pytest

MESSAGES = int(os.environ.get("OMPY_TEST_RANDOM_MESSAGES", "10000"))
BATCH = 100
TAGS = 5
LARGEST = 4 << 20


def random_size(rng):
    """0 to 4 MiB, small ones far more often."""
    kind = rng.random()
    if kind < 0.7:
        return rng.randrange(0, 300)
    if kind < 0.93:
        return rng.randrange(300, 40_000)
    if kind < 0.995:
        return rng.randrange(40_000, 400_000)
    return rng.randrange(400_000, LARGEST + 1)


def content(source, number, size):
    start = (source * 31 + number * 17) % 251
    return (numpy.arange(start, start + size) % 251).astype("B")


def exchange(comm, seed, messages=MESSAGES):
    rng = random.Random(seed)
    number = 0
    for _ in range(-(-messages // BATCH)):
        plan = []
        for _ in range(BATCH):
            source, dest = rng.sample(range(comm.size), 2)
            plan.append((source, dest, rng.randrange(TAGS), random_size(rng), number))
            number += 1
        run_batch(comm, plan, random.Random(rng.random() + comm.rank))


def run_batch(comm, plan, rng):
    from ompy import MPI

    sends = [entry for entry in plan if entry[0] == comm.rank]
    expected = {source: [entry for entry in plan if entry[:2] == (source, comm.rank)] for source in range(comm.size)}
    room = max((entry[3] for entries in expected.values() for entry in entries), default=0)
    receives = make_receives(expected, rng, MPI)
    early = rng.randrange(len(receives) + 1)
    posted = [post(comm, receive, room) for receive in receives[:early]]
    requests = []
    for _, dest, tag, size, message in sends:
        data = content(comm.rank, message, size)
        send = rng.choice((comm.Isend, comm.Isend, comm.Issend))
        requests.append(send(data, dest, tag))
    posted += [post(comm, receive, room) for receive in receives[early:]]
    for (source, tag), request, buffer in posted:
        status = MPI.Status()
        request.Wait(status)
        assert source in (MPI.ANY_SOURCE, status.source)
        assert tag in (MPI.ANY_TAG, status.tag)
        # Receives are looked at in the order of their posting, so that the first message that fits is the right one.
        waiting = expected[status.source]
        match = next(entry for entry in waiting if tag in (MPI.ANY_TAG, entry[2]))
        waiting.remove(match)
        _, _, sent_tag, size, message = match
        assert (status.tag, status.count) == (sent_tag, size)
        assert (buffer[:size] == content(status.source, message, size)).all()
    MPI.Request.Waitall(requests)
    assert not any(expected.values())
    # A message of the next batch must not meet a wildcard of this one.
    comm.Barrier()


def make_receives(expected, rng, MPI):
    """Pairs (source, tag) that take all messages and no more, in whatever order these arrive.

    A batch is received by exact envelopes, by sources, by tags, or by nothing at all: only within one of these kinds can
    no receive take the message that another one was meant for.
    """
    messages = [entry for entries in expected.values() for entry in entries]
    rng.shuffle(messages)
    any_source, any_tag = rng.choice(((False, False), (False, True), (True, False), (True, True)))
    return [(MPI.ANY_SOURCE if any_source else source, MPI.ANY_TAG if any_tag else tag) for source, _, tag, _, _ in messages]


def post(comm, receive, room):
    buffer = numpy.empty(room, "B")
    return receive, comm.Irecv(buffer, *receive), buffer


@pytest.mark.ompy(4, mca={"btl": "self,sm"}, timeout=400)
def test_random_messages_through_shared_memory(comm, seed):
    exchange(comm, seed)


@pytest.mark.ompy(4, mca={"btl": "self,zmq"}, timeout=400)
def test_random_messages_over_tcp(comm, seed):
    exchange(comm, seed)


@pytest.mark.ompy(4, mca={"pml": "cm", "mtl": "portals", "mtl_portals_heap": "262144"}, timeout=400)
def test_random_messages_matched_by_the_kernel_of_portals_with_little_memory(comm, seed):
    exchange(comm, seed, MESSAGES // 3)


@pytest.mark.ompy(4, mca={"btl": "portals,self", "pml_ob1_use_get": "0"}, timeout=400)
def test_random_messages_put_through_portals(comm, seed):
    exchange(comm, seed, MESSAGES // 3)
