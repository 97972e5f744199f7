"""An MPI program in a job of the environment's."""

from __future__ import annotations

import sys

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.rte.rank import RteProgram
from ompy.testing.conformance.wire import LEAVING

check = Collection()

LENGTHS = (0, 1, 5000, 300_000)


@check("finalize", "identity", "publish", last=True, exits=0)
def a_program_finds_its_peers_and_ends(rank: RteProgram) -> None:
    """Every rank hears of every other one, by all transports that serve."""
    comm, setting = rank.comm, rank.wire.setting
    if rank.size not in (1, setting.size):
        raise Breach("identity", f"COMM_WORLD has {rank.size} ranks, of {setting.size} that were started")
    for length in LENGTHS:
        rank.alive()
        sent = [rank.content(rank.rank, peer, length, length) for peer in range(rank.size)]
        for peer, got in enumerate(comm.alltoall(sent)):
            if got != rank.content(peer, rank.rank, length, length):
                raise Breach("publish", f"what rank {peer} sent came as something else")
    part = comm.Split(rank.rank % 2)
    part.Barrier()
    part.Free()
    rank.alive()
    rank.wire.say(LEAVING)
    rank.MPI.Finalize()
    sys.exit(0)
