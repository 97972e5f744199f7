# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Trees over the ranks of a communicator.  What they look like is in `tree.pxd`."""
cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcpy

from ompy.core.communicator cimport Communicator


@cython.freelist(4)
cdef class Tree:
    """One rank's place in a tree."""

    def __cinit__(self):
        self.children = self.few
        self.capacity = FEW

    def __dealloc__(self):
        if self.children != self.few:
            PyMem_Free(self.children)

    cdef int add(self, int child) except -1:
        cdef int *larger
        if self.count == self.capacity:
            larger = <int *> PyMem_Malloc(2 * self.capacity * sizeof(int))
            if larger == NULL:
                raise MemoryError()
            memcpy(larger, self.children, self.count * sizeof(int))
            if self.children != self.few:
                PyMem_Free(self.children)
            self.children = larger
            self.capacity *= 2
        self.children[self.count] = child
        self.count += 1
        return 0

    cdef int branch(self, Shape shape, int fanout) except -1:
        """The children of `place`, whose subtree ends at `end`."""
        cdef int below = self.end - self.place - 1
        cdef int first = self.place + 1
        cdef int parts, part, step = 1
        self.count = 0
        if shape == KNOMIAL:
            while step <= below:
                for part in range(1, fanout):
                    if part * step <= below:
                        self.add(self.place + part * step)
                step *= fanout
            return 0
        if shape == BINARY:
            parts = 2
        elif self.parent >= 0:
            parts = 1
        else:
            parts = below if shape == LINEAR else fanout
        parts = min(parts, below)
        for part in range(parts):
            self.add(first + part * (below // parts) + min(part, below % parts))
        return 0


cdef Tree make_tree(Shape shape, int fanout, int top, Communicator comm):
    cdef Tree tree = Tree.__new__(Tree)
    cdef int wanted = (comm.rank - top + comm.size) % comm.size
    cdef int child
    tree.top = top
    tree.size = comm.size
    tree.end = comm.size
    tree.parent = -1
    tree.branch(shape, fanout)
    while tree.place != wanted:
        # Into the subtree that holds the place.
        child = tree.count - 1
        while tree.children[child] > wanted:
            child -= 1
        tree.end = tree.child_end(child)
        tree.parent = tree.place
        tree.place = tree.children[child]
        tree.branch(shape, fanout)
    return tree
