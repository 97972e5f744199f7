"""Lines from many ranks onto a few descriptors, without ever waiting for a slow reader.

    rank 0 stdout --pipe--> Lines \
    rank 1 stdout --pipe--> Lines  >-- Printer --> descriptor 1
    rank 1 stderr --pipe--> Lines ---- Printer --> descriptor 2
                              +------- Printer --> a file of this stream's own, where one is wanted

A line goes on when its newline has come, so lines of different ranks never mix; what a rank wrote without a newline
goes on when the rank has closed its end, or, on a terminal, when it has been silent for a moment (a prompt).
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections import deque

from ompy.runtime.signals import above_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

# A line longer than this is passed on in pieces: the launcher's memory stays bounded.
LONGEST_LINE = 16 * 1024 * 1024
# poll(2) promises that a write of this size to a ready pipe does not block (POSIX, PIPE_BUF).
PIECE = 4096


def without_waiting(descriptor: int, mode: int) -> int:
    """The same terminal or pipe opened again, so that no write waits; the descriptor given where that can't be.

    O_NONBLOCK on the one that is given would hold for whoever shares it: the shell, and programs of other people's.
    """
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)) or not os.get_blocking(descriptor):
        return descriptor
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return above_streams(os.open(f"/proc/self/fd/{descriptor}", flags))
    except OSError:
        return descriptor


class Printer:
    """One descriptor that the launcher writes to.

    Parameters:
        descriptor: 1, 2, or a file's.

    Attributes:
        descriptor: that to write on, another one where writing on the given one might wait.
        problem: why nothing can be written any more, or None.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.queue: deque[memoryview] = deque()
        self.pending = 0
        self.problem: OSError | None = None
        self.is_terminal = os.isatty(descriptor)
        # Whose unfinished line stands at the end of the output, if any.
        self.open_line: Lines | None = None
        try:
            mode = os.fstat(descriptor).st_mode
            self.is_file = stat.S_ISREG(mode)
            self.descriptor = without_waiting(descriptor, mode)
        except OSError as error:
            self.is_file, self.problem = False, error
        self.poller = select.poll()
        self.poller.register(self.descriptor, select.POLLOUT)

    def write(self, data: bytes, author: Lines | None = None) -> None:
        """Queue bytes that end with a newline; `author` is the stream that they come from, None for the launcher."""
        if self.open_line is not None and self.open_line is not author:
            data = b"\n" + data
        self.open_line = None
        self._append(data)

    def write_unfinished(self, data: bytes, author: Lines) -> None:
        """Queue a line's beginning; whoever else writes next begins a new line first."""
        if self.open_line is not None and self.open_line is not author:
            data = b"\n" + data
        self.open_line = author
        self._append(data)

    def _append(self, data: bytes) -> None:
        if self.problem is None:
            self.queue.append(memoryview(data))
            self.pending += len(data)

    def flush(self) -> bool:
        """Write what can be written now; True when nothing is left."""
        while self.queue:
            if not self.is_file and not self.poller.poll(0):
                return False
            head = self.queue[0]
            try:
                written = os.write(self.descriptor, head if self.is_file else head[:PIECE])
            except BlockingIOError:
                return False
            except OSError as error:
                # The reader has gone (EPIPE), or the disk is full: the rest has nowhere to go.
                self.problem = error
                self.queue.clear()
                self.pending = 0
                return True
            self.pending -= written
            if written == len(head):
                self.queue.popleft()
            else:
                self.queue[0] = head[written:]
        return True


class Tag:
    """What stands before each line: `[1,3]<stdout>: ` (job, the first is 1; rank, stream), `[3] ` (rank), the time, or nothing.

    Parameters:
        style: "stream", "rank" or "".
        has_time: begin with the time at which the line is passed on, in seconds as ISO 8601 has it.
    """

    def __init__(self, style: str = "", has_time: bool = False) -> None:
        self.style = style
        self.has_time = has_time

    def of(self, job: int, rank: int, stream: str) -> Callable[[], bytes] | None:
        """Makes the tag of a line of that rank; None where there is nothing to put."""
        fixed = {"stream": f"[{job + 1},{rank}]<{stream}>: ", "rank": f"[{rank}] "}.get(self.style, "").encode()
        if not self.has_time:
            return (lambda: fixed) if fixed else None
        return lambda: moment() + fixed


def moment() -> bytes:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(now))}.{int(now % 1 * 1e6):06d} ".encode()


class Lines:
    """One rank's stdout or stderr.

    Parameters:
        printer: where the lines go; None where they go to `own` alone.
        tag: makes what is put before each line.
        own: gets every byte as it was written.
    """

    def __init__(self, printer: Printer | None, tag: Callable[[], bytes] | None = None, own: Printer | None = None) -> None:
        self.printer = printer
        self.tag = tag
        self.own = own
        self.partial = bytearray()
        self.at_line_start = True
        self.latest = b""

    def shows(self, phrases: Collection[bytes], data: bytes) -> bytes:
        """Which of them is in what the rank wrote last, of which `data` is new: a traceback comes in many pieces."""
        text = self.latest + data
        self.latest = text[1 - max(map(len, phrases)) :]
        return next((words for words in phrases if words in text), b"")

    def feed(self, data: bytes) -> None:
        """Take what the rank has written; pass on what is complete."""
        if self.own is not None:
            self.own.write(data)
        if self.printer is None:
            return
        end = data.rfind(b"\n") + 1
        if end:
            self.partial += data[:end]
            self.printer.write(self._tagged(bytes(self.partial)), self)
            self.partial = bytearray(data[end:])
            self.at_line_start = True
        else:
            self.partial += data
            if len(self.partial) > LONGEST_LINE:
                self.pass_partial()

    def pass_partial(self) -> None:
        """Pass the beginning of a line on: a prompt, or a line without an end."""
        if self.partial and self.printer is not None:
            self.printer.write_unfinished(self._tagged(bytes(self.partial)), self)
            self.partial = bytearray()
            self.at_line_start = False

    def close(self) -> None:
        """The rank has closed its end: what it left goes on as it is, and only what somebody else writes then begins a line."""
        self.pass_partial()

    def _tagged(self, text: bytes) -> bytes:
        if self.tag is None:
            return text
        tag = self.tag()
        body = text.removesuffix(b"\n").replace(b"\n", b"\n" + tag)
        ending = b"\n" if text.endswith(b"\n") else b""
        return (tag if self.at_line_start else b"") + body + ending
