"""Schedules by themselves: one process, local steps, and messages to itself through a PML that lies in memory."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from ompy.core.errors import ERR_TRUNCATE, MPIError
from ompy.core.operation import predefined as operation
from ompy.core.progress import counters, progress_once
from ompy.core.schedule import Schedule
from ompy.core.typemap import predefined
from ompy.mca import pml

sys.path.insert(0, str(Path(__file__).parent.parent / "coll"))
from in_memory import InMemoryPml, intra

INT = predefined(9)


@pytest.fixture
def messages(rng):
    before = pml.chosen()
    layer = InMemoryPml(rng, eager=False)
    pml.choose(layer)
    yield layer
    pml.choose(before)


@pytest.fixture
def pair():
    return intra(2)


def test_scratch_memory_that_no_address_reaches_is_refused() -> None:
    schedule = Schedule(intra(1)[0])
    for extent in (1 << 61, -(1 << 61), (1 << 62) - 1):
        with pytest.raises(MemoryError, match="8 elements"):
            schedule.scratch(8, INT.create_resized(0, extent))


def test_local_steps_run_in_the_order_written():
    schedule = Schedule(intra(1)[0])
    numbers = numpy.array([1, 10, 100], dtype=numpy.int32)
    first, second, third = (numbers.ctypes.data + 4 * index for index in range(3))
    schedule.reduce(first, second, 1, INT, operation("SUM"))
    schedule.copy(second, 1, INT, third, 1, INT)
    schedule.next_round()
    schedule.reduce(third, first, 1, INT, operation("SUM"))
    schedule.run()
    assert numbers.tolist() == [12, 11, 11]


def test_a_copy_that_does_not_fit_fails_when_all_else_is_done():
    numbers = numpy.array([1, 2, 3, 0, 0, 0, 0, 0], "i")
    address = numbers.ctypes.data
    schedule = Schedule(intra(1)[0])
    schedule.copy(address, 3, INT, address + 12, 2, INT)
    schedule.copy(address, 2, INT, address + 24, 2, INT)
    for _ in range(2):
        with pytest.raises(MPIError) as caught:
            schedule.run()
        assert caught.value.code == ERR_TRUNCATE
        assert "12 bytes" in str(caught.value)
        assert numbers.tolist() == [1, 2, 3, 1, 2, 0, 1, 2]


def test_scratch_is_aligned_and_apart():
    schedule = Schedule(intra(1)[0])
    spans = []
    for count in (1, 3, 100, 5000, 1, 40):
        address = schedule.scratch(count, INT)
        assert address % 16 == 0
        spans.append((address, address + 4 * count))
    spans.sort()
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_scratch_has_room_for_data_before_its_address():
    backwards = INT.create_vector(3, 1, -2)
    schedule = Schedule(intra(1)[0])
    kept = numpy.arange(10, dtype=numpy.int32)
    back = numpy.zeros(10, dtype=numpy.int32)
    address = schedule.scratch(1, backwards)
    schedule.copy(kept.ctypes.data + 16, 1, backwards, address, 1, backwards)
    schedule.copy(address, 1, backwards, back.ctypes.data + 16, 1, backwards)
    schedule.run()
    assert back.tolist() == [0, 0, 2, 0, 4, 0, 0, 0, 0, 0]


FAR_APART = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent.parent / "coll")!r})
from in_memory import intra
from ompy.core.schedule import Schedule
from ompy.core.typemap import predefined

def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * 4096

before = resident()
schedule = Schedule(intra(1)[0])
schedule.scratch(2, predefined(1).create_resized(0, 1 << 28))
print(resident() - before)
"""


def test_scratch_for_blocks_far_apart_is_not_touched():
    """Python's debugging allocator fills what it gives, which for extents of gigabytes takes the machine's memory."""
    environment = os.environ | {"PYTHONMALLOC": "debug"}
    words = [sys.executable, "-c", FAR_APART]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 1 << 26


def test_a_round_waits_for_the_messages_of_the_one_before(messages, pair):
    sent = numpy.arange(4, dtype=numpy.int32)
    got = numpy.zeros(4, dtype=numpy.int32)
    total = numpy.zeros(4, dtype=numpy.int32)
    receiver, sender = Schedule(pair[0]), Schedule(pair[1])
    receiver.recv(got.ctypes.data, 4, INT, 1)
    receiver.next_round()
    receiver.copy(got.ctypes.data, 4, INT, total.ctypes.data, 4, INT)
    sender.send(sent.ctypes.data, 4, INT, 0)
    receiver.start()
    sender.start()
    progress_once()
    assert not receiver.complete
    assert total.tolist() == [0, 0, 0, 0]
    messages.deliver()
    progress_once()
    assert receiver.complete
    assert sender.complete
    assert total.tolist() == [0, 1, 2, 3]


def test_the_engine_is_polled_only_while_a_schedule_is_under_way(messages, pair):
    before = counters()["sources"]
    waiting = Schedule(pair[0])
    waiting.recv(0, 0, INT, 1)
    waiting.start()
    assert counters()["sources"] == before + 1
    other = Schedule(pair[1])
    other.send(0, 0, INT, 0)
    other.start()
    messages.deliver()
    progress_once()
    assert waiting.complete
    assert counters()["sources"] == before


def test_starting_again_too_early_is_an_error(messages, pair):
    schedule = Schedule(pair[0], 0, True)
    schedule.recv(0, 0, INT, 1)
    schedule.start()
    with pytest.raises(MPIError, match="before it was complete"):
        schedule.start()
    other = Schedule(pair[1], 0, True)
    other.send(0, 0, INT, 0)
    other.start()
    messages.deliver()
    progress_once()
    assert schedule.complete


def test_an_error_of_a_local_step_is_the_requests_and_reaches_whoever_waits(messages, pair):
    numbers = numpy.zeros(2, dtype=numpy.int32)
    schedule = Schedule(pair[0])
    schedule.recv(0, 0, INT, 1)
    schedule.next_round()
    schedule.reduce(numbers.ctypes.data, numbers.ctypes.data, 1, predefined(17), operation("BAND"))
    other = Schedule(pair[1])
    other.send(0, 0, INT, 0)
    schedule.start()
    other.start()
    messages.deliver()
    progress_once()
    assert schedule.complete
    assert isinstance(schedule.error, MPIError)
    assert "BAND" in str(schedule.error)


def test_what_was_abandoned_keeps_its_memory_and_harms_nobody(messages, pair):
    """A message that comes after its schedule has failed finds the scratch memory still there."""
    schedule = Schedule(pair[0])
    schedule.recv(schedule.scratch(1000, INT), 1000, INT, 1)
    schedule.recv(schedule.scratch(1000, INT), 1000, INT, 1)
    schedule.start()
    (queue,) = messages.wanted.values()
    late = queue[1]
    queue.popleft().request.fail(MPIError(ERR_TRUNCATE, "broken"))
    progress_once()
    assert schedule.complete
    assert "rank 1" in str(schedule.error)
    assert late.request.buffer is schedule
    late.request.succeed()
    assert progress_once() == 0


def test_persistent_and_single_calls_never_share_a_tag():
    comm = intra(1)[0]
    tags = {Schedule(comm).tag for _ in range(5)}
    kept = {Schedule(comm, 0, True).tag for _ in range(5)}
    assert len(tags) == len(kept) == 5
    assert max(kept) < -(2**28) < min(tags)
    assert min(kept) >= -(2**31)
