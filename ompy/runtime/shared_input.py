"""Standard input for every rank: each gets all of it, at the pace of the slowest.

A rank that does not read holds the others' input back once its pipe is full, and no more is read meanwhile; one that has
closed its end is no longer asked.
"""

from __future__ import annotations

import os
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.loop import Loop

PIECE = 65536


class SharedInput:
    """Descriptor 0, and a pipe to each rank.

    Parameters:
        loop: watches the descriptors.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.readers: list[int] = []
        self.behind: dict[int, bytes] = {}  # what each rank's pipe has not taken yet

    def reader(self) -> int:
        """A rank's end of a new pipe."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        self.readers.append(reader)
        self.behind[writer] = b""
        return reader

    def begin(self) -> None:
        """Every rank has its end."""
        for reader in self.readers:
            os.close(reader)
        self.loop.watch(0, self.read)

    def read(self) -> None:
        try:
            data = os.read(0, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.loop.unwatch(0)
        if not data:
            for writer in list(self.behind):
                self.end(writer)
            return
        for writer in list(self.behind):
            self.behind[writer] = data
            self.write(writer)
        self.go_on()

    def write(self, writer: int) -> None:
        """Give a rank what it takes."""
        data = self.behind[writer]
        try:
            while data:
                data = data[os.write(writer, data) :]
        except BlockingIOError:
            self.loop.watch_writable(writer, partial(self.write_more, writer))
        except BrokenPipeError:
            self.end(writer)
            return
        self.behind[writer] = data

    def write_more(self, writer: int) -> None:
        self.loop.unwatch(writer)
        self.write(writer)
        self.go_on()

    def go_on(self) -> None:
        if self.behind and not any(self.behind.values()) and not self.loop.is_watched(0):
            self.loop.watch(0, self.read)

    def end(self, writer: int) -> None:
        self.loop.unwatch(writer)
        del self.behind[writer]
        os.close(writer)
