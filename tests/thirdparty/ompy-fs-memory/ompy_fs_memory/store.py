"""The bytes of one file, in memory that every process of the host can map: the page of its size, then what it holds."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ompy.core.errors import ERR_NO_SPACE, ERR_READ_ONLY, MPIError
from ompy.mca.file_errors import file_error

PREFIX = "memory:"
FOLDER = "/dev/shm"
SIZE = struct.Struct("=q")
HEAD = mmap.PAGESIZE


def place(path: str) -> str:
    """Where the memory of a file has a name."""
    return os.path.join(FOLDER, f"ompy-memory-{os.getuid()}-{path.removeprefix(PREFIX).replace(os.sep, '-')}")


class Store:
    """One file, opened.

    Parameters:
        path: its name, with the prefix.
        create, exclusive: make it, which must not be there yet.
        writable: bytes may be stored.
        capacity: of a file that is made, bytes.

    Errors: MPIErrors that name the file.
    """

    def __init__(self, path: str, *, create: bool, exclusive: bool, writable: bool, capacity: int) -> None:
        self.path = path
        self.writable = writable
        self.turn = threading.Lock()
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
        try:
            self.descriptor = os.open(place(path), flags, 0o600)
            if create and os.fstat(self.descriptor).st_size == 0:
                os.ftruncate(self.descriptor, HEAD + capacity)
            self.bytes = mmap.mmap(self.descriptor, 0)
        except OSError as error:
            raise file_error(path, "open", error.errno or 0) from error

    def close(self) -> None:
        self.bytes.close()
        os.close(self.descriptor)

    @property
    def size(self) -> int:
        found: int = SIZE.unpack_from(self.bytes)[0]
        return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes the size."""
        with self.turn:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def resize(self, size: int, *, cut: bool) -> None:
        """Have so many bytes; without `cut` not fewer than there are."""
        if HEAD + size > len(self.bytes):
            raise MPIError(ERR_NO_SPACE, f"{self.path}: {size} bytes, but it has room for {len(self.bytes) - HEAD}")
        with self.alone():
            before = self.size
            if size < before and cut:
                self.bytes[HEAD + size : HEAD + before] = bytes(before - size)
            if cut or size > before:
                SIZE.pack_into(self.bytes, 0, size)

    def fetch(self, length: int, offset: int) -> bytes:
        """Fewer than asked for at the end."""
        return self.bytes[HEAD + offset : HEAD + min(offset + length, max(self.size, offset))]

    def store(self, data: memoryview, offset: int) -> None:
        if not self.writable:
            raise MPIError(ERR_READ_ONLY, f"{self.path}: opened to read")
        self.resize(offset + len(data), cut=False)
        self.bytes[HEAD + offset : HEAD + offset + len(data)] = data
