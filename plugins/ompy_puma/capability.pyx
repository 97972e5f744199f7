# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Capabilities: who may send where.  See `capability.pxd`."""
from libc.stdlib cimport calloc, free


cdef class Capability:
    """A right to send.  Made by the PCT."""


cdef class GroupCapability(Capability):
    """To any portal of any process of a group.

    Parameters:
        group: number of the process group.
        members: (node, process) of each rank in turn; process is its index in that node's context table.
    """

    def __init__(self, uint32_t group, members):
        cdef Py_ssize_t rank
        members = list(members)
        self.group = group
        self.size = len(members)
        self.members = <Member *> calloc(max(len(members), 1), sizeof(Member))
        if self.members == NULL:
            raise MemoryError(f"no memory for a group of {len(members)} processes")
        for rank, (node, process) in enumerate(members):
            self.members[rank] = Member(node, process)
        self.links = [None] * len(members)

    def __dealloc__(self):
        free(self.members)

    @property
    def pairs(self):
        """(node, process) of each rank, for other PCTs."""
        return [(self.members[rank].node, self.members[rank].process) for rank in range(self.size)]


cdef class PortalCapability(Capability):
    """To one portal of one process.

    Parameters:
        group: of that process.
        node, process: where it is.
        portal: the only one that may be sent to.
    """

    def __init__(self, uint32_t group, uint32_t node, uint16_t process, uint16_t portal):
        self.group = group
        self.member = Member(node, process)
        self.portal = portal
