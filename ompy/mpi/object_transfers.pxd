# Python objects on their way in a collective.  The caller has checked the communicator.
from ompy.core.communicator cimport Communicator

#
# In place of any object there may be a `Failure`, which goes through all steps of a collective like an object, so that every
# rank has done its part when the collective's end raises it.

# `items` as a list of `count` objects, failures, one at least, where there are not so many; None stands for so many times None.
cdef list items_of(object items, int count, Communicator comm)
# A pickled copy; the object itself when it can't be changed.
cdef object copy_of(object obj, Communicator comm)
# `op(left, right)`
cdef object combine(object op, object left, object right, Communicator comm)
# The object; a failure is raised: on the rank where it happened as what it was, elsewhere as MPIError.
cdef object opened(object obj)
# Is it one that happened on this rank?
cdef bint is_own_failure(object obj) noexcept

# One object between two ranks, under a tag of `comm.collective_tag()`, for a collective that the job board calls `operation`.
# `send_object` returns the object, or the failure to pickle it.
cdef object send_object(object obj, int dest, int tag, Communicator comm, int operation)
cdef object recv_object(int source, int tag, Communicator comm, int operation)
# Both: returns the peer's object, or the failure to pickle one's own.
cdef object swap_objects(object obj, int peer, int tag, Communicator comm, int operation)
# A failure for the other ranks, of this one's part in a collective.
cdef object failure(str what, object error, Communicator comm)

# The collectives (roots as in MPI, between groups too); they raise failures.
cdef object gathered(object obj, int root, Communicator comm, int operation=*)
cdef object scattered(object objects, int root, Communicator comm, int operation=*)
cdef object broadcast(object obj, int root, Communicator comm)
cdef list gathered_everywhere(object obj, Communicator comm)
# `objects[i]` to rank `targets[i]`, one from each of `sources`; PROC_NULL gives None.  `crossed`: the lists hold the two
# sides of each dimension of a grid.  What goes to nobody, objects beyond the targets too, is pickled all the same: a program
# hears what is wrong with it on the ranks at an edge as on the others.
cdef list exchange(list objects, list targets, list sources, bint crossed, Communicator comm, int operation)
