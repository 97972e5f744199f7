# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Contexts: the numbers by which messages of one communicator are told from those of another.

A context id must be the same number in every member and unique in the universe.  Each process numbers the contexts that
it hands out; the leader of a new group (its rank 0) hands out the group's:

    | 0 | job's number + leader's world rank | leader's counter |       1, 35 and 28 bits

The job's number is drawn from its name, so that jobs which know nothing of each other can meet (`ompy/runtime/dpm`).

Where every rank knows who will be a member (Dup, grids and their subgrids), the members need not speak: a communicator has
contexts in reserve for those made from it, and its members take them in the order of their collective calls, which is the
same on all.  A communicator begins with a few; when they are used up, its leader broadcasts the first of a block of more.

    comm, context 16, in reserve 17 ... 23       Dup       17, in reserve nothing
                                                 Dup       18
    reserve empty: block 1040 ... 2063           Dup       1040, in reserve 1041 ... 1047
                                                 Dup       1048, in reserve 1049 ... 1055
"""

from libc.stdint cimport int64_t, uint64_t

from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport Communicator
from ompy.mca.agreement cimport share

from ompy.core.errors import ERR_INTERN, MPIError

cdef enum:
    FIRST_CONTEXT = 16
    RANK_SHIFT = 28
    # That a leader hands out at once when the reserve is used up.
    BLOCK = 128 * SPAN

# The next that this process hands out, and how many are left.
cdef uint64_t next_context = 0
cdef uint64_t contexts_left = 0


def first_context(str job not None, int rank) -> int:
    """Where the numbers begin that this process hands out: 2^28 of them."""
    cdef bytes name = job.encode()
    cdef uint64_t place = (<uint64_t> crc32c(0, <const char *> name, len(name)) << 4) + <uint64_t> rank
    return (place & ((<uint64_t> 1 << 35) - 1)) << RANK_SHIFT


def begin(str job not None, int rank) -> None:
    """Hand out contexts from now on, as this rank of the job."""
    global next_context, contexts_left
    next_context = first_context(job, rank) + FIRST_CONTEXT
    contexts_left = (1 << RANK_SHIFT) - FIRST_CONTEXT


cdef uint64_t new_contexts(uint64_t count) except 0:
    """So many one after the other, which nobody else hands out; the first."""
    global next_context, contexts_left
    if contexts_left < count:
        raise MPIError(ERR_INTERN, "this process has handed out 2^28 contexts of communicators: none is left")
    next_context += count
    contexts_left -= count
    return next_context - count


cdef uint64_t new_context() except 0:
    """A communicator's own, and its reserve behind it."""
    return new_contexts(SPAN)


cdef uint64_t reserved(Communicator comm, int groups, int number, uint64_t *reserve) except 0:
    """The context of one of several disjoint groups of `comm`, without a word where its reserve has as many.

    Every member calls it at the same place in the order of collective calls.

    Parameters:
        groups: how many communicators are being made, the same in every member.
        number: which of them this process will be in.
        reserve: how many contexts it begins with itself.
    """
    cdef uint64_t needed = groups, width = SPAN, first
    if comm.contexts_left < needed:
        needed = max(needed * SPAN, <uint64_t> BLOCK)
        first = new_contexts(needed) if comm.rank == 0 else 0
        if comm.size > 1:
            share(comm, <int64_t *> &first, 1)
        comm.next_context, comm.contexts_left = first, needed
    elif comm.contexts_left < needed * SPAN:
        width = 1
    first = comm.next_context
    comm.next_context += groups * width
    comm.contexts_left -= groups * width
    reserve[0] = width - 1
    return first + number * width


def offer_context() -> int:
    """A context that nobody else hands out."""
    return new_context()


def overlap(str one not None, str other not None) -> bool:
    """Whether two jobs' contexts could be the same, by chance: the numbers of the jobs are too close to each other."""
    distance = (first_context(one, 0) >> RANK_SHIFT) - (first_context(other, 0) >> RANK_SHIFT)
    return one != other and abs(distance) < 1 << 4
