# The shared memory of one communicator, and the one pattern of all its collectives: *put up* a contribution, *look at*
# those of others, be *done*.
#
# Steps are numbered alike on every rank (`step`).  In each step a rank may put one contribution up, in one of its slots:
#
#     rank 0   | slot 0 | slot 1 | ... | slot 7 |          step n stands in slot n mod 8;
#     rank 1   | slot 0 | slot 1 | ... | slot 7 |          up to 4 KiB inline, more in one of four chunks
#     done     |  n  |  n-2  |                             a line a rank
#
# The first line of a slot holds the step's number and the first 40 bytes, so that a short contribution is one cache line.
# A slot is used again once every rank is done with the step that stood in it: a rank runs at most so many steps ahead.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport acquire, acquire32, release
from ompy.core.communicator cimport Communicator
from ompy.core.progress cimport ProgressSource
from ompy.core.request cimport Request
from ompy.core.segment cimport Segment

cdef enum:
    LINE = 64
    SLOTS = 8
    SLOT_SIZE = 4096
    SHORT = SLOT_SIZE - 24                       # bytes of a contribution that stands in its slot
    CHUNKS = 4
    CARD_SIZE = 256
    HEADER = 64

cdef struct Slot:
    uint64_t step                                # whose contribution stands here
    uint64_t second                              # the same of the second stage, where a collective has two
    uint64_t length                              # bytes of all the rank's pieces, so that differences are noticed
    char data[SHORT]

cdef struct Header:
    uint32_t blocked                             # ranks that wait for somebody to be done


cdef class Area(ProgressSource):
    cdef Segment segment
    cdef readonly int rank, size
    cdef readonly size_t chunk                   # bytes of a chunk
    cdef uint64_t step                           # of this rank
    cdef uint64_t floor                          # every rank is known to be done with this step
    cdef Header *header
    cdef char *done_lines
    cdef char *slots
    cdef char *chunks
    cdef list doorbells                          # RemoteDoorbell of each peer, None of this rank
    cdef int spins
    cdef bint crowded
    cdef Request shown                           # on the job board
    cdef const uint64_t *awaited                 # what `ready` looks at, NULL for nothing
    cdef uint64_t awaited_step

    cdef inline Slot *slot(self, int rank) noexcept:
        """The slot of the present step."""
        return <Slot *> (self.slots + (rank * SLOTS + self.step % SLOTS) * SLOT_SIZE)

    cdef inline char *place(self, int rank, size_t nbytes) noexcept:
        """Where a contribution of so many bytes stands."""
        if nbytes <= SHORT:
            return self.slot(rank).data
        return self.chunks + (rank * CHUNKS + self.step % CHUNKS) * self.chunk

    cdef inline uint64_t *done_of(self, int rank) noexcept:
        return <uint64_t *> (self.done_lines + rank * LINE)

    cdef inline char *claim(self, size_t nbytes) except NULL:
        """Begin a step; where this rank's contribution of at most so many bytes is to be written."""
        cdef uint64_t depth = SLOTS if nbytes <= SHORT else CHUNKS
        self.step += 1
        if self.step > self.floor + depth:
            self.raise_floor(self.step - depth)
        return self.place(self.rank, nbytes)

    cdef inline int put_up(self, uint64_t length) except -1:
        """What was written is there for the others."""
        self.slot(self.rank).length = length
        release(&self.slot(self.rank).step, self.step)
        return self.ring()

    cdef inline char *look_at(self, int rank, size_t nbytes) except NULL:
        """The contribution of a rank, as soon as it is there."""
        self.length_of(rank)
        return self.place(rank, nbytes)

    cdef inline uint64_t length_of(self, int rank) except? 0xFFFFFFFFFFFFFFFF:
        """Bytes that a rank contributes in all, as soon as its present contribution is there."""
        if acquire(&self.slot(rank).step) != self.step:
            self.wait_for(&self.slot(rank).step, self.step, rank)
        return self.slot(rank).length

    cdef inline int end(self) except -1:
        """This rank has seen all that it wanted to of this step."""
        release(self.done_of(self.rank), self.step)
        if acquire32(&self.header.blocked):
            self.ring()
        return 0

    cdef inline void met(self) noexcept:
        """Every rank was seen in this step: it is done with those before."""
        self.floor = self.step - 1

    cdef int put_up_second(self) except -1
    cdef int look_at_second(self, int rank) except -1
    cdef int ring(self) except -1
    cdef int wait_for(self, const uint64_t *word, uint64_t step, int rank) except -1
    cdef int raise_floor(self, uint64_t step) except -1
    cdef int connect(self, list cards) except -1
    cdef int close(self) except -1


cdef size_t bytes_needed(int size, size_t chunk) noexcept
