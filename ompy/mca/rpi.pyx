# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of request progression interfaces.  The contract is in `rpi.pxd`."""

interface = INTERFACE


cdef class Outgoing(MessageRequest):
    """A message to be sent."""

    cdef int fetch(self, uint32_t *words, size_t length) except -1:
        raise NotImplementedError

    cdef int sent(self) except -1:
        raise NotImplementedError


cdef class Incoming(MessageRequest):
    """A receive that waits for a message."""

    cdef int matched(self, const Envelope *envelope) except -1:
        raise NotImplementedError

    cdef int take(self, const char *data, size_t length) except -1:
        raise NotImplementedError

    cdef int arrived(self) except -1:
        raise NotImplementedError


cdef class Detached:
    """A message that a matched probe took."""


cdef class MpiLayer:
    """What a component calls above it."""

    cdef int acknowledged(self, const Envelope *envelope) except -1:
        raise NotImplementedError

    cdef int settle(self) except -1:
        raise NotImplementedError


cdef class Rpi(ProgressSource):
    """Base of request progression interfaces.

    Parameters:
        name: the component's.
        limits: what its wire format can't carry: {"message_bytes": ..., "processes": ...}.
    """

    def __init__(self, str name not None, dict limits not None):
        self.name = name
        self.limits = limits

    cpdef int begin(self, MpiLayer layer) except -1:
        """Messages may come from now on."""
        self.layer = layer
        return 0

    cdef int start_send(self, Outgoing request) except -1:
        raise NotImplementedError

    cdef int send(self, Outgoing request) except -1:
        return self.start_send(request)

    cdef int start_receive(self, Incoming request) except -1:
        raise NotImplementedError

    cdef bint cancel_receive(self, Incoming request) except -1:
        raise NotImplementedError

    cdef bint probe(self, Incoming wanted, Envelope *found) except -1:
        raise NotImplementedError

    cdef Detached detach(self, Incoming wanted):
        raise NotImplementedError

    cdef int receive_detached(self, Incoming request, Detached message) except -1:
        raise NotImplementedError

    cdef int close_scope(self, uint32_t scope) except -1:
        return 0

    cpdef dict dump(self):
        """Posted receives and messages that nobody has asked for."""
        return {"posted": [], "unexpected": []}

    cpdef dict statistics(self):
        """Name -> number, for people."""
        return {}

    cpdef int finalize(self) except -1:
        """Nothing is left behind."""
        return 0
