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
        while self.waiting:
            rank, number, shared = self.waiting[0]
            if self.holders and (self.exclusive or not shared):
                break
            del self.waiting[0]
            self.holders.add(rank)
            self.exclusive = not shared
            answered.append((rank, number))
        return answered
