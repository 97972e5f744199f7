"""Virtual topologies (MPI-4.1, chapter 8): what a communicator's `attributes["topology"]` holds.

Each has `in_neighbors` and `out_neighbors`, lists of ranks with PROC_NULL where there is none, and `is_cartesian`; the
neighbourhood collectives need no more.
"""

from __future__ import annotations

import operator

from ompy.core.errors import ERR_ARG, ERR_DIMS, ERR_RANK, ERR_TOPOLOGY, MPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CART", "DIST_GRAPH", "GRAPH", "UNWEIGHTED", "WEIGHTS_EMPTY", "Compute_dims"]

PROC_NULL = -2

# Kinds of topology, numbered as in Open MPI's mpi.h.
CART = 1
GRAPH = 2
DIST_GRAPH = 3

UNWEIGHTED = 2
WEIGHTS_EMPTY = 3


class Cartesian:
    """A grid, row-major: the last coordinate changes fastest (MPI-4.1, 8.5.1).

        dims (2, 3)        0  1  2          rank 4 has coordinates (1, 1), and neighbours
                           3  4  5          (1, PROC_NULL) in dimension 0, (3, 5) in dimension 1

    Parameters:
        dims: size of each dimension.
        periods: whether each dimension is a ring.
        rank: whose neighbours are asked for.
    """

    kind = CART
    is_cartesian = True

    def __init__(self, dims: list[int], periods: list[bool], rank: int) -> None:
        self.dims = dims
        self.periods = periods
        self.rank = rank
        self.size = product(dims)
        self.place: list[int] | None = None
        self.neighbors: list[int] | None = None

    @property
    def coords(self) -> list[int]:
        if self.place is None:
            self.place = self.coords_of(self.rank)
        return self.place

    @property
    def in_neighbors(self) -> list[int]:
        if self.neighbors is None:
            self.neighbors = [peer for axis in range(len(self.dims)) for peer in self.shift(axis, 1)]
        return self.neighbors

    @property
    def out_neighbors(self) -> list[int]:
        return self.in_neighbors

    def coords_of(self, rank: int) -> list[int]:
        """Coordinates of a rank.  Errors: ERR_RANK."""
        if not 0 <= rank < self.size:
            raise MPIError(ERR_RANK, f"rank: 0 to {self.size - 1} expected, got {rank}")
        coords = []
        for extent in reversed(self.dims):
            rank, coordinate = divmod(rank, extent)
            coords.append(coordinate)
        return coords[::-1]

    def rank_of(self, coords: Sequence[int]) -> int:
        """Rank at these coordinates, which wrap around in a periodic dimension.  Errors: ERR_ARG."""
        if len(coords) != len(self.dims):
            raise ValueError(f"coords: {len(self.dims)} coordinates expected, got {len(coords)}")
        rank = 0
        for axis, (extent, coordinate) in enumerate(zip(self.dims, coords, strict=True)):
            if not self.periods[axis] and not 0 <= coordinate < extent:
                raise MPIError(ERR_ARG, f"coords: 0 to {extent - 1} expected in dimension {axis}, got {coordinate}")
            rank = rank * extent + coordinate % extent
        return rank

    def shift(self, axis: int, displacement: int) -> tuple[int, int]:
        """(source, destination) of a shift along an axis, PROC_NULL over an edge (MPI-4.1, 8.5.6).  Errors: ERR_DIMS."""
        if not 0 <= axis < len(self.dims):
            raise MPIError(ERR_DIMS, f"direction: 0 to {len(self.dims) - 1} expected, got {axis}")
        return self.stepped(axis, -displacement), self.stepped(axis, displacement)

    def split(self, stays: list[bool]) -> tuple[Cartesian, list[int], int, int]:
        """The subgrid of the dimensions that stay, around this rank.

        Returns:
            it, the ranks here of those in it, how many such subgrids there are, and which of them it is.
        """
        dims, periods, rank, parts, number = [], [], 0, 1, 0
        ranks, step = [self.rank], self.size
        for extent, ring, coordinate, remains in zip(self.dims, self.periods, self.coords, stays, strict=True):
            step //= extent
            if remains:
                dims.append(extent)
                periods.append(ring)
                rank = rank * extent + coordinate
                ranks = [other + (place - coordinate) * step for other in ranks for place in range(extent)]
            else:
                parts *= extent
                number = number * extent + coordinate
        return Cartesian(dims, periods, rank), ranks, parts, number

    def stepped(self, axis: int, displacement: int) -> int:
        coords = list(self.coords)
        coords[axis] += displacement
        if not self.periods[axis] and not 0 <= coords[axis] < self.dims[axis]:
            return PROC_NULL
        return self.rank_of(coords)


class Graph:
    """A graph that every rank knows whole (MPI-4.1, 8.5.3).

    Parameters:
        index: how many edges the nodes up to each one have, together.
        edges: neighbours of node 0, then of node 1, ...
        rank: whose neighbours are asked for.
    """

    kind = GRAPH
    is_cartesian = False

    def __init__(self, index: list[int], edges: list[int], rank: int) -> None:
        self.index = index
        self.edges = edges
        self.in_neighbors = self.out_neighbors = self.neighbors_of(rank)

    def neighbors_of(self, rank: int) -> list[int]:
        """Neighbours of a node.  Errors: ERR_RANK."""
        if not 0 <= rank < len(self.index):
            raise MPIError(ERR_RANK, f"rank: 0 to {len(self.index) - 1} expected, got {rank}")
        return self.edges[self.index[rank - 1] if rank else 0 : self.index[rank]]


class DistributedGraph:
    """A graph of which each rank knows its own edges (MPI-4.1, 8.5.4).

    Parameters:
        sources, destinations: neighbours of this rank.
        source_weights, destination_weights: one each, or None for both when the graph is not weighted.
    """

    kind = DIST_GRAPH
    is_cartesian = False

    def __init__(
        self,
        sources: list[int],
        destinations: list[int],
        source_weights: list[int] | None,
        destination_weights: list[int] | None,
    ) -> None:
        self.in_neighbors = sources
        self.out_neighbors = destinations
        self.source_weights = source_weights
        self.destination_weights = destination_weights

    @property
    def weighted(self) -> bool:
        return self.source_weights is not None


def product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def checked_grid(dims: Sequence[int], periods: Sequence[bool] | bool | None, size: int) -> tuple[list[int], list[bool]]:
    """Arguments of Create_cart as lists.  Errors: ERR_DIMS; ValueError when the lengths differ."""
    extents = [operator.index(extent) for extent in dims]
    if periods is None or isinstance(periods, bool):
        rings = [bool(periods)] * len(extents)
    else:
        rings = [bool(period) for period in periods]
    if len(rings) != len(extents):
        raise ValueError(f"periods: {len(extents)} expected, one a dimension, got {len(rings)}")
    if any(extent <= 0 for extent in extents):
        raise MPIError(ERR_DIMS, f"dims: positive numbers expected, got {extents}")
    if product(extents) > size:
        raise MPIError(ERR_DIMS, f"dims: a grid {extents} has more than the communicator's {size} ranks")
    return extents, rings


def checked_graph(index: Sequence[int], edges: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """Arguments of Create_graph as lists.  A leading 0 in `index` is left out, as mpi4py allows it.  Errors: ERR_ARG."""
    ends, targets = [operator.index(end) for end in index], [operator.index(edge) for edge in edges]
    if ends and ends[0] == 0 and len(ends) > 1:
        del ends[0]
    if len(ends) > size:
        raise MPIError(ERR_ARG, f"index: a graph of {len(ends)} nodes has more than the communicator's {size} ranks")
    if ends != sorted(ends) or (ends and ends[0] < 0):
        raise MPIError(ERR_ARG, f"index: numbers that don't decrease expected, got {ends}")
    if (ends[-1] if ends else 0) != len(targets):
        raise MPIError(ERR_ARG, f"edges: {ends[-1] if ends else 0} expected, as the end of index says, got {len(targets)}")
    if any(not 0 <= edge < len(ends) for edge in targets):
        raise MPIError(ERR_ARG, f"edges: nodes 0 to {len(ends) - 1} expected, got {targets}")
    return ends, targets


def checked_weights(weights: object, count: int, name: str) -> list[int] | None:
    """A weights argument: None for UNWEIGHTED.  Errors: ValueError when the number of weights is wrong."""
    if weights is None or weights is UNWEIGHTED or (isinstance(weights, int) and weights == UNWEIGHTED):
        return None
    if isinstance(weights, int) and weights == WEIGHTS_EMPTY:
        if count:
            raise ValueError(f"{name}: WEIGHTS_EMPTY given for {count} edges")
        return []
    values = [operator.index(weight) for weight in weights]  # type: ignore[attr-defined]
    if len(values) != count:
        raise ValueError(f"{name}: {count} expected, one an edge, got {len(values)}")
    if any(weight < 0 for weight in values):
        raise MPIError(ERR_ARG, f"{name}: numbers that aren't negative expected, got {values}")
    return values


def checked_ranks(ranks: Sequence[int] | None, size: int, name: str) -> list[int]:
    """Ranks of a communicator as a list; None for none.  Errors: ERR_RANK."""
    values = [] if ranks is None else [operator.index(rank) for rank in ranks]
    for rank in values:
        if not 0 <= rank < size and rank != PROC_NULL:
            raise MPIError(ERR_RANK, f"{name}: ranks from 0 to {size - 1} expected, got {rank}")
    return values


def repeated(ranks: list[int], degrees: Sequence[int], edges: int) -> list[int]:
    """Each rank as often as its degree says.

    Errors: ERR_ARG; ValueError when there are not as many degrees as ranks, or they do not make so many edges.
    """
    counts = [operator.index(degree) for degree in degrees]
    if len(counts) != len(ranks):
        raise ValueError(f"degrees: {len(ranks)} expected, one a source, got {len(counts)}")
    if any(count < 0 for count in counts):
        raise MPIError(ERR_ARG, f"degrees: numbers that aren't negative expected, got {counts}")
    if sum(counts) != edges:
        raise ValueError(f"destinations: {sum(counts)} expected, as degrees say, got {edges}")
    return [rank for rank, count in zip(ranks, counts, strict=True) for _ in range(count)]


def topology_of(attributes: dict[str, object], kind: type, name: str) -> object:
    """The topology of a communicator, which must be of a kind.  Errors: ERR_TOPOLOGY."""
    topology = attributes.get("topology")
    if not isinstance(topology, kind):
        raise MPIError(ERR_TOPOLOGY, f"a {name} communicator expected")
    return topology


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """A grid for so many processes, its dimensions as close to each other as can be (MPI-4.1, 8.5.2).

    Parameters:
        nnodes: number of processes.
        dims: number of dimensions; or their sizes, 0 where one is to be chosen.

    Returns:
        the sizes; the chosen ones don't increase.

    Raises:
        Exception: ERR_DIMS when `nnodes` is no multiple of the sizes given.
    """
    from ompy.mpi.exceptions import Exception as MPIException

    extents = [0] * dims if isinstance(dims, int) else [operator.index(extent) for extent in dims]
    if nnodes <= 0:
        raise MPIException(ERR_DIMS, f"nnodes: a positive number expected, got {nnodes}")
    if any(extent < 0 for extent in extents):
        raise MPIException(ERR_DIMS, f"dims: numbers that aren't negative expected, got {extents}")
    given = product([extent for extent in extents if extent])
    free = extents.count(0)
    if nnodes % given or (not free and given != nnodes):
        raise MPIException(ERR_DIMS, f"dims: no grid {extents} has {nnodes} nodes")
    chosen = balanced(nnodes // given, free)
    return [extent or chosen.pop(0) for extent in extents]


def balanced(number: int, count: int) -> list[int]:
    """`count` factors of a number, largest first, with the smallest possible difference between first and last."""
    if count == 0:
        return []
    if count == 1:
        return [number]
    best: list[int] = []
    for largest in divisors(number):
        if largest**count < number:
            continue
        rest = balanced(number // largest, count - 1)
        if rest[0] <= largest and (not best or largest - rest[-1] < best[0] - best[-1]):
            best = [largest, *rest]
    return best


def divisors(number: int) -> list[int]:
    small = [factor for factor in range(1, int(number**0.5) + 1) if number % factor == 0]
    return small + [number // factor for factor in reversed(small) if factor * factor != number]
