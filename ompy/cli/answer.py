"""What each rank of `ompy explain`'s job runs: rank 0 prints the answer, the others are there to be reached."""

from __future__ import annotations

import sys

import ompy
from ompy import MPI
from ompy.cli.tables import show
from ompy.core.errors import MPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.runtime.explain import Explanation


def rows(told: Sequence[Explanation]) -> list[tuple[str, str, str, str]]:
    words = {True: "chosen", False: "-"}
    return [(it.component, words[it.chosen], "" if it.priority is None else str(it.priority), it.reason) for it in told]


def main(arguments: Sequence[str]) -> int:
    """`peer K`, `collective NAME BYTES`, or `file PATH`."""
    world = MPI.COMM_WORLD
    if world.rank != 0 and arguments[0] != "file":
        return 0
    try:
        if arguments[0] == "file":
            told = ompy.explain_file(arguments[1])
            title = f"{arguments[1]}, opened by {world.size} ranks"
        elif arguments[0] == "peer":
            told = ompy.explain_peer(int(arguments[1]))
            title = f"btl components, from rank 0 to rank {arguments[1]} of {world.size}"
        else:
            name, nbytes = arguments[1], int(arguments[2])
            told = ompy.explain_collective(name, nbytes)
            title = f"coll components, {name} of {nbytes} bytes on {world.size} ranks"
    except MPIError as error:
        if world.rank == 0:
            print(f"ompy explain: {error.detail}", file=sys.stderr)
        return int(world.rank == 0)
    if world.rank != 0:
        return 0
    show(title, ("component", "verdict", "priority", "reason"), rows(told))
    return 0 if any(it.chosen for it in told) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
