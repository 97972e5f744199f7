# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Who this process is: its run-time environment, its own two communicators, and processes as those of other jobs know them."""

from ompy.core.communicator cimport Communicator

from ompy.core.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.runtime.dpm import acquaintances

cdef Communicator world = None

# The run-time environment, and the two communicators that a process starts with; None before bring-up.
rte = None
own = None


def begin(instance) -> None:
    """Be the process of this bring-up from now on."""
    global rte, world, own
    rte, world, own = instance.rte, instance.world, instance.own


def world_communicator():
    """The core communicator behind COMM_WORLD, or None before bring-up."""
    return world


cdef tuple identity(int index):
    """A process as any other process knows it: (job, rank in its world)."""
    if index < world.size:
        return (rte.job, index)
    who = acquaintances.of(index)
    return (who.job, who.rank)


cdef int index_of(tuple who) except -1:
    job, rank = who
    if job == rte.job:
        return rank
    if who in acquaintances.indices:
        return acquaintances.indices[who]
    raise MPIError(ERR_UNSUPPORTED_OPERATION, f"rank {rank} of job {job} is unknown to this process: connect to its job first")
