"""One thread at a time is inside the engine, and no signal handler interrupts it (`ompy/core/owner.pxd`)."""

import os
import signal
import sys
import threading
import time

import pytest

from ompy.core import owner
from ompy.core.progress import progress_once
from ompy.core.progress_source import ProgressSource, register_source, unregister_source


class Late(Exception):
    """What the signal handler raises."""


def raise_late(*_):
    raise Late


class Slow(ProgressSource):
    """A source in Python: `work` is called in each round, between two numbers that are equal outside of it."""

    def __init__(self, work):
        self.work = work
        self.begun = self.ended = self.inside = self.most_inside = 0

    def progress(self):
        self.begun += 1
        self.inside += 1
        self.most_inside = max(self.inside, self.most_inside)
        self.work()
        self.inside -= 1
        self.ended += 1
        return 1


@pytest.fixture
def source():
    made = []

    def make(work):
        made.append(Slow(work))
        register_source(made[0])
        return made[0]

    yield make
    for source in made:
        unregister_source(source)


@pytest.fixture
def handler():
    before = signal.signal(signal.SIGUSR2, raise_late)
    yield
    signal.signal(signal.SIGUSR2, before)


def test_a_signal_handler_runs_after_what_a_source_has_begun(source, handler):
    def work():
        signal.raise_signal(signal.SIGUSR2)
        for _ in range(1000):
            len([])

    def call():
        progress_once()
        for _ in range(1000):
            len([])

    slow = source(work)
    for _ in range(50):
        ended = slow.ended
        with pytest.raises(Late):
            call()
        assert slow.begun == slow.ended == ended + 1
    assert not owner.is_owned()


def test_a_signal_to_the_process_is_handled_after_what_a_source_has_begun_while_other_threads_run(source, handler):
    stop = threading.Event()
    others = [threading.Thread(target=lambda: [len([]) for _ in iter(stop.is_set, True)]) for _ in range(2)]
    for other in others:
        other.start()

    def work():
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in range(3000):
            len([])

    def call():
        progress_once()
        while True:
            len([])

    slow = source(work)
    try:
        for _ in range(20):
            with pytest.raises(Late):
                call()
            assert slow.begun == slow.ended
    finally:
        stop.set()
        for other in others:
            other.join()


def test_a_signal_handler_that_was_put_off_runs_where_nothing_is_called_any_more(source, handler):
    """The interpreter is reminded: it would not look again by itself."""

    def call():
        progress_once()
        number = 0
        while number < 10_000_000:
            number += 1

    source(lambda: signal.raise_signal(signal.SIGUSR2))
    with pytest.raises(Late):
        call()


def test_threads_that_poll_at_once_are_inside_one_at_a_time(source):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    slow = source(lambda: [len([]) for _ in range(200)])
    threads = [threading.Thread(target=lambda: [progress_once() for _ in range(300)]) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert slow.begun == slow.ended > 0
    assert slow.most_inside == 1


def test_python_inside_is_interrupted_by_no_thread_and_no_signal_handler(source, handler):
    """Not even where an exception ends what is inside."""
    slow = source(lambda: time.sleep(0))
    threads = [threading.Thread(target=lambda: [progress_once() for _ in range(300)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    seen = []

    def look_twice():
        with owner.inside, owner.inside:
            before = slow.begun, slow.ended
            signal.raise_signal(signal.SIGUSR2)
            for _ in range(5):
                time.sleep(0)
            seen.append((before, (slow.begun, slow.ended)))

    for _ in range(100):
        with pytest.raises(Late):
            look_twice()
    for thread in threads:
        thread.join()
    assert all(before == after and before[0] == before[1] for before, after in seen)
    assert len(seen) == 100
    with pytest.raises(ValueError, match="late"), owner.inside:
        raise ValueError("late")
    assert not owner.is_owned()


def test_a_source_that_raises_leaves_the_engine_free(source):
    def work():
        raise ValueError("out of order")

    source(work)
    with pytest.raises(ValueError, match="out of order"):
        progress_once()
    assert not owner.is_owned()


def test_a_child_forked_inside_goes_on(source):
    children = []

    def work():
        if not children:
            children.append(os.fork())

    source(work)
    progress_once()
    if children[0] == 0:
        free = not owner.is_owned()
        progress_once()
        os._exit(0 if free and not owner.is_owned() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
