"""Breaches of the contract of one-sided components, over osc/pt2pt, that no random program need meet."""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic
from typing import ClassVar

from ompy_osc_pt2pt.module import Pt2pt

from ompy.core.errors import ERR_RMA_RANGE, ERR_RMA_SYNC, MPIError
from ompy.core.operation import predefined
from ompy.mca.accumulate import check_operation
from ompy.mca.component import Context, Offer, Refusal

EXCLUSIVE, SHARED, NOCHECK, DYNAMIC = 1, 2, 1, 3
PAUSE = 0.005  # seconds


def offer(context: Context, fault: str) -> Offer | Refusal:
    window = context.window
    if window is None:
        return Refusal("it serves windows")
    kind = globals()[fault]
    if kind is ServesOneRankLess and window.communicator.rank == window.communicator.size - 1 > 0:
        return Refusal("the last rank is left to others")
    return Offer(modules=[kind(window, 4096)], priority=90)


class Breach(Pt2pt):
    """Something to do before each call that ends accesses."""

    def now(self) -> None:
        pass

    def let_others(self) -> None:
        """Have their turn."""
        end = monotonic() + PAUSE
        while monotonic() < end:
            self.sync()

    def fence(self, assertion) -> int:
        self.now()
        return super().fence(assertion)

    def complete(self) -> int:
        self.now()
        return super().complete()

    def unlock(self, target) -> int:
        self.now()
        return super().unlock(target)

    def unlock_all(self) -> int:
        self.now()
        return super().unlock_all()

    def flush(self, target, local) -> int:
        self.now()
        return super().flush(target, local)


class ServesOneRankLess(Breach):
    """The last rank of several is refused; see `offer`."""


class GoesToTheNewestWindow(Breach):
    """Puts are carried out in the window on as many ranks that was made last, where it is in an epoch."""

    newest: ClassVar[dict] = {}

    def open(self) -> int:
        self.newest[self.ranks] = self
        return super().open()

    def put(self, access):
        try:
            return super(GoesToTheNewestWindow, self.newest.get(self.ranks, self)).put(access)
        except MPIError:
            return super().put(access)

    def free(self) -> int:
        if self.newest.get(self.ranks) is self:
            del self.newest[self.ranks]
        return super().free()


class KeepsADescriptor(Breach):
    def open(self) -> int:
        os.dup(0)
        return super().open()


class KeepsMemory(Breach):
    kept: ClassVar[list] = []

    def free(self) -> int:
        self.kept.append(b"\1" * (1 << 17))
        return super().free()


class IsFreedWithinAnEpoch(Breach):
    def may_free(self) -> int:
        return 0

    def free(self) -> int:
        try:
            return super().free()
        except MPIError:
            return 0


class FillsGapsAtTheTarget(Breach):
    """The target's datatype is taken for the contiguous one of as many bytes."""

    def put(self, access):
        if access.target_count == 1 and access.target_type is not access.origin_type and access.target_type.size > 8:
            access.target_type, access.target_count = access.origin_type, access.origin_count
        return super().put(access)


class IgnoresWhatIsOutside(Breach):
    def get(self, access):
        try:
            return super().get(access)
        except MPIError as error:
            if error.code == ERR_RMA_RANGE:
                return None
            raise


class FetchesOneLess(Breach):
    """Where data no longer travel with an answer, the last element is not fetched."""

    def get(self, access):
        if access.origin_count == access.target_count == 513:
            access.origin_count = access.target_count = 512
        return super().get(access)


class SwapsInAnyCase(Breach):
    def compare_and_swap(self, access):
        access.operation = predefined("REPLACE")
        access.target_count = access.result_count = 1
        access.target_type = access.result_type = access.origin_type
        return super().get_accumulate(access)


class FlushesHereOnly(Breach):
    """Puts under way are left so by a flush."""

    late = ()

    def put(self, access):
        self.may_access(access, access.origin_count * access.origin_type.size)
        if access.requested or access.target == self.rank:
            return super().put(access)
        self.late = (*self.late, access)
        return None

    def flush(self, target, local) -> int:
        if local:
            self.now()
        return super(Breach, self).flush(target, local)

    def now(self) -> None:
        late, self.late = self.late, ()
        for access in late:
            super().put(access)


class FetchesThenAdds(Breach):
    """Get_accumulate of one element in two steps, between which others have their turn."""

    def get_accumulate(self, access):
        if access.origin_count != 1 or access.requested or access.target == self.window.communicator.rank:
            return super().get_accumulate(access)
        memory = access.origin_address, access.origin_type
        access.origin_address, access.origin_type = access.result_address, access.result_type
        super().get(access)
        with suppress(MPIError):  # within a fence nothing is flushed
            super().flush(access.target, False)
        self.let_others()
        access.origin_address, access.origin_type = memory
        return super().accumulate(access)


class LongBeforeShort(Breach):
    """A short accumulate waits for the next access, or the end of the epoch."""

    late = ()

    def now(self) -> None:
        late, self.late = self.late, ()
        for access in late:
            super().accumulate(access)

    def accumulate(self, access):
        self.may_access(access, access.origin_count * access.origin_type.size)
        check_operation(access)
        if access.requested or access.origin_count != 1 or self.late:
            request = super().accumulate(access)
            self.now()
            return request
        self.late = (access,)
        return None

    def get_accumulate(self, access):
        self.now()
        return super().get_accumulate(access)


class CompleteAtOnce(Breach):
    """Requests of gets are complete when they are made."""

    def get(self, access):
        access.requested = False
        return super().get(access)


class TakesAnyCallForAnEpoch(Breach):
    def put(self, access):
        try:
            return super().put(access)
        except MPIError as error:
            if error.code == ERR_RMA_SYNC:
                return None
            raise


class ReadsAfterUnlock(Breach):
    """Long gets under a lock of one rank are made when it was given back."""

    late = ()

    def get(self, access):
        if access.requested or access.origin_count < 1000 or not self.window_locked:
            return super().get(access)
        self.late = (*self.late, access)
        return None

    window_locked = False

    def lock(self, target, kind, assertion) -> int:
        super().lock(target, kind, assertion)
        self.window_locked = True
        return 0

    def flush(self, target, local) -> int:
        self.read()
        return super().flush(target, local)

    def unlock(self, target) -> int:
        late, self.late = self.late, ()
        super().unlock(target)
        self.window_locked = False
        super().lock(target, SHARED, NOCHECK)
        for access in late:
            half = access.origin_count // 2
            whole, address, displacement = access.origin_count, access.origin_address, access.displacement
            for first, count in ((0, half), (half, whole - half)):
                access.origin_address, access.displacement = address + 8 * first, displacement + first * self.step
                access.origin_count = access.target_count = count
                super().get(access)
                super().flush(target, True)
                self.let_others()
        return super().unlock(target)

    @property
    def step(self) -> int:
        return 8 if self.window.flavor == DYNAMIC else 1

    def read(self) -> None:
        late, self.late = self.late, ()
        for access in late:
            super().get(access)


class SharedExcludes(Breach):
    def lock(self, target, kind, assertion) -> int:
        return super().lock(target, EXCLUSIVE if kind == SHARED else kind, assertion)


class ForgetsToDetach(Breach):
    def detach(self, address) -> int:
        return 0


class Talks(Breach):
    def free(self) -> int:
        print("the window is free")
        return super().free()
