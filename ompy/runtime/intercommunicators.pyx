# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Inter-communicators: two groups agree, or two sides of one on what is made from it (MPI-4.1, 7.4.2 and 7.6.2).

The groups agree by their leaders, who swap what each has gathered; the smaller of the two leaders' offers is the context.
What takes communicators of either kind is in `communicators.pyx`.
"""

import marshal

from cpython.array cimport array
from libc.stdint cimport uint64_t

from ompy.core.board cimport COMM_DUP
from ompy.core.communicator cimport ANYWHERE, Communicator
from ompy.core.constants cimport TAG_CONTEXT, UNDEFINED
from ompy.core.group cimport Group, make_group
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.mca.pml cimport pml
from ompy.runtime.communicator_lifecycle cimport make_communicator, members_of
from ompy.runtime.contexts cimport new_context
from ompy.runtime.identity cimport identity, index_of
from ompy.runtime.internal_messages cimport agreement_tag, allgather, bcast, receive, send, swap

from ompy.core.errors import ERR_COMM, ERR_GROUP, ERR_OTHER, ERR_RANK, MPIError


# --- from one inter-communicator

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


def duplicate(Communicator comm not None, dict attributes):
    return paired(comm, meet(comm, [new_context(), new_context()]), lambda row: True, attributes)


cdef class Duplication(Request):
    """`duplicate` under way.

        leader:    offers to the other leader, and its offer from there          then both contexts to each of its group
        others:                                                                  both contexts from the leader
    """
    cdef object attributes, made
    cdef array offer, answer                     # a leader's context, and the other's
    cdef array contexts                          # of the new communicator, and of its local communicator; 0 for an error
    cdef Request coming
    cdef int tag                                 # of the messages within the group


cdef int send_and_leave(Communicator comm, array data, int dest, int tag) except -1:
    """Nobody waits for it."""
    cdef Request leaving = send(comm, data, dest, tag)
    if not leaving.complete:
        leaving.buffer = data
    leaving.release()
    return 0


cdef int tell_group(Duplication duplication) except -1:
    """What a leader has to say to the others, all of whom hear it, or are gone."""
    cdef Communicator local = (<Communicator> duplication.communicator).local_communicator
    cdef int rank
    for rank in range(1, local.size):
        try:
            send_and_leave(local, duplication.contexts, rank, duplication.tag)
        except MPIError:
            continue
    return 0


cdef Duplication failed(Duplication duplication, object error):
    """Contexts that are none tell the others so."""
    if (<Communicator> duplication.communicator).rank == 0 and duplication.contexts is not None:
        tell_group(duplication)
    duplication.fail(error)
    return duplication


cdef int duplication_arrived(object state, Request coming) except -1:
    cdef Duplication duplication = state
    cdef Communicator comm = duplication.communicator, made
    duplication.coming = None
    if coming.error is not None:
        failed(duplication, coming.error)
        return 0
    try:
        if comm.rank == 0:
            duplication.contexts[0] = min(duplication.offer[0], duplication.answer[0])
            tell_group(duplication)
        if duplication.contexts[0] == 0:
            raise MPIError(ERR_OTHER, "the leaders of the two groups could not agree: rank 0 has the reason")
        made = make_communicator(duplication.contexts[1], comm.group)
        made = make_communicator(duplication.contexts[0], comm.group, duplication.attributes, 0, ANYWHERE, None,
                                 comm.remote_group, made)
        duplication.made(made)
    except BaseException as error:
        return duplication.fail(error)
    return duplication.finish()


def iduplicate(Communicator comm not None, made, dict attributes) -> Request:
    """`duplicate` as a request; `made(communicator)` is called on completion."""
    cdef Duplication duplication = Duplication.__new__(Duplication)
    cdef Communicator local = comm.local_communicator
    duplication.communicator, duplication.operation = comm, COMM_DUP
    duplication.made, duplication.attributes = made, attributes
    # The order of calls is the same in all of the group, and so is the tag.
    duplication.tag = local.collective_tag()
    duplication.begin()
    try:
        if comm.rank == 0:
            duplication.offer, duplication.answer = array("Q", [new_context()]), array("Q", [0])
            duplication.contexts = array("Q", [0, new_context()])
            send_and_leave(comm, duplication.offer, 0, TAG_CONTEXT)
            duplication.coming = receive(comm, duplication.answer, 0, TAG_CONTEXT)
        else:
            duplication.contexts = array("Q", [0, 0])
            duplication.coming = receive(local, duplication.contexts, 0, duplication.tag)
    except MPIError as error:
        return failed(duplication, error)
    if duplication.coming.complete:
        duplication_arrived(duplication, duplication.coming)
    else:
        duplication.coming.watch(duplication_arrived, duplication)
    return duplication


def split(Communicator comm not None, long long color, int key):
    rows = meet(comm, [new_context(), new_context(), color, key])
    if color == UNDEFINED:
        return None
    return paired(comm, rows, lambda row: row[2] == color, None, lambda row: row[3])


def create(Communicator comm not None, Group group not None):
    # A group's order travels as each member's rank in it.
    rows = meet(comm, [new_context(), new_context(), group.rank])
    if group.rank == UNDEFINED:
        return None
    return paired(comm, rows, lambda row: row[2] != UNDEFINED, None, lambda row: row[2])


def merge(Communicator comm not None, bint high):
    """Both groups of an inter-communicator in one; the group that says `high` comes second (MPI-4.1, 7.6.2).

    Where both say the same, the group whose leader offers the smaller context comes first.
    """
    ours, theirs = meet(comm, [new_context(), high])
    first = not high if ours[0][1] != theirs[0][1] else ours[0][0] < theirs[0][0]
    groups = (comm.group, comm.remote_group) if first else (comm.remote_group, comm.group)
    context = ours[0][0] if first else theirs[0][0]
    return make_communicator(context, make_group(groups[0].indices() + groups[1].indices()))


# --- from two groups

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
    return bridge(context, local_context, local, indices)


def bridge(context: int, local_context: int, Communicator local not None, list indices not None) -> Communicator:
    """The inter-communicator of a group and the one of these processes, who do the same with the same context."""
    own = make_communicator(local_context, local.group)
    return make_communicator(context, local.group, None, 0, ANYWHERE, None, make_group(indices), own)
