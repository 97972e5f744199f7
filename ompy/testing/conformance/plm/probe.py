"""In place of a proxy: `python -m ompy.testing.conformance.plm.probe ADDRESS WORDS.. --name HOST`.

It says what it was started with.  Then it does what the kit says over the connection, and ends when that does.
"""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing.connection import Client
from typing import Any, NamedTuple

# What the kit says: (word, value).
READ, WRITE, EXIT, KILL = "read", "write", "exit", "kill"
INPUT = 0  # the standard input's descriptor
PIECE = 1 << 16


class Arrival(NamedTuple):
    """What a probe says first.

    Attributes:
        pid: its number.
        words: of its command line, but for the address.
        name: its host's, as it has found it; empty where it has not.
    """

    pid: int
    words: list[str]
    name: str


def name_of(words: list[str]) -> str:
    """What the host is called, as `ompyrun`'s proxy finds it."""
    option, value = words[-2:] if len(words) > 1 else ("", "")
    return {"--name": value, "--name-from": os.environ.get(value, "")}.get(option, "")


def read_input() -> bytes:
    """All of it, to the end of file."""
    data = b""
    while piece := os.read(INPUT, PIECE):
        data += piece
    return data


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def main() -> int:
    """Entry point; returns the exit status."""
    connection = Client(sys.argv[1], family="AF_UNIX")
    words = sys.argv[2:]
    # The class is another one in the kit: here it is that of `__main__`.
    connection.send(tuple(Arrival(os.getpid(), words, name_of(words))))
    while True:
        word: str
        value: Any
        try:
            word, value = connection.recv()
        except EOFError:
            return 1
        if word == READ:
            connection.send(read_input())
        elif word == WRITE:
            write(*value)
        elif word == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == EXIT:
            status: int = value
            return status


if __name__ == "__main__":
    sys.exit(main())
