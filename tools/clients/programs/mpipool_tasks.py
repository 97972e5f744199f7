"""mpipool as its documentation uses it: futures, a map, an exception on a worker, and large arguments."""

import sys

import numpy
from mpi4py import MPI
from mpipool import MPIExecutor


def power(number: int) -> int:
    return number**2


def total(values: numpy.ndarray) -> float:
    return float(values.sum())


def fail(number: int) -> None:
    raise ValueError(f"task {number}")


if MPI.COMM_WORLD.size == 1:
    sys.exit(0)
with MPIExecutor() as pool:
    pool.workers_exit()
    futures = [pool.submit(power, number) for number in range(2000)]
    assert [future.result() for future in futures] == [number**2 for number in range(2000)]
    arrays = [numpy.full(100_000, number, float) for number in range(20)]
    assert list(pool.map(total, arrays)) == [100_000.0 * number for number in range(20)]
    problem = pool.submit(fail, 7).exception()
    assert "task 7" in repr(problem) + repr(problem.__cause__)
MPI.COMM_WORLD.Barrier()
