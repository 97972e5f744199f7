# One peer on this host: the ring towards it, the ring from it, its doorbell.
from libc.stdint cimport uint64_t

from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.reach cimport Reach
from ompy.core.segment cimport Segment
from ompy.mca.btl cimport Endpoint
from ompy_btl_sm.ring cimport Reader, Writer
from ompy_btl_sm.ring_copy cimport LongWrites


cdef class Card:
    """What a process publishes: where it is, how to announce a ring to it, how to wake it."""
    cdef readonly int pid
    cdef readonly str host                       # processes of equal `host` can share memory
    cdef readonly bytes inbox, doorbell
    cdef readonly int slots
    cdef readonly size_t probe_address           # of PROBE, in the process's memory
    cdef readonly bytes heap                     # where its shared heap is; b"" for none
    cdef readonly size_t heap_address, heap_size


cdef class Incoming:
    """A ring from a peer, known from the moment the peer announces it, before we may have met the peer."""
    cdef Reader reader
    cdef Segment segment
    cdef readonly int pid
    cdef SmEndpoint endpoint                     # None until `add_procs`
    cdef RemoteDoorbell doorbell

    # Returns space; wakes the writer when it waits for it.
    cdef int give_back(self) except -1
    cdef int close(self) except -1


cdef class SmEndpoint(Endpoint):
    cdef readonly Card card
    cdef Writer writer
    cdef Segment segment                         # of that ring
    cdef LongWrites long_writes                  # into it
    cdef bint connecting                         # some thread is
    cdef bint connected                          # the peer knows of it
    cdef RemoteDoorbell doorbell
    cdef Incoming incoming                       # None until the peer has announced its ring
    cdef Segment heap                            # the peer's, from the first transfer on that needs it
    cdef Reach reach
    cdef readonly object failure

    # Makes the ring and announces it; False: try again later.
    cdef bint connect(self, size_t ring_size, str backing, bytes own_doorbell) except -1
    cdef int watch(self) except -1
    # Whether memory of the peer's lies in its heap, which is mapped now if it was not.
    cdef bint sees(self, uint64_t address, size_t size) except -1
    # Gone without closing its rings?
    cdef bint is_dead(self) except -1
    cdef object reason(self, object error)       # why it can't be reached: it has died, or else `error`
    cdef bint is_found(self) except -1           # the peer reads from our ring, or never will
    cdef int close(self) except -1
