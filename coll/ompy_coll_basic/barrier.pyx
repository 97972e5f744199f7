# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Barriers (MPI-4.1, 6.3): messages of no bytes."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy_coll_basic.builder cimport builder

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Rank 0 hears from all, then tells all."""
    cdef int rank
    if comm.rank:
        schedule.send(0, 0, byte, 0)
        schedule.next_round()
        schedule.recv(0, 0, byte, 0)
        return 0
    for rank in range(1, comm.size):
        schedule.recv(0, 0, byte, rank)
    schedule.next_round()
    for rank in range(1, comm.size):
        schedule.send(0, 0, byte, rank)
    return 0


cdef int logarithmic(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """Up a binomial tree to rank 0, then down.

    Rank r's parent is r without its lowest set bit:   0 <- 1, 0 <- 2 <- 3, 0 <- 4 <- 5, 4 <- 6 <- 7
    """
    cdef int lowest = comm.rank & -comm.rank if comm.rank else comm.size
    cdef int bit = 1
    while bit < lowest and comm.rank + bit < comm.size:
        schedule.recv(0, 0, byte, comm.rank + bit)
        bit <<= 1
    if comm.rank:
        schedule.next_round()
        schedule.send(0, 0, byte, comm.rank - lowest)
        schedule.recv(0, 0, byte, comm.rank - lowest)
    schedule.next_round()
    while bit > 1:
        bit >>= 1
        schedule.send(0, 0, byte, comm.rank + bit)
    return 0


cdef int between_groups(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    """A rank may go on when all of the *other* group are here, so that is what it hears, by way of the two ranks 0.

        all of A -> B0      B0 knows that A is here, and says so to A0;  likewise A0 to B0
        B0 -> all of A      when A0 has told it that B is here
    """
    cdef int rank
    schedule.send(0, 0, byte, 0)
    if comm.rank == 0:
        for rank in range(comm.remote_size):
            schedule.recv(0, 0, byte, rank)
        schedule.next_round()
        schedule.send(0, 0, byte, 0)
        schedule.recv(0, 0, byte, 0)
        schedule.next_round()
        for rank in range(comm.remote_size):
            schedule.send(0, 0, byte, rank)
    schedule.recv(0, 0, byte, 0)
    return 0


BUILDERS = {
    ("barrier", "linear"): builder(linear),
    ("barrier", "logarithmic"): builder(logarithmic),
    ("barrier inter", "linear"): builder(between_groups),
}
