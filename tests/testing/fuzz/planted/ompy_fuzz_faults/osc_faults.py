"""Ways to get one-sided communication wrong, over osc/pt2pt."""

from __future__ import annotations

from ompy_osc_pt2pt.module import Pt2pt

from ompy.mca.component import Context, Offer, Refusal


def offer(context: Context, fault: str) -> Offer | Refusal:
    if context.window is None:
        return Refusal("it serves windows")
    return Offer(modules=[(globals()[fault] if fault else Pt2pt)(context.window, 4096)], priority=90)


class Osc(Pt2pt):
    pass


class FenceClosesEarly(Osc):
    """Long gets are carried out in the epoch after theirs."""

    late = ()

    def get(self, access):
        if access.requested or access.origin_count < 100:
            return super().get(access)
        self.late = (*self.late, access)
        return None

    def fence(self, assertion) -> int:
        super().fence(assertion)
        late, self.late = self.late, ()
        for access in late:
            super().get(access)
        return 0

    def unlock(self, target) -> int:
        self.now()
        return super().unlock(target)

    def unlock_all(self) -> int:
        self.now()
        return super().unlock_all()

    def flush(self, target, local) -> int:
        self.now()
        return super().flush(target, local)

    def complete(self) -> int:
        self.now()
        return super().complete()

    def now(self) -> None:
        late, self.late = self.late, ()
        for access in late:
            super().get(access)


class UnlockDoesNotWait(Osc):
    """Puts of a passive epoch are carried out in the next call."""

    late = ()

    def put(self, access):
        self.may_access(access, access.origin_count * access.origin_type.size)
        if access.requested or self.kept is None:
            return super().put(access)
        self.late = (*self.late, access)
        return None

    kept = None

    def lock(self, target, kind, assertion) -> int:
        super().lock(target, kind, assertion)
        self.kept = target
        for access in self.late:
            if access.target == target:
                super().put(access)
        self.late = tuple(it for it in self.late if it.target != target)
        return 0

    def unlock(self, target) -> int:
        self.kept = None
        return super().unlock(target)

    def free(self) -> int:
        self.late = ()
        return super().free()


class ExclusiveIsShared(Osc):
    def lock(self, target, kind, assertion) -> int:
        from ompy import MPI

        self.may_lock(target, kind)
        return super().lock(target, MPI.LOCK_SHARED, assertion)


class SumReplaces(Osc):
    """A second accumulate in an epoch overwrites the first."""

    def accumulate(self, access):
        return super().put(access) if access.origin_count > 1 and not access.requested else super().accumulate(access)


class FetchGivesTheNewValue(Osc):
    def get_accumulate(self, access):
        if access.origin_count == 1 and access.result_count == 1:
            super().accumulate(access)
            return super().get(self.fetching(access))
        return super().get_accumulate(access)

    def fetching(self, access):
        access.origin_address, access.origin_count, access.origin_type = (
            access.result_address, access.result_count, access.result_type,
        )  # fmt: skip
        return access


class WaitDoesNotWait(Osc):
    """A target leaves its exposure epoch when the first origin is ready."""

    def test(self) -> bool:
        super().test()
        return True


class DisplacementOfTheOrigin(Osc):
    """Accesses beyond the first slot land one element too far, where there is room."""

    def put(self, access):
        if access.displacement > 0 and access.target != self.window.communicator.rank and access.origin_count > 4:
            access.displacement -= 1
        return super().put(access)
