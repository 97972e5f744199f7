"""The wrapper: hands on what it is given, late, twice, damaged or not at all.

    faults     drop         complete at once, nothing goes
               corrupt      one bit of a copy is changed, and the copy goes
               duplicate    the copy goes twice
               delay        the copy waits in `queue`, and what comes after it too: order is kept
               reorder      the copy waits aside until some others have passed it, or its time is over
               stall        the peer's way is shut: back-pressure
               kill         the process ends itself by SIGKILL

A message is counted once it is taken, so what meets back-pressure has the same number, and the same fate, when it is tried
again.  A put or a get is a message here.
"""

from __future__ import annotations

import os
import time
from functools import partial

from ompy.core.errors import MPIError
from ompy.core.memory import address_of
from ompy.core.proc import Proc
from ompy.mca.btl import ASYNCHRONOUS, BACK_PRESSURE, IN_ORDER, NEEDS_REGISTRATION, TAKEN, Btl, Descriptor, Endpoint
from ompy.mca.btl_wrapper import Wrapper
from ompy_btl_chaos.dice import Dice
from ompy_btl_chaos.endpoint import ChaosEndpoint, Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

SIGKILL = 9
# Held back for one peer before senders are.
MOST_HELD = 64
COUNTERS = {
    "drop": "dropped",
    "duplicate": "duplicated",
    "corrupt": "corrupted",
    "delay": "delayed",
    "reorder": "reordered",
    "stall": "stalls",
}


class ChaosBtl(Wrapper):
    """An unreliable form of another BTL.

    Parameters:
        inner: the other one.
        dice: decides.
        values: the component's parameters.
        tell: takes a line for people.
    """

    def __init__(self, inner: Btl, dice: Dice, values: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        super().__init__(inner)
        self.name = "chaos"
        # What is held back goes on only when this process progresses.
        self.flags &= ~ASYNCHRONOUS
        if values["reorder"]:
            self.flags &= ~IN_ORDER
        self.dice = dice
        self.tell = tell
        self.delay_time = values["delay_time"] / 1000
        self.stall_time = values["stall_time"] / 1000
        self.reorder_distance = max(values["reorder_distance"], 1)
        self.kill_at = values["kill_at"] if values["kill_rank"] == dice.rank else 0
        self.messages = 0
        self.counters.update(dict.fromkeys(COUNTERS.values(), 0))

    def endpoint_of(self, proc: Proc, inner: Endpoint) -> ChaosEndpoint:
        return ChaosEndpoint(self, proc, inner)

    # -- messages

    def fate(self, endpoint: ChaosEndpoint) -> list[str] | None:
        """The faults of the next message to a peer; None while the way there is shut."""
        if self.messages + 1 == self.kill_at:
            os.kill(os.getpid(), SIGKILL)
        now = time.monotonic()
        if now < endpoint.shut_until or len(endpoint.queue) + len(endpoint.aside) >= MOST_HELD:
            return None
        faults = self.dice.faults(endpoint.proc.rank, endpoint.number)
        if "stall" in faults and endpoint.stalled != endpoint.number:
            endpoint.stalled = endpoint.number
            endpoint.shut_until = now + self.stall_time
            self.counters["stalls"] += 1
            return None
        return [fault for fault in faults if fault != "stall"]

    def count(self, endpoint: ChaosEndpoint, faults: Sequence[str] = ()) -> None:
        """A message was taken, and these faults befell it."""
        self.messages += 1
        endpoint.number += 1
        for fault in faults:
            self.counters[COUNTERS[fault]] += 1
        for held in endpoint.aside:
            held.overtakers -= 1

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert isinstance(endpoint, ChaosEndpoint)
        faults = self.fate(endpoint)
        if faults is None:
            return BACK_PRESSURE
        if not faults and not endpoint.queue:
            taken = self.inner.send(endpoint.inner, descriptor, tag)
            if taken == TAKEN:
                self.count(endpoint)
            return taken
        number = endpoint.number
        message = bytearray(descriptor.view) + descriptor.payload_view
        if "drop" in faults:
            self.count(endpoint, ["drop"])
        else:
            if "corrupt" in faults and message:
                self.change(message, endpoint, number)
            self.count(endpoint, faults)
            post = partial(self.inner.post, endpoint.inner, message, tag)
            for _ in range(2 if "duplicate" in faults else 1):
                self.hold(endpoint, post, faults, number)
        descriptor.complete()
        return TAKEN

    def hold(self, endpoint: ChaosEndpoint, attempt: Callable[[], int], faults: Sequence[str], number: int) -> None:
        """Put something where it waits for its time, which may be now."""
        peer = endpoint.proc.rank
        thousandths = 1 + self.dice.choose(peer, number, "time", 1000)
        due = time.monotonic() + self.delay_time * thousandths / 1000
        if "reorder" in faults:
            endpoint.aside.append(Held(attempt, due, 1 + self.dice.choose(peer, number, "distance", self.reorder_distance)))
        elif self.flags & IN_ORDER:
            endpoint.queue.append(Held(attempt, due if "delay" in faults else 0.0))
        else:
            endpoint.aside.append(Held(attempt, due if "delay" in faults else 0.0))

    def change(self, data: bytearray | memoryview, endpoint: ChaosEndpoint, number: int) -> None:
        """Change one bit."""
        position = self.dice.choose(endpoint.proc.rank, number, "bit", 8 * len(data))
        data[position >> 3] ^= 1 << (position & 7)

    def release(self, endpoint: ChaosEndpoint) -> int:
        """Do what is due; returns how much that was."""
        now = time.monotonic()
        if now < endpoint.shut_until:
            return 0
        done = 0
        try:
            while endpoint.queue and endpoint.queue[0].due <= now and endpoint.queue[0].attempt() == TAKEN:
                del endpoint.queue[0]
                done += 1
            for held in [held for held in endpoint.aside if held.due <= now or held.overtakers == 0]:
                if held.attempt() == TAKEN:
                    endpoint.aside.remove(held)
                    done += 1
        except MPIError:
            # The peer is gone, as its BTL has told or is about to tell.
            endpoint.queue.clear()
            endpoint.aside.clear()
        return done

    # -- remote memory

    def put(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.move(endpoint, descriptor, is_put=True)

    def get(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.move(endpoint, descriptor, is_put=False)

    def move(self, endpoint: Endpoint, descriptor: Descriptor, is_put: bool) -> int:
        """A put or get."""
        assert isinstance(endpoint, ChaosEndpoint)
        faults = self.fate(endpoint)
        if faults is None:
            return BACK_PRESSURE
        number = endpoint.number
        if "drop" in faults:
            self.count(endpoint, ["drop"])
            descriptor.complete()
            return TAKEN
        attempt = partial(self.attempt_move, endpoint, descriptor, is_put, faults, number)
        if "delay" in faults or "reorder" in faults:
            self.count(endpoint, faults)
            # Whatever order is promised, it is not that of puts and gets.
            endpoint.aside.append(Held(attempt, time.monotonic() + self.delay_time))
            return TAKEN
        taken = attempt()
        if taken == TAKEN:
            self.count(endpoint, faults)
        return taken

    def attempt_move(
        self, endpoint: ChaosEndpoint, descriptor: Descriptor, is_put: bool, faults: Sequence[str], number: int
    ) -> int:
        """Have the inner BTL move the data, once or twice."""
        if "corrupt" not in faults and "duplicate" not in faults:
            return (self.inner.put if is_put else self.inner.get)(endpoint.inner, descriptor)
        address, handle = descriptor.local_address, descriptor.local_handle
        changed: bytearray | None = None
        if is_put and "corrupt" in faults and descriptor.size:
            changed = bytearray(descriptor.local_view)
            self.change(changed, endpoint, number)
            address = address_of(changed)
            if self.flags & NEEDS_REGISTRATION:
                handle = self.inner.hold_mem(endpoint.inner, address, descriptor.size)

        def over(_: Descriptor, status: int) -> None:
            if changed is not None and handle:
                self.inner.release_mem(handle)
            if not is_put and "corrupt" in faults and descriptor.size and not status:
                self.change(descriptor.local_view, endpoint, number)
            descriptor.complete(status)

        def again(_: Descriptor, status: int) -> None:
            if status or self.access(endpoint, is_put, descriptor, address, handle, over) != TAKEN:
                over(_, status)

        return self.access(endpoint, is_put, descriptor, address, handle, again if "duplicate" in faults else over)

    # -- progress and the end

    def progress(self) -> int:
        events = self.inner.progress()
        for endpoint in list(self.endpoints.values()):
            if endpoint.queue or endpoint.aside:
                events += self.release(endpoint)
        return events

    def finalize(self) -> int:
        faults = ", ".join(f"{count} {name}" for name, count in self.counters.items() if count)
        self.tell(f"rank {self.dice.rank}: of {self.messages} messages: {faults or 'no fault'}")
        return super().finalize()
