# One peer on this host: the ring towards it, the ring from it, its doorbell.
from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.segment cimport Segment
from ompy.mca.btl cimport Endpoint
from ompy_btl_sm.ring cimport Reader, Writer


cdef class Card:
    """What a process publishes: where it is, how to announce a ring to it, how to wake it."""
    cdef readonly int pid
    cdef readonly str host                       # processes of equal `host` can share memory
    cdef readonly bytes inbox, doorbell
    cdef readonly int slots
    cdef readonly size_t probe_address           # of PROBE, in the process's memory


cdef class Incoming:
    """A ring from a peer, known from the moment the peer announces it, before we may have met the peer."""
    cdef Reader reader
    cdef Segment segment
    cdef readonly int slot, pid
    cdef SmEndpoint endpoint                     # None until `add_procs`
    cdef RemoteDoorbell doorbell

    # Returns space; wakes the writer when it waits for it.
    cdef int give_back(self) except -1
    cdef int close(self) except -1


cdef class SmEndpoint(Endpoint):
    cdef readonly Card card
    cdef Writer writer
    cdef Segment segment                         # of that ring
    cdef bint connecting                         # some thread is
    cdef bint connected                          # the peer knows of it
    cdef RemoteDoorbell doorbell
    cdef Incoming incoming                       # None until the peer has announced its ring
    cdef int pidfd                               # readable once the peer is gone; -1 when not watched
    cdef readonly object failure

    # Makes the ring and announces it; False: try again later.
    cdef bint connect(self, size_t ring_size, str backing, bytes own_doorbell) except -1
    cdef int watch(self) except -1
    # Gone without closing its rings?
    cdef bint is_dead(self) except -1
    cdef int close(self) except -1
