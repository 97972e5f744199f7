# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""New communicators: how their members agree on context and order (MPI-4.1, 7.4 and 7.6).

Where every rank knows who will be a member, the context is one in reserve (`contexts.pyx`).  Where they don't, agreement
costs one collective over the parent: every rank contributes the number that it would hand out, and the members take that of
their leader.

    split of 4 ranks by color      rank        0    1    2    3
                                   color       a    b    a    b
                                   offers      c0   c1   c2   c3     one allgather
                                   context     c0   c1   c0   c1

How the two groups of an inter-communicator agree is in `intercommunicators.pyx`.
"""

from cpython.array cimport array
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport qsort

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport ANYWHERE, Communicator
from ompy.core.constants cimport MODE_STANDARD, TAG_UPPER_BOUND, UNDEFINED
from ompy.core.group cimport Group, subgroup
from ompy.core.request cimport Request
from ompy.core.typemap cimport predefined
from ompy.mca.agreement cimport gather
from ompy.mca.coll cimport BCAST, CollectiveCall, CollModule, CollTable
from ompy.mca.pml cimport pml
from ompy.runtime.communicator_lifecycle cimport free_communicator, make_communicator, members_of
from ompy.runtime.contexts cimport SPAN, new_context, reserved
from ompy.runtime.identity cimport world
from ompy.runtime.internal_messages cimport agreement_tag, allgather, conclude

from ompy.core.errors import ERR_GROUP, ERR_RANK, MPIError
from ompy.mca import parts
from ompy.runtime import communicator_lifecycle, contexts, identity, intercommunicators


def begin(instance) -> None:
    """Make communicators from now on, beside the two of this bring-up."""
    identity.begin(instance)
    contexts.begin(instance.rte.job, instance.world.rank)
    communicator_lifecycle.begin(instance)
    parts.employ(part, communicator_lifecycle.disconnect)


# --- from one communicator

cpdef Communicator duplicate(Communicator comm, dict attributes=None):
    """The same members in the same order, in a context of their own (MPI-4.1, 7.4.2)."""
    cdef uint64_t reserve, context
    if comm.is_inter:
        return intercommunicators.duplicate(comm, attributes)
    context = reserved(comm, 1, 0, &reserve)
    return make_communicator(context, comm.group, attributes, reserve, comm.placement)


cpdef Communicator first_ranks(Communicator comm, int count, dict attributes=None):
    """A communicator of the first `count` ranks, which every member knows; None for the others."""
    cdef uint64_t reserve, context = reserved(comm, 1, 0, &reserve)
    if comm.rank >= count:
        return None
    group = comm.group if count == comm.size else members_of(comm.group, range(count))
    return make_communicator(context, group, attributes, reserve, comm.placement)


def part(Communicator comm not None, int count, int number, ranks, dict attributes=None, int placement=ANYWHERE,
         Communicator whole=None):
    """A communicator for each part of one, where every member knows how it is divided; None for who is in none.

    Parameters:
        count: how many there are.
        number: of this process's part.
        ranks: whose part it is, in order.
        placement: what all members of each know of their hosts, beyond what those of `comm` do.
        whole: `comm`, where the part is to carry its collectives out.
    """
    cdef uint64_t reserve, context = reserved(comm, count, number, &reserve)
    if comm.rank not in ranks:
        return None
    return make_communicator(context, members_of(comm.group, ranks), attributes, reserve,
                             placement or comm.placement, whole)


cdef class Duplication:
    """What an `iduplicate` still has to do when the context has arrived."""
    cdef Communicator parent
    cdef object context, attributes, made


cdef int duplication_arrived(object state, Request request) except -1:
    cdef Duplication duplication = state
    if request.error is None:
        duplication.made(make_communicator(duplication.context[0], duplication.parent.group, duplication.attributes, SPAN - 1,
                                           duplication.parent.placement))
    return 0


def iduplicate(Communicator comm not None, made, dict attributes=None):
    """`duplicate` as a request; `made(communicator)` is called on completion."""
    cdef CollectiveCall call
    cdef Duplication duplication
    cdef Request request
    if comm.is_inter:
        return intercommunicators.iduplicate(comm, made, attributes)
    duplication = Duplication.__new__(Duplication)
    duplication.parent, duplication.attributes, duplication.made = comm, attributes, made
    duplication.context = array("q", [new_context() if comm.rank == 0 else 0])
    call = CollectiveCall.__new__(CollectiveCall)
    call.send_address, call.send_count, call.send_type = duplication.context.buffer_info()[0], 8, predefined(BASIC_BYTE)
    request = (<CollModule> (<CollTable> comm.coll).nonblocking[<int> BCAST]).start(BCAST, call, comm)
    if request.complete:
        duplication_arrived(duplication, request)
    else:
        request.watch(duplication_arrived, duplication)
    return request


cpdef Communicator split(Communicator comm, long long color, int key, dict attributes=None, int placement=ANYWHERE):
    """One communicator for each color, ordered by key, then by rank; None for color UNDEFINED (MPI-4.1, 7.4.2).

    Parameters:
        placement: what all of one color know of their hosts, beyond what those of `comm` do.
    """
    if comm.is_inter:
        return intercommunicators.split(comm, color, key)
    return split_intra(comm, color, key, attributes, placement or comm.placement)


cdef struct Member:
    int64_t context                              # that it would hand out
    int64_t color
    int64_t key
    int64_t rank


cdef int before(const void *first, const void *second) noexcept nogil:
    """By key, then by rank."""
    cdef const Member *one = <const Member *> first
    cdef const Member *other = <const Member *> second
    if one.key != other.key:
        return -1 if one.key < other.key else 1
    return -1 if one.rank < other.rank else 1


cdef Communicator split_intra(Communicator comm, long long color, int key, dict attributes, int placement):
    cdef Member mine = Member(0, color, key, comm.rank)
    cdef Member *everyone = <Member *> PyMem_Malloc(comm.size * (sizeof(Member) + sizeof(int)))
    cdef int *ranks = <int *> (everyone + comm.size)
    cdef int rank, size = 0
    if everyone == NULL:
        raise MemoryError()
    try:
        mine.context = new_context()
        gather(comm, <int64_t *> &mine, <int64_t *> everyone, sizeof(Member) // sizeof(int64_t))
        if color == UNDEFINED:
            return None
        for rank in range(comm.size):
            if everyone[rank].color == color:
                everyone[size] = everyone[rank]
                size += 1
        qsort(everyone, size, sizeof(Member), before)
        for rank in range(size):
            ranks[rank] = everyone[rank].rank
        return make_communicator(everyone[0].context, subgroup(comm.group, size, ranks), attributes, SPAN - 1, placement)
    finally:
        PyMem_Free(everyone)


def create(Communicator comm not None, Group group not None):
    """A communicator for a subgroup of the parent; None where this process isn't in it (MPI-4.1, 7.4.2).

    Every rank of the parent calls it; disjoint groups at the same time are allowed.  Errors: ERR_GROUP.
    """
    check_members(comm.group, group)
    if comm.is_inter:
        return intercommunicators.create(comm, group)
    rows = allgather(comm, [new_context()])
    if group.rank == UNDEFINED:
        return None
    return make_communicator(rows[comm.group.rank_of(group.members[0])][0], group, None, SPAN - 1, comm.placement)


cpdef Communicator create_group(Communicator comm, Group group, int tag):
    """`create`, called by the members of the group alone; `tag` keeps concurrent calls apart (MPI-4.1, 7.4.2).

    None, without a word to the others, for who is not among them.
    """
    if group.rank == UNDEFINED:
        return None
    return make_communicator(lead(comm, group, tag), group, None, SPAN - 1, comm.placement)


cdef uint64_t lead(Communicator comm, Group group, int tag) except 0:
    """The context that the group's leader hands out to its members."""
    cdef uint64_t context = 0
    cdef int below = agreement_tag(tag), rank
    check_members(comm.group, group)
    if group.rank != 0:
        conclude(pml.recv(<size_t> &context, sizeof(context), predefined(BASIC_BYTE), comm.group.rank_of(group.members[0]),
                          below, comm, NULL))
        return context
    context = new_context()
    failure = None
    for rank in range(1, group.size):
        try:
            conclude(pml.send(<size_t> &context, sizeof(context), predefined(BASIC_BYTE),
                              comm.group.rank_of(group.members[rank]), below, MODE_STANDARD, comm))
        except MPIError as error:                # the others wait for it all the same
            failure = failure or error
    if failure is not None:
        raise failure
    return context


cdef int check_members(Group parent, Group group) except -1:
    """Errors: ERR_GROUP for a member that is not in the parent."""
    cdef int rank
    if group is not parent:
        for rank in range(group.size):
            if parent.rank_of(group.members[rank]) == UNDEFINED:
                raise MPIError(ERR_GROUP, f"group: its rank {rank} is not in the communicator's group")
    return 0


# --- without a parent

def from_group(Group group not None, str stringtag):
    """A communicator for a group, without a parent; None for an empty one (MPI-4.1, 7.4.2)."""
    if group.size == 0:
        return None
    if group.rank == UNDEFINED:
        raise MPIError(ERR_GROUP, "group: this process must be a member")
    return create_group(world, group, number_of(stringtag))


def from_groups(Group local_group not None, int local_leader, Group remote_group not None, int remote_leader, str stringtag):
    """An inter-communicator between two groups, without a parent; None where one is empty (MPI-4.1, 7.6.2)."""
    cdef int tag = number_of(stringtag)
    if local_group.size == 0 or remote_group.size == 0:
        return None
    if not 0 <= local_leader < local_group.size:
        raise MPIError(ERR_RANK, f"local_leader: a rank from 0 to {local_group.size - 1} expected, got {local_leader}")
    if not 0 <= remote_leader < remote_group.size:
        raise MPIError(ERR_RANK, f"remote_leader: a rank from 0 to {remote_group.size - 1} expected, got {remote_leader}")
    if local_group.rank == UNDEFINED:
        raise MPIError(ERR_GROUP, "local_group: this process must be a member")
    local = create_group(world, local_group, tag)
    remote_rank = world.group.rank_of(remote_group.indices()[remote_leader])
    made = intercommunicators.connect(local, local_leader, world, remote_rank, tag)
    free_communicator(local)
    return made


cdef int number_of(str text):
    cdef bytes encoded = text.encode()
    return <int> (crc32c(0, <const char *> encoded, len(encoded)) & TAG_UPPER_BOUND)
