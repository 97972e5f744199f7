"""The progress engine: who is polled, and how a wait ends."""

import os
import signal
import sys
import threading
import time

import pytest

from ompy.core import progress
from ompy.core.progress import progress_once, wait_request
from ompy.core.progress_source import ProgressSource, register_source, unregister_source
from ompy.core.request import Request


@pytest.fixture
def registered():
    """Registers sources for the length of a test."""
    sources = []

    def register(source):
        register_source(source)
        sources.append(source)
        return source

    yield register
    for source in sources:
        unregister_source(source)
    progress.configure()
    progress.shutdown()


class Counting(ProgressSource):
    """Completes a request at the n-th poll."""

    def __init__(self, request=None, polls=1):
        self.request = request
        self.left = polls
        self.polls = 0

    def progress(self):
        self.polls += 1
        self.left -= 1
        if self.left == 0 and self.request is not None:
            self.request.fail(None)
            return 1
        return 0


class FromPipe(ProgressSource):
    """Completes a request when its pipe says so."""

    def __init__(self, request):
        self.request = request
        self.looks = 0
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def progress(self):
        self.looks += 1
        try:
            os.read(self.reader, 1)
        except BlockingIOError:
            return 0
        self.request.fail(None)
        return 1

    def descriptor(self):
        return self.reader

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


def test_wait_polls_until_the_request_is_complete(registered):
    request = Request()
    source = registered(Counting(request, polls=50))
    wait_request(request)
    assert request.complete
    assert source.polls == 50


def test_complete_request_is_not_waited_for(registered):
    request = Request()
    request.fail(None)
    source = registered(Counting())
    wait_request(request)
    assert source.polls == 0


def test_source_registered_twice_is_polled_once(registered):
    source = registered(Counting())
    registered(source)
    progress_once()
    assert source.polls == 1


def test_source_may_leave_while_it_is_polled(registered):
    class Leaving(Counting):
        def progress(self):
            unregister_source(self)
            return super().progress()

    first, second = registered(Leaving()), registered(Counting())
    progress_once()
    progress_once()
    assert first.polls == 1
    assert second.polls >= 1


def test_progress_from_within_progress_does_nothing(registered):
    class Nested(ProgressSource):
        inner = None

        def progress(self):
            self.inner = progress_once()
            return 1

    source = registered(Nested())
    assert progress_once() == 1
    assert source.inner == 0


def test_what_a_source_raises_ends_the_wait_and_not_the_engine(registered):
    class Broken(ProgressSource):
        def progress(self):
            raise OSError("cable cut")

    broken = registered(Broken())
    request = Request()
    with pytest.raises(OSError, match="cable cut"):
        wait_request(request)
    unregister_source(broken)
    registered(Counting(request))
    wait_request(request)


def test_descriptor_ends_a_sleep(registered):
    progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=600_000)
    request = Request()
    source = registered(FromPipe(request))
    asleep = progress.counters()["sleeps"]

    def wake():
        while progress.counters()["sleeps"] == asleep:
            time.sleep(0.001)
        os.write(source.writer, b"!")

    thread = threading.Thread(target=wake)
    thread.start()
    wait_request(request)
    thread.join()
    source.close()


def test_source_with_work_left_is_not_slept_on(registered):
    class Busy(ProgressSource):
        """An edge-triggered descriptor: only asking shows what is there."""

        hidden = False

        def __init__(self, request):
            self.request = request
            self.asked = 0

        def progress(self):
            if self.hidden:
                self.request.fail(None)
                return 1
            return 0

        def may_sleep(self):
            self.asked += 1
            self.hidden = self.asked > 3
            return False

    progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=600_000)
    request = Request()
    source = registered(Busy(request))
    wait_request(request)
    assert source.asked > 3


class Interrupted(Exception):
    """What a handler raises here: KeyboardInterrupt, out of place, would end the process of the tests."""


@pytest.fixture
def interruptible():
    def interrupt(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt_ends_a_wait_and_leaves_the_request(registered, interruptible):
    progress.configure(backstop_ms=600_000)
    request = Request()
    source = registered(FromPipe(request))
    asleep = progress.counters()["sleeps"]

    def interrupt():
        while progress.counters()["sleeps"] == asleep:
            time.sleep(0.001)
        time.sleep(0.05)  # until it is in the kernel; earlier, the test says less
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        wait_request(request)
    thread.join()
    assert not request.complete
    os.write(source.writer, b"!")
    wait_request(request)
    source.close()


def test_a_blocked_wait_sleeps(registered):
    """It looks now and then only, however busy the machine is: a wait that polls would look a million times."""
    request = Request()
    source = registered(FromPipe(request))
    timer = threading.Timer(1.0, os.write, (source.writer, b"!"))
    timer.start()
    wait_request(request)
    assert source.looks < 2000
    source.close()


def test_several_threads_wait_at_once(registered):
    progress.configure(backstop_ms=600_000)
    count = 8
    requests = [Request() for _ in range(count)]
    sources = [registered(FromPipe(request)) for request in requests]
    done = []

    def waiter(number):
        wait_request(requests[number])
        done.append(number)

    threads = [threading.Thread(target=waiter, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    # One after another, so that whoever notices is seldom the one that waits for it.
    for number in reversed(range(count)):
        os.write(sources[number].writer, b"!")
        threads[number].join(20)
        assert not threads[number].is_alive(), f"thread {number} was not woken"
    assert done == list(reversed(range(count)))
    for source in sources:
        source.close()


class GivesWay(FromPipe):
    """In Python that lets other threads have many turns."""

    def descriptor(self):
        for _ in range(50):
            time.sleep(0)
        return self.reader


def test_threads_that_wait_do_not_keep_each_other_from_polling(registered):
    """Each finds another one inside, which asks for the descriptors, whenever it looks: it has its turn all the same."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    requests = [Request() for _ in range(100)]
    threads = []
    try:
        for request in requests:
            source = registered(GivesWay(request))
            threads = [threading.Thread(target=wait_request, args=(request,), daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            os.write(source.writer, b"!")
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive(), f"{source.looks} looks"
            unregister_source(source)
            source.close()
    finally:
        sys.setswitchinterval(interval)
        for request in requests:
            request.fail(None)


def test_sources_come_and_go_while_other_threads_watch(registered):
    progress.configure(watch_us=1e6, backstop_ms=50)
    request = Request()
    registered(Counting())
    threads = [threading.Thread(target=wait_request, args=(request,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(2000):
        sources = [Counting() for _ in range(10)]
        for source in sources:
            register_source(source)
        for source in sources:
            unregister_source(source)
    request.fail(None)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_negative_settings_mean_good_values():
    progress.configure(crowded=True)
    progress.configure(spin_us=-1)
    with pytest.raises(TypeError):
        progress.configure(spin_us="long")
