# Python objects on their way in a collective.  The caller has checked the communicator.
from ompy.core.communicator cimport Communicator

# `items` as a list of `count` objects, or ValueError; None stands for so many times None.
cdef list checked_items(object items, int count)
# A pickled copy; the object itself when it can't be changed.
cdef object copy_of(object obj)

# One object between two ranks, under a tag of `comm.collective_tag()`.
cdef int send_object(object obj, int dest, int tag, Communicator comm) except -1
cdef object recv_object(int source, int tag, Communicator comm)
cdef object swap_objects(object obj, int peer, int tag, Communicator comm)

# The collectives (roots as in MPI, between groups too).
cdef object gathered(object obj, int root, Communicator comm)
cdef object scattered(object objects, int root, Communicator comm)
cdef object broadcast(object obj, int root, Communicator comm)
cdef list gathered_everywhere(object obj, Communicator comm)
# `objects[i]` to rank `targets[i]`, one from each of `sources`; PROC_NULL gives None.  `crossed`: the lists hold the two
# sides of each dimension of a grid.
cdef list exchange(list objects, list targets, list sources, bint crossed, Communicator comm)
