# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
"""Who may touch one rank's window memory.  See `locks.pxd`."""


cdef class LockQueue:
    """The locks of one rank's window memory."""

    def __cinit__(self):
        self.holders = set()
        self.waiting = []

    cdef bint ask(self, int rank, int number, bint shared) except -1:
        if not self.waiting and (not self.holders or (shared and not self.exclusive)):
            self.holders.add(rank)
            self.exclusive = not shared
            return True
        self.waiting.append((rank, number, shared))
        return False

    cdef list release(self, int rank):
        cdef list answered = [(waiting, number) for waiting, number, _ in self.waiting if waiting == rank]
        self.waiting = [asked for asked in self.waiting if asked[0] != rank]
        self.holders.discard(rank)
        return answered + self.grant()

    cdef tuple note_failures(self, gone):
        cdef list refused = [], granted = []
        self.waiting = [asked for asked in self.waiting if asked[0] not in gone]
        while self.waiting:
            granted += self.grant()
            if not self.waiting or self.holders.isdisjoint(gone):
                break
            rank, number, _ = self.waiting.pop(0)
            refused.append((rank, number))
        return refused, granted

    cdef list grant(self):
        """Those whose turn it is have it."""
        cdef list granted = []
        while self.waiting:
            rank, number, shared = self.waiting[0]
            if self.holders and (self.exclusive or not shared):
                break
            del self.waiting[0]
            self.holders.add(rank)
            self.exclusive = not shared
            granted.append((rank, number))
        return granted
