"""The shared pointer in a hidden file beside the file, read and written under a range lock."""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
from contextlib import contextmanager

from ompy.core.errors import MPIError
from ompy.mca.agreement import agree, common
from ompy.mca.file_errors import file_error
from ompy.mca.sharedfp import SharedfpModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER = struct.Struct("=q")
# Of struct flock, as fcntl(2) of a 64-bit Linux takes it: type, whence, start, length, pid.
FLOCK = struct.Struct("=hhxxxxqqixxxx")
LOCK_AND_WAIT = 38  # F_OFD_SETLKW: the lock is the open file's, not the process's
LOCK = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, NUMBER.size, 0)
UNLOCK = FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, NUMBER.size, 0)


class LockedFile(SharedfpModule):
    """One file's pointer."""

    descriptor = -1
    path = ""
    # Why there is no hidden file, the same on all ranks: whoever only reads a file may have no right to make one beside it.
    problem: MPIError | None = None

    def open(self) -> int:
        """Collective: rank 0 makes the file, the others open it.  Where that can't be, the pointer's users are told."""
        comm = self.file.communicator
        folder, name = os.path.split(os.path.abspath(self.file.path))
        # A name that no other job's file has, nor one that a killed job has left there.
        self.path = os.path.join(folder, f".{name}.{common(comm, secrets.token_hex(8) if comm.rank == 0 else '')}.sharedfp")
        for turn in (comm.rank == 0, comm.rank > 0):
            problem: MPIError | None = None
            if turn:
                try:
                    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if comm.rank == 0 else 0)
                    self.descriptor = os.open(self.path, flags, 0o600)
                    if comm.rank == 0:
                        self.put(0)
                except MPIError as error:
                    problem = error
                except OSError as error:
                    problem = file_error(self.path, "open, for the shared pointer,", error.errno or 0)
            try:
                agree(comm, problem, f"{self.path}: the shared pointer can't be kept there")
            except MPIError as error:
                self.problem = error
                self.remove()
                break
        return 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else looks at the number; the caller has the file's turn, since threads of a process share its lock."""
        if self.problem is not None:
            raise MPIError(self.problem.code, self.problem.detail)
        try:
            # A signal handler may raise as soon as a call has returned.
            try:
                fcntl.fcntl(self.descriptor, LOCK_AND_WAIT, LOCK)
                yield
            finally:
                fcntl.fcntl(self.descriptor, LOCK_AND_WAIT, UNLOCK)
        except OSError as error:
            raise file_error(self.path, "lock, for the shared pointer,", error.errno or 0) from error

    def get(self) -> int:
        """Where it is."""
        with self.file.turn, self.locked():
            return self.load()

    def advance(self, count: int) -> int:
        """Add to it; returns where it was."""
        with self.file.turn, self.locked():
            number = self.load()
            self.store(number + count)
        return number

    def put(self, value: int) -> int:
        """Where it is from now on."""
        if self.problem is not None and value == 0:
            return 0  # it never was anywhere else
        with self.file.turn, self.locked():
            self.store(value)
        return 0

    def load(self) -> int:
        number: int = NUMBER.unpack(os.pread(self.descriptor, NUMBER.size, 0))[0]
        return number

    def store(self, number: int) -> None:
        os.pwrite(self.descriptor, NUMBER.pack(number), 0)

    def free(self) -> int:
        """Collective: rank 0 removes the file when nobody looks any more."""
        try:
            agree(self.file.communicator, None, self.path)
        finally:
            try:
                self.remove()
            except OSError as error:
                raise file_error(self.path, "remove, for the shared pointer,", error.errno or 0) from error
        return 0

    def remove(self) -> None:
        """This rank's part of the end."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            if self.file.communicator.rank == 0:
                os.unlink(self.path)
