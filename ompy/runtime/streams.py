"""What the ranks of this host write, read from their pipes; where it goes is the business of those who build on this."""

from __future__ import annotations

import os
import time
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.runtime.loop import Loop
    from ompy.runtime.process import Process

# Output that nobody has taken yet, in bytes: beyond HIGH the ranks are made to wait, below LOW they go on.
HIGH = 1024 * 1024
LOW = HIGH // 4
PIECE = 65536
# Processes that have left their rank's process group may hold its streams: their output is awaited this long.
ESCAPED = 0.25
# A job that has failed waits this long for a reader that takes nothing.
PATIENCE = 2.0

# Number of the job, rank, and 1 for standard output or 2 for standard error.
Stream = tuple[int, int, int]


class Streams:
    """The readers' ends of the ranks' pipes.

    Parameters:
        loop: watches the descriptors.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.open: dict[int, Stream] = {}
        self.held = False

    # -- for those who build on this

    def took(self, stream: Stream, data: bytes) -> None:
        """A rank has written."""
        raise NotImplementedError

    def ended(self, stream: Stream) -> None:
        """It will write no more there."""
        raise NotImplementedError

    def write_out(self) -> None:
        """Pass on what can be passed on now."""
        raise NotImplementedError

    def pending(self) -> int:
        """Bytes that wait for a reader."""
        raise NotImplementedError

    def input_of(self, rank: int) -> int | None:
        """The descriptor that a rank inherits as standard input; None for an empty one."""
        raise NotImplementedError

    # --

    def attach(self, process: Process) -> None:
        """Read what a rank writes from now on."""
        for descriptor, target in ((process.stdout, 1), (process.stderr, 2)):
            if descriptor >= 0:
                self.open[descriptor] = (process.job, process.rank, target)
                if not self.held:
                    self.loop.watch(descriptor, partial(self.on_output, descriptor))

    def read_now(self, process: Process) -> None:
        """What a rank said last comes before what is said about it."""
        for descriptor in (process.stdout, process.stderr):
            self.on_output(descriptor)

    def on_output(self, descriptor: int) -> None:
        stream = self.open.get(descriptor)
        if stream is None:
            return
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if data:
            self.took(stream, data)
            return
        del self.open[descriptor]
        self.loop.unwatch(descriptor)
        os.close(descriptor)
        self.ended(stream)

    def flush(self) -> None:
        """Pass on what can be passed on; while a reader is slow, the ranks' pipes fill instead of this memory."""
        self.write_out()
        pending = self.pending()
        if not self.held and pending > HIGH:
            self.held = True
            for descriptor in self.open:
                self.loop.unwatch(descriptor)
        elif self.held and pending < LOW:
            self.held = False
            for descriptor in self.open:
                self.loop.watch(descriptor, partial(self.on_output, descriptor))

    def drain(self, has_failed: Callable[[], bool]) -> None:
        """All ranks have ended: pass on what is left in their pipes, and wait until it is out.

        Parameters:
            has_failed: whether the job has, as a time limit or a signal may say meanwhile.
        """
        end = time.monotonic() + ESCAPED
        stalled, before = time.monotonic(), -1
        while self.open or self.pending():
            self.flush()
            now = time.monotonic()
            if self.pending() != before:
                stalled, before = now, self.pending()
            if self.held:
                end = now + ESCAPED
            elif now > end:
                for stream in self.open.values():
                    self.ended(stream)
                self.open.clear()
            if has_failed() and now > stalled + PATIENCE:
                return
            if self.open or self.pending():
                self.loop.turn(ESCAPED)
