# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the MPI layer and the component below it say to each other, besides requests."""
from libc.stdint cimport uint32_t

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rpi cimport KIND_ACKNOWLEDGEMENT


cdef class Confirmed(Outgoing):
    """A send that may wait for an acknowledgement."""

    cdef int sent(self) except -1:
        self.gone = True
        return self.finish() if self.acknowledged or not self.synchronous else 0

    cdef int matched(self) except -1:
        """The receiver has taken the message."""
        self.acknowledged = True
        return self.finish() if self.gone else 0

    cpdef int fail(self, object error) except -1:
        """Complete with an error; an acknowledgement is no longer awaited."""
        if self in self.layer.awaiting:
            self.layer.awaiting.remove(self)
        return Outgoing.fail(self, error)


cdef class Acknowledgement(Outgoing):
    """To a process whose synchronous send was matched: an envelope without data."""

    def __cinit__(self, Layer layer not None, int dest, int tag, uint32_t scope):
        self.contiguous = True
        self.dest = self.peer = dest
        self.envelope = Envelope(layer.rank, tag, scope, KIND_ACKNOWLEDGEMENT, 0)
        self.begin()

    cdef int fetch(self, uint32_t *words, size_t length) except -1:
        return 0

    cdef int sent(self) except -1:
        return self.finish()


cdef class Layer(MpiLayer):
    """Acknowledgements, and who is below.

    Parameters:
        rpi: the component.
        rank: of this process in the world.
    """

    def __init__(self, Rpi rpi not None, int rank):
        self.rpi = rpi
        self.rank = rank
        self.awaiting = []
        self.owed = []

    cdef int owe(self, const Envelope *envelope) except -1:
        self.owed.append(Acknowledgement(self, envelope.source, envelope.tag, envelope.scope))
        return 0

    cdef int acknowledged(self, const Envelope *envelope) except -1:
        cdef Confirmed request
        for request in self.awaiting:
            # Messages of one tag and communicator are matched in the order of their sends.
            if (request.dest == envelope.source and request.envelope.tag == envelope.tag
                    and request.envelope.scope == envelope.scope):
                self.awaiting.remove(request)
                request.matched()
                return 0
        raise MPIError(ERR_INTERN, f"rank {envelope.source} acknowledged a message of tag {envelope.tag} that was not sent")

    cdef int settle(self) except -1:
        if self.settling:
            return 0
        self.settling = True
        try:
            while self.owed:
                self.rpi.start_send(self.owed.pop(0))
        finally:
            self.settling = False
        return 0
