# The Raw chip's network as a byte transport.  A send writes its whole fragment to the network; while that is stalled, the
# GDN_AVAIL interrupt takes what arrives into memory, so no two tiles can wait for each other with full buffers.
#
# Time is the chip's.  A rank that waits inside MPI waits in cycles: `progress` posts "until a word arrives" and the engine
# sleeps until the chip has reached that cycle.  A rank that only looks (`Test`, `Iprobe`) pays for each look, so that a loop
# of looks makes time pass.  What a program computes between MPI calls takes no cycle.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.btl cimport Btl
from ompy_btl_gdn.endpoint cimport Assembly, GdnEndpoint
from ompy_raw.chip cimport TileState
from ompy_raw.tile cimport Tile

# What a waiter watches without the GIL.
cdef struct Watch:
    TileState *tile
    bint posted                                  # a wait on the tile
    bint busy                                    # a thread is inside, perhaps without the GIL
    Py_ssize_t fresh                             # words in memory that nobody has looked at


cdef class GdnBtl(Btl):
    cdef readonly Tile tile
    cdef object context
    cdef bytes job
    cdef Watch watched
    cdef unsigned long long events_seen
    cdef uint32_t *run                           # the fragment being sent, in words
    cdef Py_ssize_t run_room
    cdef uint32_t *arrived                       # words taken from the network, from `first` on still to be looked at
    cdef Py_ssize_t first, arrived_count, arrived_room
    cdef list assemblies                         # of each tile
    cdef dict endpoints                          # tile -> GdnEndpoint
    cdef double next_look                        # for dead processes, seconds
    cdef object failure
    cdef uint64_t sent, received, bytes_sent, bytes_received

    # Puts a fragment's packets into `run`; returns the words.
    cdef Py_ssize_t pack(self, int destination, const char *header, size_t header_size, const char *payload,
                         size_t payload_size, int tag) except -1
    # Takes what is at the input into memory.
    cdef int take(self) except -1
    cdef int hand_over(self) except -1
    cdef int begin_wait(self) except -1
    cdef int call_off(self) except -1
    cdef int compact(self) noexcept
    cdef int fail(self, object error) except -1
