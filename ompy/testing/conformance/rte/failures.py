"""A job that goes on without a rank that has failed."""

from __future__ import annotations

import os
import signal

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.rte.rank import RteRank

check = Collection()


@check("failures", ranks=2, last=True)
def the_others_hear_of_a_rank_that_has_failed(rank: RteRank) -> None:
    """Once, and meet without it."""
    rank.fence(**{"kit.before": b"well"})
    rank.leave()
    lost = rank.size - 1
    if rank.rank == lost:
        os.kill(os.getpid(), signal.SIGKILL)
    told: list[tuple[str, int, str]] = []

    def heard() -> bool:
        told.extend(rank.rte.listen())
        return bool(told)

    if not rank.until(heard):
        raise Breach("failures", f"rank {lost} was killed, and {rank.patience:g} s later `listen` has not told of it")
    rank.fence(**{"kit.after": b"without it"})
    for peer in range(lost):
        if rank.rte.get(peer, "kit.after") != b"without it":
            raise Breach("failures", f"what rank {peer} publishes after the loss of a rank does not come")
    told += rank.rte.listen()
    if [(job, failed) for job, failed, _ in told] != [(rank.rte.job, lost)] or not told[0][2]:
        raise Breach("failures", f"rank {lost} alone has failed, and `listen` has told of {told}")
    rank.rte.finalize()
