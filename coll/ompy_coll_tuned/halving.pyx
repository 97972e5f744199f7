# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Recursive doubling and halving (Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, 4.1 and 4.4).  See `halving.pxd`."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined

cdef Typemap byte = predefined(BASIC_BYTE)


cdef Folding fold_ranks(Communicator comm):
    cdef Folding folding
    folding.count = 1
    while 2 * folding.count <= comm.size:
        folding.count *= 2
    folding.folded = comm.size - folding.count
    folding.own = -1 if comm.rank < 2 * folding.folded and not comm.rank & 1 else new_rank(&folding, comm.rank)
    return folding


cdef int reduce_by_doubling(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                            Operation operation, Communicator comm) except -1:
    """Partners 1, 2, 4, ... new ranks away swap what they have gathered, and both reduce it, the lower one's on the left."""
    cdef Folding folding = fold_ranks(comm)
    cdef size_t gathered = result, other
    cdef int bit = 1, partner
    if folding.own < 0:
        schedule.send(own, count, typemap, comm.rank + 1)
        schedule.next_round()
        return schedule.recv(result, count, typemap, comm.rank + 1)
    if own != result:
        schedule.copy(own, count, typemap, gathered, count, typemap)
    if comm.size == 1:
        return 0
    other = schedule.scratch(count, typemap)
    if stands_for_two(&folding, comm.rank):
        schedule.recv(other, count, typemap, comm.rank - 1)
        schedule.next_round()
        schedule.reduce(other, gathered, count, typemap, operation)
    while bit < folding.count:
        partner = old_rank(&folding, folding.own ^ bit)
        schedule.send(gathered, count, typemap, partner)
        schedule.recv(other, count, typemap, partner)
        schedule.next_round()
        if folding.own & bit:
            schedule.reduce(other, gathered, count, typemap, operation)
        else:
            schedule.reduce(gathered, other, count, typemap, operation)
            gathered, other = other, gathered
        bit <<= 1
    if gathered != result:
        schedule.copy(gathered, count, typemap, result, count, typemap)
    if stands_for_two(&folding, comm.rank):
        schedule.send(result, count, typemap, comm.rank - 1)
    return 0


cdef int reduce_halves(Schedule schedule, Folding *folding, size_t own, size_t gathered, Py_ssize_t *starts, Typemap typemap,
                       Operation operation, Communicator comm) except -1:
    """In each round partners give each other the half that is the other's, and the halves get shorter.

        4 new ranks, on 1      keeps 0 1 of 0 1 2 3 (partner 3)      keeps 1 of 0 1 (partner 0)
    """
    cdef Py_ssize_t extent = typemap.extent, length = starts[folding.count]
    cdef int bit = folding.count // 2, low = 0, keep, give, partner
    if folding.own < 0:
        return schedule.send(own, length, typemap, comm.rank + 1)
    if stands_for_two(folding, comm.rank):
        own = take_in(schedule, own, gathered, 0, length, typemap, operation, comm.rank - 1)
    elif folding.count == 1 and own != gathered:
        schedule.copy(own, length, typemap, gathered, length, typemap)
    while bit:
        partner = old_rank(folding, folding.own ^ bit)
        keep = low + bit if folding.own & bit else low
        give = low if folding.own & bit else low + bit
        schedule.send(own + starts[give] * extent, starts[give + bit] - starts[give], typemap, partner)
        own = take_in(schedule, own, gathered, starts[keep] * extent, starts[keep + bit] - starts[keep], typemap, operation,
                      partner)
        low = keep
        bit >>= 1
    return 0


cdef size_t take_in(Schedule schedule, size_t own, size_t gathered, Py_ssize_t offset, Py_ssize_t count, Typemap typemap,
                    Operation operation, int peer) except? 0:
    """A peer's elements and one's own, at an offset of both memories, reduced into `gathered`, where all goes on."""
    cdef size_t incoming
    if own != gathered:
        schedule.recv(gathered + offset, count, typemap, peer)
        schedule.next_round()
        schedule.reduce(own + offset, gathered + offset, count, typemap, operation)
    else:
        incoming = schedule.scratch(count, typemap)
        schedule.recv(incoming, count, typemap, peer)
        schedule.next_round()
        schedule.reduce(incoming, gathered + offset, count, typemap, operation)
    return gathered


cdef int share_parts(Schedule schedule, Folding *folding, size_t gathered, Py_ssize_t *starts, Typemap typemap) except -1:
    """The way back: partners swap all parts that they have, 1, 2, 4, ..."""
    cdef int bit = 1, mine, other, partner
    while bit < folding.count and folding.own >= 0:
        mine = folding.own & ~(bit - 1)
        other = mine ^ bit
        partner = old_rank(folding, folding.own ^ bit)
        schedule.send(gathered + starts[mine] * typemap.extent, starts[mine + bit] - starts[mine], typemap, partner)
        schedule.recv(gathered + starts[other] * typemap.extent, starts[other + bit] - starts[other], typemap, partner)
        schedule.next_round()
        bit <<= 1
    return 0


cdef Py_ssize_t *make_starts(Schedule schedule, Folding *folding) except NULL:
    return <Py_ssize_t *> schedule.scratch((folding.count + 1) * <Py_ssize_t> sizeof(Py_ssize_t), byte)
