"""emcee over schwimmbad's MPIPool, as emcee's documentation does it; the chain is the one that a single process samples."""

import sys

import emcee
import numpy as np
from mpi4py import MPI
from schwimmbad import SerialPool
from schwimmbad.mpi import MPIPool

WALKERS, DIMENSIONS, STEPS = 32, 5, 150


def log_probability(theta: np.ndarray) -> float:
    return -0.5 * float(np.sum(theta**2))


def chain(pool: object) -> np.ndarray:
    np.random.seed(42)
    start = np.random.randn(WALKERS, DIMENSIONS)
    sampler = emcee.EnsembleSampler(WALKERS, DIMENSIONS, log_probability, pool=pool)
    sampler.run_mcmc(start, STEPS)
    return sampler.get_chain()


if MPI.COMM_WORLD.size == 1:
    chain(SerialPool())
    sys.exit(0)
with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    assert np.array_equal(chain(pool), chain(SerialPool()))
