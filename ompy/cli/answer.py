"""What each rank of `ompy explain`'s job runs: rank 0 prints the answer, the others are there to be reached."""

from __future__ import annotations

import sys

from ompy.cli.tables import show
from ompy.core.errors import MPIError
from ompy.runtime.explain import Explanation, explain_collective, explain_peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def rows(told: Sequence[Explanation]) -> list[tuple[str, str, str, str]]:
    return [
        (it.component, "chosen" if it.chosen else "-", "" if it.priority is None else str(it.priority), it.reason) for it in told
    ]


def main(arguments: Sequence[str]) -> int:
    """`peer K`, or `collective NAME BYTES`."""
    from ompy import MPI
    from ompy.mpi.environment import instance

    world = instance().world
    try:
        if arguments[0] == "peer":
            told = explain_peer(int(arguments[1])) if world.rank == 0 else []
            title = f"btl components, from rank 0 to rank {arguments[1]} of {world.size}"
        else:
            name, nbytes = arguments[1], int(arguments[2])
            told = explain_collective(name, nbytes, world) if world.rank == 0 else []
            title = f"coll components, {name} of {nbytes} bytes on {world.size} ranks"
    except MPIError as error:
        print(f"ompy explain: {error}", file=sys.stderr)
        return 1
    finally:
        MPI.COMM_WORLD.Barrier()
    if world.rank == 0:
        show(title, ("component", "verdict", "priority", "reason"), rows(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
