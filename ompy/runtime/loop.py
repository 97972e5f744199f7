"""One thread that waits for whatever happens first: a descriptor that is ready, or a moment that has come."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

# poll(2) takes milliseconds as an int.
LONGEST_TURN = 3600.0

Action = Callable[[], None]


class Loop:
    """Descriptors and timers, each with what is to be done.

    poll(2), because epoll refuses regular files, and standard output may be one.
    """

    def __init__(self) -> None:
        self.selector = selectors.PollSelector()
        self.timers: dict[str, tuple[float, Action]] = {}

    def watch(self, descriptor: int, action: Action) -> None:
        """Call `action` whenever there is something to read."""
        self.selector.register(descriptor, selectors.EVENT_READ, action)

    def watch_writable(self, descriptor: int, action: Action = lambda: None) -> None:
        """Call `action`, or have `turn` come back, when the descriptor can be written to; once more changes nothing."""
        if not self.is_watched(descriptor):
            self.selector.register(descriptor, selectors.EVENT_WRITE, action)

    def is_watched(self, descriptor: int) -> bool:
        return descriptor in self.selector.get_map()

    def unwatch(self, descriptor: int) -> None:
        if self.is_watched(descriptor):
            self.selector.unregister(descriptor)

    def set_timer(self, name: str, seconds: float, action: Action) -> None:
        """Call `action` once, so much later; a timer of the same name is replaced."""
        self.timers[name] = (time.monotonic() + seconds, action)

    def drop_timer(self, name: str) -> None:
        self.timers.pop(name, None)

    def turn(self, limit: float | None = None) -> None:
        """Wait for something to happen, at most `limit` seconds, and deal with it."""
        waits = [LONGEST_TURN, *(when - time.monotonic() for when, _ in self.timers.values())]
        if limit is not None:
            waits.append(limit)
        for key, _ in self.selector.select(max(0.0, min(waits))):
            # What one action does may be the end of what another one was to look at.
            if self.is_watched(key.fd) and self.selector.get_key(key.fd).data is key.data:
                key.data()
        now = time.monotonic()
        for name in [name for name, (when, _) in self.timers.items() if when <= now]:
            if name in self.timers:
                self.timers.pop(name)[1]()
