"""The algorithms of each collective: by the two levels, or by none."""

from __future__ import annotations

from ompy.mca.coll_rules import Algorithm, Catalogue

FLAT = "flat"
LEFT = Algorithm(FLAT, "hosts play no part: by the next component")


def by_levels(summary: str, *, ordered: bool = True, segmented: bool = False) -> tuple[Algorithm, ...]:
    """The two ways of a function."""
    return (Algorithm("two_level", summary, ordered=ordered, otherwise=FLAT, segmented=segmented), LEFT)


CATALOGUE = Catalogue(
    "han",
    {
        "barrier": by_levels("all of a host are here, all hosts are, and each host hears of it"),
        "bcast": by_levels("from host to host, and within each", segmented=True),
        "reduce": by_levels("within each host, then from host to host"),
        "allreduce": by_levels("within each host, among hosts, and the result to all of each", segmented=True),
        "gather": by_levels("within each host, then the blocks of each in one message"),
        "scatter": by_levels("the blocks of each host in one message, then within it"),
        "allgather": by_levels("within each host, among hosts the blocks of each, and everything to all of each"),
        "alltoall": by_levels("one message from each host to each, collected and shared out within"),
    },
)
