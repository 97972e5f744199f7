"""What a program meets in a job that is watched."""

from __future__ import annotations

import sys

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.hook.rank import HookRank
from ompy.testing.conformance.wire import LEAVING

check = Collection()

LENGTHS = (0, 1, 5000, 300_000)


@check("initialized")
def bring_up_is_over_once(rank: HookRank) -> None:
    if rank.came != 1:
        raise Breach("initialized", f"`ompy_initialized` came {rank.came} times")


@check("quiet")
def the_standard_output_is_the_programs(rank: HookRank) -> None:
    if rank.printed:
        raise Breach("quiet", f"while MPI came up, {rank.printed!r} was written to the standard output")


@check("process")
def what_is_the_programs_own_is_as_before(rank: HookRank) -> None:
    if rank.changed:
        raise Breach("process", f"`ompy_initialized` has changed {', '.join(rank.changed)}")


@check("messages")
def messages_go_as_they_do(rank: HookRank) -> None:
    """Nothing is there that nobody has sent, in the world and in new communicators."""
    comm = rank.comm
    part = comm.Split(rank.rank % 2)
    for where in (comm, part):
        for length in LENGTHS:
            rank.alive()
            sent = [rank.content(rank.rank, peer, length, length) for peer in range(where.size)]
            got = where.alltoall(sent)
            others = where.allgather(rank.rank)
            if any(got[place] != rank.content(other, where.rank, length, length) for place, other in enumerate(others)):
                raise Breach("messages", f"of messages of {length} bytes others came")
        where.Barrier()
        status = rank.MPI.Status()
        if where.Iprobe(rank.MPI.ANY_SOURCE, rank.MPI.ANY_TAG, status):
            raise Breach(
                "messages", f"a message from rank {status.source} is there, with tag {status.tag}, which nobody has sent"
            )
    part.Free()


@check("end", last=True, exits=0)
def the_job_ends(rank: HookRank) -> None:
    """Nothing holds the program up."""
    rank.wire.say(LEAVING)
    rank.meet()
    rank.MPI.Finalize()
    sys.exit(0)
