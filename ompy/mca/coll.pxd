# Collectives: per communicator, and per function, the module with the highest priority serves.
#
# Every function of MPI-4.1 chapter 6 and the neighbourhood ones of chapter 8 takes one `CollectiveCall`, which holds both
# sides of the buffers.  Blocking, non-blocking and persistent forms share it.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca coll NAME,basic`) says which one was broken.
#
# LIFE CYCLE
#    1 offer         Asked with a communicator, `query` returns one module and the functions that it serves, or the reason
#                    why not, the same on every member.  The module has a method for each form that the component's
#                    capability `forms` names.
#    2 free          `free`, once the communicator is gone, gives back all that the module held.  A module of an offer with
#                    `again` may then be given to another communicator of the kind, as if it were new.
#
# DATA
#    3 result        Every rank gets what MPI-4.1, chapters 6 and 8, says: on any number of ranks, with any root, any counts,
#                    by each of the component's algorithms.
#    4 sizes         That is so for blocks of any number of bytes.  Where a component takes another way from some number on
#                    that is no power of two, or above 512 KiB, its capability `switch_points` names the number.
#    5 large         Counts, displacements and extents past 2^31 and 2^32, and what they give together, are not cut off.
#    6 bounds        Memory that is not the call's stays as it is: gaps in datatypes, what lies between and behind blocks,
#                    send buffers.
#    7 layout        Any datatype is taken on either side, with gaps, lower bounds and extents of its own.
#    8 empty         Calls may move nothing: a count of zero, on some ranks or on all.
#    9 in place      `send_in_place` or `recv_in_place` says that the data are in the other buffer.
#   10 order         An operation that does not commute is applied in the order of ranks; one of the program's own is called
#                    with whole elements.
#   11 inter         Offered for an inter-communicator, a function moves data between its two groups.
#
# TIME
#   12 forms         `run` returns when this rank's part is done; `start`, and the start of a request of `init`, return without
#                    waiting for peers.
#   13 restart       A request of `init` can be started again and again, each time with the data that its buffers then hold.
#   14 synchronization  Nobody's part is done before those have begun whose data it gets, and in a barrier before all have;
#                    on an inter-communicator, before all of the other group have.
#   15 buffers       As soon as a rank's part is done its buffers are the program's: written over at once, what was in them
#                    still arrives.
#   16 overlap       Several calls may be under way on one communicator, and on others, and ranks may be calls ahead of each
#                    other: each call gets its own data.
#   17 messages      Messages of collectives and those of the program never match each other.
#   18 failure       Where contact with a process has ended whose data this rank's part needs, before the call or amid it, the
#                    part ends with the process's `failure`, and nobody waits on.  So does an error of a message that it is
#                    made of: nothing is done as if all were well.
#   19 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
#
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef enum:
    INTERFACE = 1

# The functions, in the order of the table.  Their names are in `ompy.mca.coll.FUNCTIONS`.
cdef enum Function:
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, SCAN, EXSCAN,
    NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW,
    FUNCTION_COUNT


cdef class CollectiveCall:
    """What a collective was asked to do.

    Counts are in elements, displacements in extents of the type (in bytes for the w forms).  The arrays are
    PyMem_Malloc'd by whoever fills the call in, freed with it, and hold one entry for each rank of the peer group (each
    neighbour, for the neighbourhood forms); displacements that are NULL mean blocks one after the other.
    `send_in_place` and `recv_in_place` stand for MPI_IN_PLACE, and that side is then not looked at.  `send_owner` and
    `recv_owner` keep the program's memory alive: what goes on after `start` holds the call.

        bcast                    the send side holds the buffer, on every rank
        gather, allgather        recv_count is one rank's block; so is send_count in scatter, both in alltoall
        gatherv, allgatherv      send_count, and recv_counts; scatterv: send_counts, and recv_count
        reduce, allreduce, scan  send_count and send_type, or with send_in_place recv_count and recv_type
        reduce_scatter_block     recv_count and recv_type of one block; reduce_scatter: recv_counts (one entry for each
                                 rank of the *local* group) and recv_type
        rooted, inter            root is MPI_ROOT, MPI_PROC_NULL, or a rank of the remote group
        neighbor_*               neighbours are those of `communicator.attributes["topology"]`: its lists of ranks
                                 `in_neighbors` and `out_neighbors` (MPI_PROC_NULL where there is none) and `is_cartesian`
    """
    cdef public size_t send_address, recv_address
    cdef public Py_ssize_t send_count, recv_count
    cdef public Typemap send_type, recv_type
    cdef Py_ssize_t *send_counts
    cdef Py_ssize_t *send_displacements
    cdef Py_ssize_t *recv_counts
    cdef Py_ssize_t *recv_displacements
    cdef public list send_types, recv_types      # of Typemap, for the w forms
    cdef public Operation operation
    cdef public int root
    cdef public bint send_in_place, recv_in_place
    cdef public object send_owner, recv_owner


cdef class CollModule:
    """One component's service for one communicator."""
    cdef readonly str component
    # For each function, the module that would serve its blocking form if this one did not; None where there is none.  A
    # module that serves only some calls hands the others on.
    cdef list previous
    # Blocks until this rank's part is done.
    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1
    # Starts, and returns the request.
    cpdef Request start(self, int function, CollectiveCall call, Communicator comm)
    # A persistent request, not started.
    cpdef Request init(self, int function, CollectiveCall call, Communicator comm)
    cpdef int free(self) except -1

    cdef inline int hand_on(self, int function, CollectiveCall call, Communicator comm) except -1:
        return (<CollModule> self.previous[function]).run(function, call, comm)


cdef class CollPlan:
    """Which of some modules, by their numbers, serves each function in each form: made once, for any number of tables."""
    cdef readonly list verdicts
    cdef int serving[3][FUNCTION_COUNT]
    cdef list before                              # (number, function, number of the module that stands behind it)
    # Of a plan for all communicators of a kind: what makes each module, and tables whose communicators are gone.
    cdef list makers, spare
    cdef object record                            # of what became of each component, for people
    cdef list column(self, int form, list modules)


cdef class CollTable:
    """Which module serves each function of one communicator, in each of its three forms."""
    cdef list blocking, nonblocking, persistent   # function -> CollModule
    cdef list distinct                            # the modules, each once
    cdef readonly list verdicts                   # (function, component, priority, chosen, reason)
    cdef CollPlan plan                            # that it can serve again by; None: by none

    cdef inline CollModule of(self, int function):
        return <CollModule> self.blocking[function]


# The table of a communicator, by what was decided for its kind; None where components are to be asked.
cdef CollTable ready_table(Communicator comm)
# The communicator is gone.
cdef int release(CollTable table) except -1
