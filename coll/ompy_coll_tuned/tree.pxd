# Trees over the ranks of a communicator, as one rank sees them.
#
# Ranks are counted from the top: place = rank - top, round the end.  Every tree is laid out so that the subtree of a place
# is that place and the ones that follow it, up to `end`; so a message down a scatter's tree is one run of blocks, and a
# reduction that takes a place's children in turn keeps the order of places:
#
#     chain, fanout 2      0 -> 1 -> 2 -> 3      0 -> 4 -> 5 -> 6
#     binary               0 -> 1 -> 2, 3        0 -> 4 -> 5, 6
#     k-nomial, radix 2    0 -> 1    0 -> 2 -> 3    0 -> 4 -> 5    4 -> 6
from ompy.core.communicator cimport Communicator

cdef enum Shape:
    LINEAR                                       # all below the top
    CHAIN                                        # `fanout` chains below the top, of nearly equal length
    BINARY                                       # two halves at each place
    KNOMIAL                                      # radix `fanout`; 2 is the binomial tree

cdef enum:
    FEW = 32                                     # children that need no malloc


cdef class Tree:
    cdef int top, size                           # rank at place 0, and how many places there are
    cdef int place                               # this rank's
    cdef int end                                 # its subtree: place .. end-1
    cdef int parent                              # a place; -1 at the top
    cdef int count                               # of children
    cdef int *children                           # their places, ascending
    cdef int capacity
    cdef int few[FEW]

    cdef int add(self, int child) except -1
    cdef int branch(self, Shape shape, int fanout) except -1

    cdef inline int rank(self, int place) noexcept:
        return (place + self.top) % self.size

    # Where the subtree of a child ends.
    cdef inline int child_end(self, int index) noexcept:
        return self.children[index + 1] if index + 1 < self.count else self.end


cdef Tree make_tree(Shape shape, int fanout, int top, Communicator comm)
