# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version I's Outstanding Messages Structure: look-ups walk lists, O(N) in the messages of a source."""
from ompy.core.constants cimport ANY_SOURCE


cdef class OutstandingMessages:
    """Lists of tags, by source.

    Parameters:
        processes: how many sources there may be.
    """

    def __cinit__(self, int processes):
        self.heads = [None] * processes

    cdef int add(self, Stored message) except -1:
        cdef TagNode node = TagNode.__new__(TagNode)
        cdef TagNode last = self.heads[message.envelope.source]
        node.tag = message.envelope.tag
        node.message = message
        message.place = node
        self.visited = 1
        if last is None:
            self.heads[message.envelope.source] = node
            return 0
        while last.next is not None:
            last = last.next
            self.visited += 1
        last.next = node
        node.previous = last
        return 0

    cdef int remove(self, Stored message) except -1:
        cdef TagNode node = message.place
        if node.previous is None:
            self.heads[message.envelope.source] = node.next
        else:
            node.previous.next = node.next
        if node.next is not None:
            node.next.previous = node.previous
        node.previous = node.next = None
        message.place = None
        return 0

    cdef Stored unfinished(self, int source, int tag):
        cdef TagNode node = self.heads[source]
        self.visited = 0
        while node is not None:
            self.visited += 1
            if node.tag == tag and not node.message.done:
                return node.message
            node = node.next
        return None

    cdef Stored find_from(self, int source, Incoming wanted):
        cdef TagNode node = self.heads[source]
        while node is not None:
            self.visited += 1
            if node.message.claimant is None and wanted.takes(&node.message.envelope):
                return node.message
            node = node.next
        return None

    cdef Stored find(self, Incoming wanted):
        cdef Stored message
        cdef int source
        self.visited = 0
        if wanted.world_source != ANY_SOURCE:
            return self.find_from(wanted.world_source, wanted)
        for source in range(<int> len(self.heads)):
            message = self.find_from(source, wanted)
            if message is not None:
                return message
        return None

    cdef list messages(self):
        cdef TagNode node
        found = []
        for node in self.heads:
            while node is not None:
                found.append(node.message)
                node = node.next
        return found
