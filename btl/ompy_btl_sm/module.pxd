# Shared memory between processes of one user on one host.  See `ring.pxd` for how messages travel.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.btl cimport Btl, Descriptor, Endpoint
from ompy_btl_sm.endpoint cimport Incoming, SmEndpoint
from ompy_btl_sm.inbox cimport Inbox
from ompy_btl_sm.ring cimport Reader, Writer
from ompy_btl_sm.ring_copy cimport RingCopy

# What a waiter watches without the GIL.
cdef struct Watch:
    uint32_t *changes                            # of the inbox
    uint32_t seen
    int reader_count
    Reader **readers
    int blocked_count
    Writer **blocked                             # writers that somebody wants to go on with


cdef class SmBtl(Btl):
    cdef public size_t ring_size
    cdef public str backing
    cdef public object on_fallback               # called with a line for people when single copy turns out not to work
    cdef public object on_lack                   # called with a line for people when something must wait for descriptors
    cdef public object on_choice                 # called with a line for people when `ring_copy` finds another way quicker
    cdef public object reservation               # room for rings in files, see `reservation.py`; None elsewhere
    cdef Inbox inbox
    cdef bytes own_doorbell
    cdef str host
    cdef Watch watched
    cdef int capacity                            # of the arrays in `watched`
    cdef list incoming                           # Incoming, in the order of `watched.readers`
    cdef dict endpoints                          # pid -> SmEndpoint
    cdef list leaving                            # SmEndpoint given back, whose peer has not found our ring yet
    cdef bint postponed                          # a ring that was announced could not be opened yet
    cdef double next_look                        # when peers are next looked at, seconds
    cdef bint kernel_copies                      # of memory outside heaps
    cdef tuple heap                              # location, address and size of this process's shared heap, or None
    cdef RingCopy ring_copy
    cdef size_t joint_size                       # bytes from which on both sides work at a get; 0: never
    cdef uint64_t sent, received, bytes_sent, bytes_received, refused, copied_by_kernel, copied_in_heap, pieces_helped, streamed

    cdef int accept(self) except -1
    cdef int tell_choice(self, SmEndpoint endpoint) except -1
    cdef int see_off(self) except -1
    cdef int drop_incoming(self, Incoming incoming) except -1
    cdef int drain(self, Incoming incoming, uint64_t head) except -1
    cdef int unblock(self) except -1
    cdef int unblock_writer(self, SmEndpoint endpoint) except -1
    cdef int cannot_write(self, SmEndpoint endpoint) except -1
    cdef int make_room(self) except -1
    cdef int copied(self, Descriptor descriptor, int status, bint in_heap) except -1
    cdef int help_with(self, Incoming incoming) except -1
    cdef bint still_sends(self, SmEndpoint peer, uint64_t address, uint64_t size) except -1
