# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""A communicator's life: made known to PML and collectives, freed or disconnected, let go of once nothing is under way on it.

Who is to be a member of a new one, and in which context, is agreed on before (`communicators.pyx`, `intercommunicators.pyx`).
"""

from cpython.array cimport array
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport ANYWHERE, Communicator, new_communicator
from ompy.core.group cimport Group, subgroup
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.mca.coll cimport BARRIER, CollectiveCall, CollModule, CollTable, ready_table, release
from ompy.mca.pml cimport pml
from ompy.runtime.contexts cimport SPAN
from ompy.runtime.identity cimport world

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.mca import coll_selection

# Communicators that the program has freed, on which something is under way: looked at when the next is made or freed.
cdef list freed = []

# Communicators with members of several jobs.  Those that were freed rather than disconnected stay, as their members stay
# connected (MPI-4.1, 11.10.4).
cdef list spanning = []
# Called with the indices of processes that are connected no more.
on_parting = None


def begin(instance) -> None:
    """None is freed or spans jobs; `instance.part_from` hears of who is connected no more, from now on."""
    global freed, spanning, on_parting
    freed, spanning = [], []
    on_parting = instance.part_from


cdef Group members_of(Group group, object ranks):
    """The members of some ranks, each but once."""
    cdef array numbers = array("i", ranks)
    return subgroup(group, <int> len(numbers), numbers.data.as_ints)


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


cpdef int settle(Communicator comm) except -1:
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
    return 0


cpdef int disconnect(Communicator comm) except -1:
    """After `settle`: let go of a communicator, and of the processes of other jobs with which none is left."""
    comm.mark_freed()
    return end_communicator(comm)


cpdef int give_up(Communicator comm) except -1:
    """A window's or a file's own communicator, when all its members give theirs up: what it connected is connected no more
    (MPI-4.1, 11.10.4)."""
    try:
        if comm.spans_jobs:
            settle(comm)
    finally:
        disconnect(comm)
    return 0


def settle_all() -> None:
    """Wait until all that this process is connected with are here, and have what they were sent (MPI-4.1, 11.10.4).

    Who has died meanwhile is not waited for.
    """
    cdef Communicator comm
    cdef Request request
    begun = []
    # Parts go with the whole.
    for comm in [comm for comm in spanning if (<Communicator> comm).whole is None]:
        try:
            module = (<CollTable> comm.coll).nonblocking[<int> BARRIER]
            begun.append((<CollModule> module).start(BARRIER, CollectiveCall.__new__(CollectiveCall), comm))
        except MPIError:
            continue
    for request in begun:
        wait(request)
    spanning.clear()
