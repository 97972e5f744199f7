# Gathers, and the tree that allgather begins with.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall

# Every rank's block to `root`, into the call's receive side.
cdef int gather_up_tree(Schedule schedule, CollectiveCall call, int root, Communicator comm) except -1
