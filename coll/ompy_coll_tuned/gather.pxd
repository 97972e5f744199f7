# Gathers, and what an allgather may begin with.
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap
from ompy.mca.coll_layout cimport Layout
from ompy_coll_tuned.tree cimport Tree

# Every place's block, `count` elements at `own`, to `target` at the top, in the order of ranks; `in_place`: the top's is
# there already.  `target` is looked at at the top only.
cdef int gather_up(Schedule schedule, size_t own, Py_ssize_t count, Typemap typemap, bint in_place, Layout *target, Tree tree,
                   Communicator comm) except -1
