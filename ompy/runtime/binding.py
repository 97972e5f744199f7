"""Which processors each rank may run on.

    4 processors, policy "share":   2 ranks -> {0,1} {2,3}     3 ranks -> {0} {1} {2}     5 ranks -> unbound
    4 processors, policy "core":    2 ranks -> {0} {1}         5 ranks -> unbound, since no rank can have its own

Threads of one rank (a BLAS library's, say) keep all the processors that would idle otherwise, and ranks do not wander.
"""

from __future__ import annotations

POLICIES = ("share", "core", "none")


def processor_sets(ranks: int, processors: set[int], policy: str) -> list[set[int] | None]:
    """One set of processors for each rank, None for wherever the system likes.

    Parameters:
        ranks: number of ranks on this host.
        processors: what this job may use.
        policy: one of `POLICIES`.
    """
    ordered = sorted(processors)
    if policy == "none" or ranks > len(ordered) or (ranks == 1 and policy == "share"):
        return [None] * ranks
    width = len(ordered) // ranks if policy == "share" else 1
    return [set(ordered[rank * width : (rank + 1) * width]) for rank in range(ranks)]
