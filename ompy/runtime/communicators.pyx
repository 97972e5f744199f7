# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""New communicators: how their members agree on context and order (MPI-4.1, 7.4 and 7.6).

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

Where they don't, agreement costs one collective over the parent: every rank contributes the number that it would hand out,
and the members take that of their leader.

    split of 4 ranks by color      rank        0    1    2    3
                                   color       a    b    a    b
                                   offers      c0   c1   c2   c3     one allgather
                                   context     c0   c1   c0   c1

An inter-communicator's groups agree by their leaders, who swap what each has gathered; the smaller of the two leaders'
offers is the context.
"""

import marshal

from cpython.array cimport array
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport qsort

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport ANYWHERE, Communicator, new_communicator
from ompy.core.constants cimport MODE_STANDARD, TAG_AGREEMENT, TAG_CONTEXT, TAG_UPPER_BOUND, UNDEFINED
from ompy.core.group cimport Group, make_group, subgroup
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.core.typemap cimport predefined
from ompy.mca.agreement cimport gather, share
from ompy.mca.coll cimport BARRIER, BCAST, CollectiveCall, CollModule, CollTable, ready_table, release
from ompy.mca.pml cimport pml

from ompy.core.errors import ERR_COMM, ERR_GROUP, ERR_INTERN, ERR_PROC_FAILED, ERR_RANK, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.mca import coll_selection, parts
from ompy.runtime.dpm import acquaintances

cdef enum:
    FIRST_CONTEXT = 16
    RANK_SHIFT = 28
    # Contexts of a communicator: its own, and those in reserve.
    SPAN = 8
    # That a leader hands out at once when the reserve is used up.
    BLOCK = 128 * SPAN

# The next that this process hands out, and how many are left.
cdef uint64_t next_context = 0
cdef uint64_t contexts_left = 0

# Communicators that the program has freed, on which something is under way: looked at when the next is made or freed.
cdef list freed = []

# Communicators with members of several jobs.  Those that were freed rather than disconnected stay, as their members stay
# connected (MPI-4.1, 11.10.4).
cdef list spanning = []
# Called with the indices of processes that are connected no more.
on_parting = None


# --- who this process is

cdef Communicator world = None

# The run-time environment, and the two communicators that a process starts with; None before bring-up.
rte = None
own = None


def first_context(str job not None, int rank) -> int:
    """Where the numbers begin that this process hands out: 2^28 of them."""
    cdef bytes name = job.encode()
    cdef uint64_t place = (<uint64_t> crc32c(0, <const char *> name, len(name)) << 4) + <uint64_t> rank
    return (place & ((<uint64_t> 1 << 35) - 1)) << RANK_SHIFT


def begin(instance) -> None:
    """Hand out contexts from now on, over the world of this bring-up."""
    global rte, world, own, next_context, contexts_left, freed, spanning, on_parting
    rte, world, own = instance.rte, instance.world, instance.own
    freed, spanning = [], []
    on_parting = instance.part_from
    parts.employ(part, free_communicator)
    next_context = first_context(rte.job, world.rank) + FIRST_CONTEXT
    contexts_left = (1 << RANK_SHIFT) - FIRST_CONTEXT


def world_communicator():
    """The core communicator behind COMM_WORLD, or None before bring-up."""
    return world


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


# --- messages of the library's own

cdef list allgather(Communicator comm, list numbers):
    """Each rank's numbers, in rank order."""
    cdef array sent = array("q", numbers)
    cdef array received = array("q", bytes(8 * len(numbers) * comm.size))
    gather(comm, <int64_t *> sent.data.as_longlongs, <int64_t *> received.data.as_longlongs, <int> len(numbers))
    width = len(numbers)
    return [list(received[rank * width:(rank + 1) * width]) for rank in range(comm.size)]


cdef int bcast_buffer(Communicator comm, object buffer, int root) except -1:
    """`buffer` is an array.array."""
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    call.send_address, length = buffer.buffer_info()
    call.send_count = length * buffer.itemsize
    call.send_type = predefined(BASIC_BYTE)
    call.root = root
    return (<CollTable> comm.coll).of(BCAST).run(BCAST, call, comm)


cdef object bcast(Communicator comm, object value, int root):
    """A value that `marshal` knows, from the root to all."""
    data = array("b", marshal.dumps(value)) if comm.rank == root else None
    length = array("q", [len(data) if comm.rank == root else 0])
    bcast_buffer(comm, length, root)
    if comm.rank != root:
        data = array("b", bytes(length[0]))
    bcast_buffer(comm, data, root)
    return value if comm.rank == root else marshal.loads(data.tobytes())


cdef int complete(Request request, object owner=None) except -1:
    """Until it is; an exception takes it back.  `owner` is of its memory."""
    try:
        wait(request)
    except BaseException:
        request.abandon(owner)
        raise
    if request.error is not None:
        raise request.error
    return 0


cdef int conclude(Request request) except -1:
    """The end of a blocking call of the PML, whose memory is the caller's."""
    if request is None:
        return 0
    try:
        wait(request)
    except BaseException:
        request.abandon(None)
        raise
    error = request.conclude(NULL)
    if error is not None:
        raise error
    return 0


cdef Request send(Communicator comm, object data, int dest, int tag):
    """`data` is an array.array, and must live until the request is complete."""
    address, length = data.buffer_info()
    return pml.isend(address, length * data.itemsize, predefined(BASIC_BYTE), dest, tag, MODE_STANDARD, comm)


cdef object recv(Communicator comm, int source, int tag):
    cdef Request request = pml.irecv_object(bytearray, source, tag, comm)
    complete(request)
    return marshal.loads(bytes(request.buffer))


cdef object swap(Communicator comm, object value, int peer, int tag):
    data = array("b", marshal.dumps(value))
    cdef Request leaving = send(comm, data, peer, tag)
    try:
        theirs = recv(comm, peer, tag)
    except BaseException:
        leaving.abandon(data)
        raise
    complete(leaving, data)
    return theirs


cdef int agreement_tag(int tag):
    """A tag of the program's as one that neither a program nor a collective uses."""
    return TAG_AGREEMENT - tag


# --- construction and destruction

cdef Communicator make_communicator(uint64_t context, Group group, dict attributes=None, uint64_t reserve=SPAN - 1,
                                    int placement=ANYWHERE, Communicator whole=None, Group remote_group=None,
                                    Communicator local_communicator=None):
    """A core communicator that can be used at once: known to the PML, its collectives chosen.

    Parameters:
        context: agreed among the members.
        reserve: how many contexts behind it are in reserve.
        group, remote_group: local members, and those of the other side of an inter-communicator.
        attributes: what must be there when collectives are chosen (the topology).
        placement: what all members know of their hosts.
        whole: the communicator whose collectives this part is to carry out.
        local_communicator: an inter-communicator's own intra-communicator over `group`.
    """
    cdef Communicator comm = new_communicator(context, group, remote_group, "")
    comm.placement, comm.whole = placement, whole
    if freed:
        give_back()
    comm.next_context, comm.contexts_left = context + 1, reserve
    comm.local_communicator = local_communicator
    if attributes:
        comm.attributes.update(attributes)
    pml.add_comm(comm)
    if comm.spans_jobs:
        spanning.append(comm)
    comm.coll = ready_table(comm)
    if comm.coll is None:
        comm.coll = coll_selection.select_collectives(comm)
    return comm


cpdef int free_communicator(Communicator comm) except -1:
    """Let go of a communicator; what is under way on it completes (MPI-4.1, 7.4.3)."""
    comm.mark_freed()
    if not comm.spans_jobs:
        end_communicator(comm)
    return 0


cdef int end_communicator(Communicator comm) except -1:
    if comm.under_way:
        freed.append(comm)
    else:
        let_go(comm)
    if freed:
        give_back()
    return 0


cdef int give_back() except -1:
    """What PML and collectives keep for communicators that were freed, once nothing is under way there."""
    global freed
    cdef Communicator comm
    cdef list over = [comm for comm in freed if (<Communicator> comm).under_way == 0]
    if not over:
        return 0
    freed = [comm for comm in freed if (<Communicator> comm).under_way]
    for comm in over:
        let_go(comm)
    return 0


cdef int let_go(Communicator comm) except -1:
    cdef CollTable collectives = comm.coll
    comm.coll = None
    pml.del_comm(comm)
    release(collectives)
    if comm.local_communicator is not None:
        (<Communicator> comm.local_communicator).mark_freed()
        end_communicator(comm.local_communicator)
    if comm.spans_jobs:
        part_from_members(comm)
    return 0


cdef int part_from_members(Communicator comm) except -1:
    """Whoever is in no other communicator with this process is disconnected."""
    cdef Communicator other
    if comm not in spanning:
        return 0
    spanning.remove(comm)
    leaving = foreigners(comm)
    for other in spanning:
        leaving -= foreigners(other)
    if leaving:
        on_parting(sorted(leaving))
    return 0


cdef set foreigners(Communicator comm):
    return {index for index in {*comm.group.indices(), *comm.remote_group.indices()} if index >= world.size}


def settle(Communicator comm not None) -> None:
    """Wait until every member is here, and with it whatever it had under way (MPI-4.1, 11.10.4).

    Who returns may end at once, and take along what it sent last.  So all meet once more, and this time one that is gone is
    none that anybody waits for: it was here.
    """
    cdef CollModule module = (<CollTable> comm.coll).of(BARRIER)
    module.run(BARRIER, CollectiveCall.__new__(CollectiveCall), comm)
    if comm.spans_jobs:
        try:
            module.run(BARRIER, CollectiveCall.__new__(CollectiveCall), comm)
        except MPIError as error:
            if error.code != ERR_PROC_FAILED:
                raise


def disconnect(Communicator comm not None) -> None:
    """After `settle`: let go of a communicator, and of the processes of other jobs with which none is left."""
    comm.mark_freed()
    end_communicator(comm)


def settle_all() -> None:
    """Wait until all that this process is connected with are here, and have what they were sent (MPI-4.1, 11.10.4).

    Who has died meanwhile is not waited for.
    """
    cdef Communicator comm
    cdef Request request
    begun = []
    for comm in spanning:
        try:
            module = (<CollTable> comm.coll).nonblocking[<int> BARRIER]
            begun.append((<CollModule> module).start(BARRIER, CollectiveCall.__new__(CollectiveCall), comm))
        except MPIError:
            continue
    for request in begun:
        wait(request)
    spanning.clear()


# --- for meetings (`ompy/runtime/dpm/meeting.py`)

def offer_context() -> int:
    """A context that nobody else hands out."""
    return new_context()


def overlap(str job not None) -> bool:
    """Whether another job's contexts could be this one's, by chance: the two numbers of jobs are too close to each other."""
    distance = (first_context(job, 0) >> RANK_SHIFT) - (first_context(rte.job, 0) >> RANK_SHIFT)
    return job != rte.job and abs(distance) < 1 << 4


def share_value(Communicator comm not None, value, int root):
    """A value that `marshal` knows, from the root to all."""
    return value if comm.size == 1 else bcast(comm, value, root)


def gather_values(Communicator comm not None, value, int root) -> list:
    """Each rank's value, which `marshal` knows, in rank order, on the root; elsewhere an empty list."""
    if comm.rank != root:
        data = array("b", marshal.dumps(value))
        complete(send(comm, data, root, TAG_CONTEXT), data)
        return []
    return [value if rank == root else recv(comm, rank, TAG_CONTEXT) for rank in range(comm.size)]


def bridge(context: int, local_context: int, Communicator local not None, list indices not None) -> Communicator:
    """The inter-communicator of a group and the one of these processes, who do the same with the same context."""
    own = make_communicator(local_context, local.group)
    return make_communicator(context, local.group, None, 0, ANYWHERE, None, make_group(indices), own)


# --- from one communicator

cpdef Communicator duplicate(Communicator comm, dict attributes=None):
    """The same members in the same order, in a context of their own (MPI-4.1, 7.4.2)."""
    cdef uint64_t reserve, context
    if comm.is_inter:
        return duplicate_inter(comm, attributes)
    context = reserved(comm, 1, 0, &reserve)
    return make_communicator(context, comm.group, attributes, reserve, comm.placement)


def duplicate_inter(Communicator comm, dict attributes):
    return paired(comm, meet(comm, [new_context(), new_context()]), lambda row: True, attributes)


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
    """`duplicate` as a request; `made(communicator)` is called on completion.

    An inter-communicator is duplicated at once; the result is then (None, the request is complete).
    """
    cdef CollectiveCall call
    cdef Duplication duplication
    cdef Request request
    if comm.is_inter:
        made(duplicate(comm, attributes))
        return None
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
        return split_inter(comm, color, key)
    return split_intra(comm, color, key, attributes, placement or comm.placement)


def split_inter(Communicator comm, long long color, int key):
    rows = meet(comm, [new_context(), new_context(), color, key])
    if color == UNDEFINED:
        return None
    return paired(comm, rows, lambda row: row[2] == color, None, lambda row: row[3])


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
        # A group's order travels as each member's rank in it.
        rows = meet(comm, [new_context(), new_context(), group.rank])
        if group.rank == UNDEFINED:
            return None
        return paired(comm, rows, lambda row: row[2] != UNDEFINED, None, lambda row: row[2])
    rows = allgather(comm, [new_context()])
    if group.rank == UNDEFINED:
        return None
    return make_communicator(rows[comm.group.rank_of(group.members[0])][0], group, None, SPAN - 1, comm.placement)


cpdef Communicator create_group(Communicator comm, Group group, int tag):
    """`create`, called by the members of the group alone; `tag` keeps concurrent calls apart (MPI-4.1, 7.4.2)."""
    return make_communicator(lead(comm, group, tag), group, None, SPAN - 1, comm.placement)


def from_group(Group group not None, str stringtag):
    """A communicator for a group, without a parent; None for an empty one (MPI-4.1, 7.4.2)."""
    if group.size == 0:
        return None
    return create_group(world, group, number_of(stringtag))


cdef uint64_t lead(Communicator comm, Group group, int tag) except 0:
    """The context that the group's leader hands out to its members."""
    cdef uint64_t context = 0
    cdef int below = agreement_tag(tag), rank
    check_members(comm.group, group)
    if group.rank == UNDEFINED:
        raise MPIError(ERR_GROUP, "group: this process must be a member")
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


cdef Group members_of(Group group, object ranks):
    """The members of some ranks, each but once."""
    cdef array numbers = array("i", ranks)
    return subgroup(group, <int> len(numbers), numbers.data.as_ints)


cdef int number_of(str text):
    cdef bytes encoded = text.encode()
    return <int> (crc32c(0, <const char *> encoded, len(encoded)) & TAG_UPPER_BOUND)


# --- from two groups

cdef tuple meet(Communicator comm, list numbers):
    """Every rank's numbers, of both sides of an inter-communicator: (local rows, remote rows)."""
    local = comm.local_communicator
    rows = allgather(local, numbers)
    theirs = problem = None
    if comm.rank == 0:
        try:
            theirs = swap(comm, rows, 0, TAG_CONTEXT)
        except MPIError as error:                # the others are to hear of it
            problem = error.code, error.detail
    theirs, problem = bcast(local, (theirs, problem), 0)
    if problem is not None:
        raise MPIError(*problem)
    return rows, theirs


cdef object paired(Communicator comm, tuple sides, taken, dict attributes, order=None):
    """An inter-communicator from those rows of both sides of another that are `taken`, sorted by `order`.

    A row begins with two offers: a context for the new communicator, and one for its local communicator.
    """
    chosen = []
    for rows in sides:
        ranks = [rank for rank in range(len(rows)) if taken(rows[rank])]
        if order is not None:
            ranks.sort(key=lambda rank: order(rows[rank]))
        chosen.append(ranks)
    mine, theirs = chosen
    if not mine or not theirs or comm.rank not in mine:
        return None
    local_leader, remote_leader = sides[0][mine[0]], sides[1][theirs[0]]
    group = members_of(comm.group, mine)
    local = make_communicator(local_leader[1], group)
    remote_group = members_of(comm.remote_group, theirs)
    return make_communicator(min(local_leader[0], remote_leader[0]), group, attributes, 0, ANYWHERE, None, remote_group, local)


def connect(Communicator local not None, int local_leader, Communicator peer, int remote_leader, int tag):
    """An inter-communicator between the group of `local` and the one that does the same (MPI-4.1, 7.6.2).

    Parameters:
        local_leader: rank in `local`, the same in all its members.
        peer: contains both leaders; looked at on the local leader only.
        remote_leader: rank in `peer` of the other group's leader.
        tag: of the program's, the same on both sides.

    Errors: ERR_RANK for a leader out of range, ERR_GROUP for groups that overlap.
    """
    if not 0 <= local_leader < local.size:
        raise MPIError(ERR_RANK, f"local_leader: a rank from 0 to {local.size - 1} expected, got {local_leader}")
    answer = None
    if local.rank == local_leader:
        try:
            answer = introduce(local, peer, remote_leader, agreement_tag(tag))
        except MPIError as error:                # the others are to hear of it
            answer = None, error.code, error.detail
    context, local_context, members = bcast(local, answer, local_leader)
    return joined(local, context, local_context, members)


cdef class Introduction:
    """What two leaders say to each other.  A call that an exception has ended goes on with it when it is made again: the other
    leader may have heard what was said the first time."""
    cdef uint64_t offer
    cdef array data
    cdef Request leaving, coming


cdef tuple introduce(Communicator local, Communicator peer, int remote_leader, int tag):
    """The leader's part: (context, context of the local communicator, identities of the remote group); for an error (None, its
    class, words)."""
    cdef Introduction introduction
    if peer is None or peer.freed:
        return None, ERR_COMM, "peer_comm: a communicator expected, not COMM_NULL or one that was freed"
    if not 0 <= remote_leader < peer.remote_size:
        return None, ERR_RANK, f"remote_leader: 0 to {peer.remote_size - 1} expected, a rank of peer_comm, got {remote_leader}"
    begun = peer.attributes.setdefault("introductions", {})
    which = (local.context, remote_leader, tag)
    if which not in begun:
        introduction = Introduction.__new__(Introduction)
        introduction.offer = new_context()
        mine = [identity(index) for index in local.group.indices()]
        introduction.data = array("b", marshal.dumps((introduction.offer, mine)))
        introduction.leaving = send(peer, introduction.data, remote_leader, tag)
        introduction.coming = pml.irecv_object(bytearray, remote_leader, tag, peer)
        begun[which] = introduction
    introduction = begun[which]
    wait(introduction.leaving)
    wait(introduction.coming)
    del begun[which]
    for error in (introduction.leaving.error, introduction.coming.error):
        if error is not None:
            raise error
    theirs, members = marshal.loads(bytes(introduction.coming.buffer))
    return min(introduction.offer, theirs), new_context(), members


cdef object joined(Communicator local, object context, object local_context, object members):
    if context is None:
        raise MPIError(local_context, members)
    indices = [index_of(tuple(who)) for who in members]
    if set(indices) & set(local.group.indices()):
        raise MPIError(ERR_GROUP, "the two groups of an inter-communicator must not share a process")
    own = make_communicator(local_context, local.group)
    return make_communicator(context, local.group, None, 0, ANYWHERE, None, make_group(indices), own)


def from_groups(Group local_group not None, int local_leader, Group remote_group not None, int remote_leader, str stringtag):
    """An inter-communicator between two groups, without a parent; None where one is empty (MPI-4.1, 7.6.2)."""
    cdef int tag = number_of(stringtag)
    if local_group.size == 0 or remote_group.size == 0:
        return None
    if not 0 <= local_leader < local_group.size:
        raise MPIError(ERR_RANK, f"local_leader: a rank from 0 to {local_group.size - 1} expected, got {local_leader}")
    if not 0 <= remote_leader < remote_group.size:
        raise MPIError(ERR_RANK, f"remote_leader: a rank from 0 to {remote_group.size - 1} expected, got {remote_leader}")
    local = create_group(world, local_group, tag)
    remote_rank = world.group.rank_of(remote_group.indices()[remote_leader])
    made = connect(local, local_leader, world, remote_rank, tag)
    free_communicator(local)
    return made


def merge(Communicator comm not None, bint high):
    """Both groups of an inter-communicator in one; the group that says `high` comes second (MPI-4.1, 7.6.2).

    Where both say the same, the group whose leader offers the smaller context comes first.
    """
    ours, theirs = meet(comm, [new_context(), high])
    first = not high if ours[0][1] != theirs[0][1] else ours[0][0] < theirs[0][0]
    groups = (comm.group, comm.remote_group) if first else (comm.remote_group, comm.group)
    context = ours[0][0] if first else theirs[0][0]
    return make_communicator(context, make_group(groups[0].indices() + groups[1].indices()))
