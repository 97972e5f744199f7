"""Ways to serve files wrongly, over what `ompy new io` writes; each class has one."""

from __future__ import annotations

import os

from ompy_io_planted.module import PlantedModule

from ompy.core.file import EXPLICIT, INDIVIDUAL, MODE_APPEND, MODE_CREATE, SHARED, FileRequest
from ompy.core.lane import shared as lane
from ompy.core.memory import address_of
from ompy.mca.agreement import gathered

kept: list[object] = []


class MakesAlways(PlantedModule):
    def open(self):
        if self.file.communicator.rank == 0:
            os.close(os.open(self.file.path, os.O_CREAT | os.O_RDWR))
        return super().open()


class AppendsAtTheStart(PlantedModule):
    def open(self):
        super().open()
        if self.file.mode & MODE_APPEND:
            self.pointer = 0
        return 0


class KeepsTheFile(PlantedModule):
    """Although it is to be deleted on close."""

    def close(self):
        self.meet()
        self.together("can't be closed", self.leave)
        return 0


class EmptiesAtClose(PlantedModule):
    def leave(self):
        if self.file.communicator.size > 1 and self.file.mode & MODE_CREATE:
            self.fs.resize(self.file, 0)
        super().leave()


class KeepsADescriptor(PlantedModule):
    def open(self):
        super().open()
        kept.append(os.open(os.devnull, os.O_RDONLY))
        return 0


class PadsReads(PlantedModule):
    def read(self, access):
        super().read(access)
        return access.nbytes


class WritesOneMore(PlantedModule):
    """Behind the last byte, which may be one that the view does not have."""

    def write(self, access):
        moved = super().write(access)
        if access.nbytes and not access.collective:
            zero = bytearray(1)
            last = access.view.offset(access.position + access.nbytes - 1)
            self.fbtl.store(address_of(zero), 1, last + 1)
        return moved


class PointerByBytes(PlantedModule):
    """What is moved, not what is asked for, as a stream has it."""

    def read(self, access):
        moved = super().read(access)
        if access.pointer == INDIVIDUAL and moved < access.nbytes:
            self.pointer -= (access.nbytes - moved) // access.view.etype.size
        return moved


class OffsetsMoveThePointer(PlantedModule):
    def place(self, access):
        super().place(access)
        if access.pointer == EXPLICIT:
            self.pointer = access.offset


class SeeksInBytes(PlantedModule):
    def seek(self, offset, whence, shared):
        super().seek(offset, whence, shared)
        if not shared and self.file.view.etype.size > 1:
            self.pointer *= self.file.view.etype.size
        return 0


class SeeksBeforeTheStart(PlantedModule):
    def sought(self, offset, whence, pointer):
        try:
            return super().sought(offset, whence, pointer)
        except Exception:
            return 0


class SharedIsEachOnesOwn(PlantedModule):
    mine = 0

    def place(self, access):
        if access.pointer == SHARED and not access.collective:
            access.pointer, access.offset = EXPLICIT, self.mine
            self.mine += access.nbytes // access.view.etype.size
        super().place(access)

    def tell(self, shared):
        return self.mine if shared else self.pointer

    def seek(self, offset, whence, shared):
        super().seek(offset, whence, shared)
        self.mine = self.sharedfp.get() if shared else self.mine
        return 0

    def set_view(self, view):
        self.mine = 0
        return super().set_view(view)


class NotInRankOrder(PlantedModule):
    """The other way round."""

    def place(self, access):
        if access.pointer == SHARED and access.collective:
            comm, base = self.file.communicator, self.sharedfp.get()
            counts = [count for (count,) in gathered(comm, [access.nbytes // access.view.etype.size])]
            access.pointer, access.offset = EXPLICIT, base + sum(counts[comm.rank + 1 :])
            self.sharedfp.set(base + sum(counts))
        super().place(access)


class RequestsMoveNoPointer(PlantedModule):
    def begin(self, access, move):
        before = self.pointer
        request = super().begin(access, move)
        self.pointer = before
        return request


class RequestsBeginWithTheNext(PlantedModule):
    late = None

    def begin(self, access, move):
        if access.collective:
            return super().begin(access, move)
        self.place(access)
        if self.late is not None:
            lane.put(self.late)
        self.late = FileRequest(self.file, access, self.fbtl.pwritev if access.writing else self.fbtl.preadv)
        return self.late


class ProblemsRaise(PlantedModule):
    """Before the others have heard of them."""

    def carry_out(self, access, move):
        if access.problem is not None:
            raise access.problem
        return super().carry_out(access, move)


class FarOffsetsRaise(PlantedModule):
    def place(self, access):
        problem = access.problem
        super().place(access)
        if access.problem is not problem:
            raise access.problem


class ViewsStay(PlantedModule):
    def set_view(self, view):
        places = self.pointer, self.sharedfp.get()
        super().set_view(view)
        self.pointer = places[0]
        self.sharedfp.set(places[1])
        return 0


class AnyEtypes(PlantedModule):
    def set_view(self, view):
        self.file.view = view
        self.pointer = 0
        self.sharedfp.set(0)
        return 0


class PreallocateCuts(PlantedModule):
    def preallocate(self, size):
        return self.set_size(size)


class NeverCuts(PlantedModule):
    def set_size(self, size):
        return super().set_size(max(size, self.size()))


class AtomicWithoutLocks(PlantedModule):
    def locked(self, access):
        return self.fbtl.pwritev(access) if access.writing else self.fbtl.preadv(access)


class NeverAtomic(PlantedModule):
    def set_atomicity(self, atomic):
        return 0


class ErrorsWithoutName(PlantedModule):
    def together(self, words, work, mine=True):
        try:
            super().together(words, work, mine)
        except Exception as error:
            raise type(error)(error.code, words) from None
