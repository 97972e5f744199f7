"""ompy: an MPI in Python whose every moving part is a component.  The MPI itself is `ompy.MPI`; importing that starts it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.explain import Explanation


def explain_peer(rank: int) -> list[Explanation]:
    """Which transports lead to a rank of the world, and why: one entry for each `btl` component that is installed.

    Starts MPI if `ompy.MPI` has not been imported.  Raises MPIError(ERR_RANK) when there is no such rank.
    """
    import ompy.MPI
    from ompy.runtime.explain import explain_peer as explain

    return explain(rank)


def explain_collective(function: str, nbytes: int) -> list[Explanation]:
    """Which component carries out a collective on the world, and why, then its algorithms.

    Parameters:
        function: `allreduce`, `bcast`, ...
        nbytes: of a block: of the message of one rank.

    Starts MPI if `ompy.MPI` has not been imported.  Raises MPIError(ERR_ARG) for a name that is no collective's.
    """
    import ompy.MPI
    from ompy.mpi.environment import instance
    from ompy.runtime.explain import explain_collective as explain

    return explain(function, nbytes, instance().world)


def explain_file(path: str) -> list[Explanation]:
    """Which components serve a file that the world opens to read, and why.

    To be called by all ranks of the world.  Starts MPI if `ompy.MPI` has not been imported.  Raises MPIError for a file that
    can't be opened.
    """
    import ompy.MPI
    from ompy.mpi.environment import instance
    from ompy.runtime.explain import explain_file as explain

    return explain(path, instance().world)


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("ompy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
