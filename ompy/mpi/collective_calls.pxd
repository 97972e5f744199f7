# From the arguments of a collective method to a CollectiveCall.
from ompy.core.communicator cimport Communicator
from ompy.mca.coll cimport CollectiveCall

# What `function` of `ompy.mca.coll` is asked to do.
#
#     send, recv    message specifications as the program passed them; IN_PLACE and None where MPI takes them
#     op            an `Op` for the reductions, else None
#     counts        of reduce_scatter: elements for each rank, or None to ask the other ranks
#     root          of the rooted functions
#
# What MPI calls not significant on a rank isn't looked at.  Raises TypeError and ValueError for what is no message, and
# MPIError for what MPI has an error class for.
cdef CollectiveCall make_call(int function, Communicator comm, object send, object recv, object op, object counts,
                              int root)

# Whether this rank is the root (between groups: has MPI.ROOT); raises MPIError(ERR_ROOT) for what can be no root.
cdef bint check_root(Communicator comm, int root) except -1
