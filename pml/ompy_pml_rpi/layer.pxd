# What requests of both directions share: the component below, and the acknowledgements of synchronous sends.
#
#     Ssend     SYNCHRONOUS  ------------------->   matched: an acknowledgement is owed
#               complete     <---- ACKNOWLEDGEMENT   sent by `settle`
from ompy.mca.rpi cimport Envelope, MpiLayer, Outgoing, Rpi


cdef class Confirmed(Outgoing):
    """A send that is complete when its bytes are gone and, if it is synchronous, its match is acknowledged."""
    cdef Layer layer
    cdef bint synchronous, gone, acknowledged

    cdef int matched(self) except -1


cdef class Layer(MpiLayer):
    cdef readonly Rpi rpi
    cdef int rank                                # in the world
    cdef list awaiting                           # synchronous sends without acknowledgement, oldest first
    cdef list owed                               # acknowledgements to send
    cdef bint settling

    cdef int owe(self, const Envelope *envelope) except -1
