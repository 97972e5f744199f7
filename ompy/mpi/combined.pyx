# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""One request for several operations: a send and a receive (MPI-4.1, 3.7.2), the messages of a flush (3.6)."""


cdef int part_is_over(object context, Request part) except -1:
    cdef CombinedRequest combined = <CombinedRequest> context
    combined.pending -= 1
    if part.error is not None and combined.error is None:
        combined.error = part.error
    if combined.pending == 0:
        if combined.reported is not None:
            combined.status = combined.reported.status
        return combined.finish()
    return 0


cdef CombinedRequest combine(list parts, Request reported, bint owns_parts):
    cdef CombinedRequest combined = CombinedRequest.__new__(CombinedRequest)
    cdef Request part
    combined.begin()
    combined.parts = parts
    combined.reported = reported
    combined.owns_parts = owns_parts
    # One more than there are parts, so that it can't be over before all of them are counted.
    combined.pending = len(parts) + 1
    for part in parts:
        if combined.communicator is None:
            combined.communicator = part.communicator
            combined.operation = part.operation
        if part.complete:
            combined.pending -= 1
            if part.error is not None and combined.error is None:
                combined.error = part.error
        else:
            part.watch(part_is_over, combined)
    combined.pending -= 1
    if combined.pending == 0:
        if reported is not None:
            combined.status = reported.status
        combined.finish()
    return combined


cdef class CombinedRequest(Request):
    """Complete when all its parts are."""

    cpdef int cancel(self) except -1:
        cdef Request part
        for part in self.parts:
            if not part.complete:
                part.cancel()
        return 0

    cpdef int release(self) except -1:
        cdef Request part
        if self.complete and self.owns_parts:
            self.reported = None
            while self.parts:
                part = self.parts.pop()
                part.conclude(NULL)
        return Request.release(self)
