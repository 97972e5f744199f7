"""Two processes over one BTL's contract, with nothing of MPI above it."""

from __future__ import annotations

import os
import time
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing import Pipe

from ompy.core import progress
from ompy.core.doorbell import disown
from ompy.core.proc import Proc
from ompy.core.progress_source import register_source, unregister_source
from ompy.core.request import Request
from ompy.mca.btl import BACK_PRESSURE, Receiver

TAG = 20
PATIENCE = 20.0  # seconds before something that should have happened counts as lost


class Mailbox(Receiver):
    """Keeps what arrives, and completes a request for whoever waits."""

    def __init__(self):
        self.messages = deque()
        self.endpoints = deque()
        self.awaited = None

    def receive(self, btl, endpoint, data):
        self.messages.append(bytes(data))
        self.endpoints.append(endpoint)
        if self.awaited is not None:
            request, self.awaited = self.awaited, None
            request.fail(None)
        return 0


class Side:
    """One of the two: its BTL, and its endpoint towards the other."""

    def __init__(self, make, pipe, rank):
        self.btl = make()
        self.pipe = pipe
        self.mailbox = Mailbox()
        self.errors = []
        self.btl.register(TAG, self.mailbox)
        self.btl.register_error(lambda btl, proc, error: self.errors.append((proc, error)))
        register_source(self.btl)
        pipe.send((os.getpid(), self.btl.address()))
        self.peer_pid, card = pipe.recv()
        self.proc = Proc(1 - rank, 1 - rank, "job", "here", self.peer_pid, False, True, {self.btl.name: card})
        self.endpoint = None

    def meet(self):
        (self.endpoint,) = self.btl.add_procs([self.proc])
        return self.endpoint

    def try_send(self, data):
        descriptor = self.btl.alloc(self.endpoint, len(data))
        descriptor.view[:] = data
        taken = self.btl.send(self.endpoint, descriptor, TAG) != BACK_PRESSURE
        if not taken:
            self.btl.free(descriptor)
        return taken

    def send(self, data):
        self.until(lambda: self.try_send(data))

    def until(self, condition):
        """Progress until the condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            progress.progress_once()
            assert time.monotonic() < deadline, "nothing happened"

    def receive(self):
        self.until(lambda: self.mailbox.messages)
        self.mailbox.endpoints.popleft()
        return self.mailbox.messages.popleft()

    def wait(self):
        """Like `receive`, through a wait of the engine, which may sleep."""
        if not self.mailbox.messages:
            request = self.mailbox.awaited = Request()
            progress.wait_request(request)
        self.mailbox.endpoints.popleft()
        return self.mailbox.messages.popleft()

    def meet_up(self):
        """Returns when the other side has got here too."""
        self.pipe.send("here")
        self.until(self.pipe.poll)
        assert self.pipe.recv() == "here"

    def close(self):
        unregister_source(self.btl)
        self.btl.finalize()
        progress.shutdown()
        self.pipe.close()


def run(make, here, there, met=True):
    """Runs `here(side)` in this process and `there(side)` in a child; what fails in the child fails here.

    Parameters:
        make: makes each side's BTL, in its own process.
        met: both know each other's endpoint from the start.
    """
    mine, other = Pipe()
    verdict, teller = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        problem = ""
        try:
            mine.close()
            disown()
            progress.end(None)  # where this process was a rank, its child's waits are an error
            side = Side(make, other, 1)
            if met:
                side.meet()
            there(side)
            side.close()
        except BaseException:
            problem = traceback.format_exc()
        teller.send(problem)
        os._exit(0)
    other.close()
    teller.close()
    try:
        side = Side(make, mine, 0)
        if met:
            side.meet()
        here(side)
        side.close()
        problem = verdict.recv() if verdict.poll(PATIENCE) else "the other side did not finish"
        assert not problem, problem
    except EOFError:
        pass  # killed on purpose
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, 9)
        os.waitpid(child, 0)
