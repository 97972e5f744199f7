"""btl/self over its contract."""

import random

from ompy_btl_self.module import SelfBtl

from ompy.core import progress
from ompy.core.memory import address_of
from ompy.core.proc import Proc
from ompy.core.progress_source import register_source, unregister_source
from ompy.mca.btl import Receiver

TAG = 20


class Keeper(Receiver):
    def __init__(self):
        self.messages = []

    def receive(self, btl, endpoint, data):
        self.messages.append(bytes(data))
        return 0


def proc(is_self):
    return Proc(0, 0, "job", "here", 1, is_self, True, {})


def loop(receiver):
    btl = SelfBtl()
    btl.register(TAG, receiver)
    (endpoint,) = btl.add_procs([proc(True)])
    return btl, endpoint


def send(btl, endpoint, data):
    descriptor = btl.alloc(endpoint, len(data))
    descriptor.view[:] = data
    assert btl.send(endpoint, descriptor, TAG) == 0


def test_only_this_process_is_reached():
    (answer,) = SelfBtl().add_procs([proc(False)])
    assert "another process" in answer


def test_messages_arrive_from_progress_in_order():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    keeper = Keeper()
    btl, endpoint = loop(keeper)
    sent = [source.randbytes(source.choice((0, 1, 100, 20000))) for _ in range(500)]
    for data in sent:
        send(btl, endpoint, data)
    assert keeper.messages == []
    while btl.progress():
        pass
    assert keeper.messages == sent
    assert btl.statistics()["messages"] == 500


def test_receiver_that_answers_itself_is_not_called_recursively():
    class Answering(Receiver):
        depth = deepest = count = 0

        def receive(self, btl, endpoint, data):
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            self.count += 1
            if self.count < 10000:
                send(btl, endpoint, data)
            self.depth -= 1
            return 0

    receiver = Answering()
    btl, endpoint = loop(receiver)
    send(btl, endpoint, b"ping")
    while btl.progress():
        pass
    assert (receiver.count, receiver.deepest) == (10000, 1)


def test_put_and_get_copy():
    btl, endpoint = loop(Keeper())
    here, there = bytearray(b"here" * 1000), bytearray(b"away" * 1000)
    done = []
    for move, expected in ((btl.get, b"away" * 1000), (btl.put, b"back" * 1000)):
        descriptor = btl.prepare_dst(endpoint, address_of(here), len(here))
        descriptor.remote_address = address_of(there)
        descriptor.context = lambda descriptor, status: done.append(status)
        assert move(endpoint, descriptor) == 0
        assert here == there == expected
        here[:] = b"back" * 1000
    assert done == [0, 0]


def test_waiting_thread_is_woken_by_another_thread_s_send():
    from threading import Thread

    from ompy.core.request import Request

    class Finishing(Receiver):
        def __init__(self, request):
            self.request = request

        def receive(self, btl, endpoint, data):
            self.request.fail(None)
            return 0

    progress.configure(backstop_ms=600_000)
    request = Request()
    btl, endpoint = loop(Finishing(request))
    register_source(btl)
    asleep = progress.counters()["sleeps"]
    thread = Thread(target=progress.wait_request, args=(request,))
    thread.start()
    while progress.counters()["sleeps"] == asleep:
        pass
    send(btl, endpoint, b"wake up")
    thread.join(20)
    assert not thread.is_alive()
    unregister_source(btl)
    progress.configure()
    progress.shutdown()
