"""Files as a whole; what a module must hold to is in `ompy/mca/fs.pxd`."""

from __future__ import annotations

import os

from ompy.core.file import MODE_RDONLY, File
from ompy.mca.file_errors import file_error
from ompy.mca.fs import FsModule
from ompy_fs_memory.store import Store, place


class Memory(FsModule):
    """One file."""

    def __init__(self, component: str, capacity: int) -> None:
        super().__init__(component)
        self.capacity = capacity

    def open(self, file: File, create: bool, exclusive: bool) -> int:
        writable = not file.mode & MODE_RDONLY
        file.handle = Store(file.path, create=create, exclusive=exclusive, writable=writable, capacity=self.capacity)
        return 0

    def close(self, file: File) -> int:
        file.handle.close()
        file.handle = None
        return 0

    def delete(self, path: str) -> int:
        try:
            os.unlink(place(path))
        except OSError as error:
            raise file_error(path, "delete", error.errno or 0) from error
        return 0

    def size(self, file: File) -> int:
        return int(file.handle.size)

    def resize(self, file: File, size: int) -> int:
        file.handle.resize(size, cut=True)
        return 0

    def preallocate(self, file: File, size: int) -> int:
        file.handle.resize(size, cut=False)
        return 0

    def sync(self, file: File) -> int:
        return 0  # all ranks see the same memory
