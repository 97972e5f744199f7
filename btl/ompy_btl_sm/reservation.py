"""Room in /dev/shm for rings that have yet to be made.

Rings are made at the first message, when it is too late to choose another transport.  Where they live in files, each process
therefore sets their room aside at its start, and gives it back ring by ring as it makes them.
"""

from __future__ import annotations

import os

from ompy.core.errors import ERR_NO_MEM, MPIError
from ompy.core.segment import FILE_DIRECTORY

REMEDY = "enlarge it, or set btl_sm_ring_size lower, or btl_sm_backing to memfd"


class Reservation:
    """Bytes of `FILE_DIRECTORY` that nobody else can take; an unnamed file, which goes with the process.

    Raises MPIError (ERR_NO_MEM) when there are not so many.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = -1
        try:
            self.descriptor = os.open(FILE_DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            os.posix_fallocate(self.descriptor, 0, size)
        except OSError as error:
            self.close()
            reason = f"{FILE_DIRECTORY} has no room for this process's rings, {size} bytes ({error.strerror}): {REMEDY}"
            raise MPIError(ERR_NO_MEM, reason) from error

    def give_back(self, size: int) -> None:
        """`size` bytes are free for whoever takes them next."""
        self.size = max(self.size - size, 0)
        if self.descriptor >= 0:
            os.ftruncate(self.descriptor, self.size)

    def close(self) -> None:
        """Give everything back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def shortage(needed: int) -> str:
    """Why all processes of the host together can't have `needed` bytes, however empty the directory is; "" if they can."""
    system = os.statvfs(FILE_DIRECTORY)
    size = system.f_blocks * system.f_frsize
    if needed <= size:
        return ""
    return f"{FILE_DIRECTORY} has {size} bytes and this job's rings need {needed}: {REMEDY}"
