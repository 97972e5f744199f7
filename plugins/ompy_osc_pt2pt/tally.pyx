# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Words awaited from a set of ranks.  See `tally.pxd`."""
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport CompletedRequest, Request


cdef class Tally:
    """Words that have come from each rank of a communicator.

    Parameters:
        communicator: whose ranks they are.
        gone: rank -> why no word of it will come any more.
        patient: wait for the others' words all the same.
    """

    def __init__(self, Communicator communicator not None, dict gone not None, bint patient=False):
        self.communicator = communicator
        self.gone = gone
        self.patient = patient
        self.counts = [0] * communicator.size
        self.missing = set()

    cdef int add(self, int rank) except -1:
        cdef Request request = self.request
        if request is None or rank not in self.missing:
            self.counts[rank] += 1
            return 0
        self.missing.discard(rank)
        if self.missing:
            request.peer = next(iter(self.missing))
            return 0
        return self.end()

    cdef int end(self) except -1:
        cdef Request request = self.request
        error, self.request, self.error = self.error, None, None
        return request.finish() if error is None else request.fail(error)

    cdef Request need(self, list ranks, int operation):
        cdef Request request
        for rank in ranks:
            if self.counts[rank]:
                self.counts[rank] -= 1
            else:
                self.missing.add(rank)
        if not self.missing:
            return CompletedRequest()
        request = Request()
        request.begin()
        request.operation = operation
        request.communicator = self.communicator
        request.peer = next(iter(self.missing))
        self.request = request
        self.note_failures()
        return request

    cdef int put_back(self, list ranks) except -1:
        for rank in ranks:
            if rank not in self.missing:
                self.counts[rank] += 1
        self.missing.clear()
        self.request = None
        return 0

    cdef int note_failures(self) except -1:
        for rank, error in self.gone.items():
            if rank not in self.missing:
                continue
            if not self.patient:
                return self.fail(error)
            self.missing.discard(rank)
            self.error = self.error or error
        if self.error is None:
            return 0
        if not self.missing:
            return self.end()
        self.request.peer = next(iter(self.missing))
        return 0

    cdef int fail(self, object error) except -1:
        cdef Request request = self.request
        self.request = self.error = None
        if request is not None:
            request.fail(error)
        return 0

    cdef int forget(self) except -1:
        self.missing.clear()
        return 0
