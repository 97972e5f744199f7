"""One process's bytes to and from a file; what a module must hold to is in `ompy/mca/fbtl.pxd`.

Of memory a convertor makes a run of bytes, and of a run memory; the view tells the pieces of the file, one after the other.
"""

from __future__ import annotations

from ompy.core.convertor import Convertor
from ompy.core.file import Access
from ompy.core.memory import view
from ompy.mca.fbtl import FbtlModule


class Bytes(FbtlModule):
    """One file's bytes."""

    def preadv(self, access: Access) -> int:
        memory, done = Convertor(), 0
        memory.aim(access.address, access.count, access.typemap)
        for offset, length in access.view.pieces(access.position, access.nbytes):
            data = self.file.handle.fetch(length, offset)
            if data:
                memory.unpack_bytes(data)
            done += len(data)
            if len(data) < length:
                break
        return done

    def pwritev(self, access: Access) -> int:
        memory = Convertor()
        memory.aim(access.address, access.count, access.typemap)
        data, done = memoryview(memory.pack_bytes(access.nbytes)), 0
        for offset, length in access.view.pieces(access.position, access.nbytes):
            self.file.handle.store(data[done : done + length], offset)
            done += length
        return done

    def fetch(self, address: int, length: int, offset: int) -> int:
        data = self.file.handle.fetch(length, offset)
        view(address, len(data))[:] = data
        return len(data)

    def store(self, address: int, length: int, offset: int) -> int:
        self.file.handle.store(view(address, length, True), offset)
        return 0
