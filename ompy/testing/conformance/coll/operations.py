"""Reductions with an operation of the program's own: 2 by 2 matrices, whose product depends on the order."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from functools import reduce

from ompy.mca.params import registry
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.calls import REDUCTIONS
from ompy.testing.conformance.coll.rank import AUTO, CollRank

check = Collection()

MODULUS = 10007
MATRICES = 3  # of each rank, or of each block
Matrix = tuple[int, ...]


def product(left: Sequence[int], right: Sequence[int]) -> Matrix:
    a, b, c, d = left
    e, f, g, h = right
    return tuple(it % MODULUS for it in (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h))


def multiply(input: memoryview, inout: memoryview, datatype: object) -> None:
    """As MPI calls it: `inout[i] = input[i] op inout[i]`."""
    left, right = memoryview(input).cast("B").cast("i"), memoryview(inout).cast("B").cast("i")
    if len(left) != len(right) or len(left) % 4:
        raise ValueError(f"the operation was given {len(left)} and {len(right)} numbers, which are no whole matrices")
    for at in range(0, len(left), 4):
        right[at : at + 4] = array("i", product(left[at : at + 4], right[at : at + 4]))


def matrices(rank: int, count: int) -> list[Matrix]:
    shared = random.Random(rank)
    return [tuple(shared.randrange(1, 100) for _ in range(4)) for _ in range(count)]


def flat(found: Sequence[Matrix]) -> array[int]:
    return array("i", [number for matrix in found for number in matrix])


@check("order")
def a_program_s_own_operation_keeps_the_order(rank: CollRank) -> None:
    """Through MPI, with each algorithm forced for the communicator's functions."""
    MPI = rank.MPI
    matrix = MPI.INT.Create_contiguous(4).Commit()
    operation = MPI.Op.Create(multiply, commute=False)
    for function in REDUCTIONS:
        for algorithm in rank.algorithms.get(function, ()):
            for size in range(1, rank.size + 1):
                registry.set(f"coll_{function}_algorithm", algorithm)
                comm = rank.comm.Split(0 if rank.rank < size else MPI.UNDEFINED)
                registry.set(f"coll_{function}_algorithm", AUTO)
                if comm != MPI.COMM_NULL:
                    call(rank, comm, function, matrix, operation, f"{function} ({algorithm}) of matrices on {size} ranks")
                    comm.Free()
        rank.alive()
    operation.Free()
    matrix.Free()


def call(rank: CollRank, comm: object, function: str, matrix: object, operation: object, words: str) -> None:
    size, own = comm.size, comm.rank  # type: ignore[attr-defined]
    blocks = size if function.startswith("reduce_scatter") else 1
    everybody = [matrices(source, MATRICES * blocks) for source in range(size)]
    first = own * MATRICES if blocks > 1 else 0
    involved = {"scan": own + 1, "exscan": own}.get(function, size)
    send, recv = flat(everybody[own]), array("i", bytes(16 * MATRICES))
    arguments: dict[str, object] = {"op": operation}
    if function == "reduce":
        arguments["root"] = size - 1
    if function == "reduce_scatter":
        arguments["recvcounts"] = [MATRICES] * size
    count = MATRICES * blocks if function == "reduce_scatter" else MATRICES
    getattr(comm, function.capitalize())([send, count, matrix], [recv, MATRICES, matrix], **arguments)
    if involved and (function != "reduce" or own == size - 1):
        columns = zip(*(source[first : first + MATRICES] for source in everybody[:involved]), strict=True)
        expected = flat([reduce(product, column) for column in columns])
        if recv != expected:
            raise Breach("order", f"{words}: rank {own} has {recv.tolist()[:8]}, not {expected.tolist()[:8]}")
