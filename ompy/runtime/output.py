"""Whole lines from many ranks onto two descriptors, without ever waiting for a slow reader.

    rank 0 stdout --pipe--> Lines \
    rank 1 stdout --pipe--> Lines  >-- Printer --> descriptor 1
    rank 1 stderr --pipe--> Lines ---- Printer --> descriptor 2

A line goes on when its newline has come, so lines of different ranks never mix; what a rank wrote without a newline
goes on when the rank has closed its end, or, on a terminal, when it has been silent for a moment (a prompt).
"""

from __future__ import annotations

import os
import select
import stat
from collections import deque

# A line longer than this is passed on in pieces: the launcher's memory stays bounded.
LONGEST_LINE = 16 * 1024 * 1024
# poll(2) promises that a write of this size to a ready pipe does not block (POSIX, PIPE_BUF).
PIECE = 4096


class Printer:
    """One descriptor of the launcher's own.

    Parameters:
        descriptor: 1 or 2.

    Attributes:
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
            self.is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        except OSError as error:
            self.is_file, self.problem = False, error
        self.poller = select.poll()
        self.poller.register(descriptor, select.POLLOUT)

    def write(self, data: bytes, author: Lines | None = None) -> None:
        """Queue bytes that end with a newline; `author` is the stream that they come from, None for the launcher."""
        if self.open_line is not None and self.open_line is not author:
            data = b"\n" + data
        self.open_line = None
        self._append(data)

    def write_unfinished(self, data: bytes, author: Lines) -> None:
        """Queue a line's beginning; whoever writes next begins a new line first."""
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


class Lines:
    """One rank's stdout or stderr.

    Parameters:
        printer: where the lines go.
        tag: put before each line.
    """

    def __init__(self, printer: Printer, tag: str = "") -> None:
        self.printer = printer
        self.tag = tag.encode()
        self.partial = bytearray()
        self.at_line_start = True

    def feed(self, data: bytes) -> None:
        """Take what the rank has written; pass on what is complete."""
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
        if self.partial:
            self.printer.write_unfinished(self._tagged(bytes(self.partial)), self)
            self.partial = bytearray()
            self.at_line_start = False

    def close(self) -> None:
        """The rank has closed its end: what it left gets the newline that it lacks."""
        if self.partial:
            self.feed(b"\n")

    def _tagged(self, text: bytes) -> bytes:
        if not self.tag:
            return text
        body = text.removesuffix(b"\n").replace(b"\n", b"\n" + self.tag)
        ending = b"\n" if text.endswith(b"\n") else b""
        return (self.tag if self.at_line_start else b"") + body + ending
