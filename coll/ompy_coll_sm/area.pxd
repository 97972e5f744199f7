# The shared memory of one communicator, and the one pattern of all its collectives: *put up* a contribution, *look at*
# those of others, be *done*.
#
# Steps are numbered alike on every rank (`step`).  In each step a rank may put one contribution up:
#
#     rank 0   lines   | line 0 | line 1 | ... | line 63 |      step n stands in line n mod 64, and
#              ring    | ...... n - 1 | n ...........    |      from 41 bytes on in the ring: the line says where
#     rank 1   lines   | line 0 | ...
#     control  | done: n | done: n - 2 |                        a rank's own words
#
# A line holds the step's number and a short contribution, so that one cache line is all that crosses.  A rank that leaves a
# collective already fetches the next line of its own, which takes as long as a crossing: others have read it.  For the same
# reason it does not look at what it has put up itself, where it has that elsewhere.
#
# A place is used again once every rank is done with the step that stood in it: a rank runs at most so far ahead, 64 short
# contributions or a ring of longer ones.  Where data go one way (bcast, reduce, scan) that is what ranks that share a core
# need: each takes many steps in its turn.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport acquire, acquire32, fetch_to_write, release
from ompy.core.communicator cimport Communicator
from ompy.core.doorbell cimport Bell, after_publishing
from ompy.core.progress_source cimport ProgressSource
from ompy.core.request cimport Request

cdef enum:
    LINE = 64
    LINES = 64
    INLINE = LINE - 24                           # bytes of a contribution that stand in its line
    SHORT = 4096                                 # bytes of a contribution that is neither cut nor taken in two stages
    CARD_SIZE = 256
    HEADER = 64

cdef struct Line:
    uint64_t step                                # whose contribution stands here
    uint64_t length                              # bytes of all the rank's pieces, so that differences are noticed
    uint64_t begin                               # where in the ring, unless it stands here
    char data[INLINE]

cdef struct Kept:
    uint64_t step
    uint64_t begin                               # in bytes ever taken of the ring

cdef struct Control:
    uint64_t done                                # with this step and those before
    char padding[LINE - 8]
    uint64_t second                              # step whose second stage is put up, where a collective has two
    uint32_t core                                # where the rank last waited, from 1 on
    char more_padding[LINE - 12]

cdef struct Header:
    uint32_t blocked                             # ranks that sleep until somebody is done
    uint32_t left                                # ranks that use the area no more, but for rank 0: see `arena.pxd`


cdef class Area(ProgressSource):
    cdef readonly int rank, size
    cdef readonly size_t chunk                   # bytes of the longest contribution
    cdef size_t ring_size
    cdef uint64_t step                           # of this rank
    cdef uint64_t floor                          # every rank is known to be done with this step
    cdef Header *header
    cdef Control *controls
    cdef Line *lines
    cdef char *rings
    cdef Kept kept[LINES]                        # what may still stand in this rank's ring, from the oldest on
    cdef uint64_t kept_first, kept_end
    cdef uint64_t taken                          # bytes of the ring, ever
    cdef uint64_t begin                          # of what was claimed last
    cdef list doorbells                          # RemoteDoorbell of each peer
    cdef Bell **bells                            # theirs
    cdef int spins
    cdef bint crowded
    cdef Request shown                           # on the job board
    cdef const uint64_t *awaited                 # what `ready` looks at, NULL for nothing
    cdef uint64_t awaited_step

    cdef inline Line *line(self, int rank) noexcept:
        """The line of the present step."""
        return self.lines + rank * LINES + self.step % LINES

    cdef inline char *place(self, int rank, size_t nbytes) noexcept:
        """Where a contribution of so many bytes, which was put up, stands."""
        if nbytes <= INLINE:
            return self.line(rank).data
        return self.rings + rank * self.ring_size + self.line(rank).begin

    cdef inline char *claim(self, size_t nbytes) except NULL:
        """Begin a step; where this rank's contribution of at most so many bytes is to be written."""
        self.step += 1
        if nbytes > INLINE:
            return self.claim_long(nbytes)
        if self.step > self.floor + LINES:
            self.raise_floor(self.step - LINES, True)
        return self.line(self.rank).data

    cdef inline int put_up(self, uint64_t length) except -1:
        """What was written is there for the others.  All of the line is written at once: others look at it meanwhile."""
        cdef Line *line = self.line(self.rank)
        line.length = length
        line.begin = self.begin
        release(&line.step, self.step)
        return self.ring()

    cdef inline char *look_at(self, int rank, size_t nbytes) except NULL:
        """The contribution of a rank, as soon as it is there."""
        self.length_of(rank)
        return self.place(rank, nbytes)

    cdef inline uint64_t length_of(self, int rank) except? 0xFFFFFFFFFFFFFFFF:
        """Bytes that a rank contributes in all, as soon as its present contribution is there."""
        cdef Line *line = self.line(rank)
        if acquire(&line.step) != self.step:
            self.wait_for(&line.step, self.step, rank)
        return line.length

    cdef inline int end(self) except -1:
        """This rank has seen all that it wanted to of this step."""
        fetch_to_write(self.lines + self.rank * LINES + (self.step + 1) % LINES)
        release(&self.controls[self.rank].done, self.step)
        after_publishing()
        if acquire32(&self.header.blocked):
            self.ring()
        return 0

    cdef inline void met(self) noexcept:
        """Every rank was seen in this step: it is done with those before."""
        self.floor = self.step - 1

    cdef inline int ring(self) except -1:
        """Wake those who sleep."""
        cdef int peer
        after_publishing()
        for peer in range(self.size - 1):
            if self.bells[peer].armed:
                self.wake_up(peer)
        return 0

    cdef int wake_up(self, int peer) except -1
    cdef int put_up_second(self) except -1
    cdef int look_at_second(self, int rank) except -1
    cdef int wait_for(self, const uint64_t *word, uint64_t step, int rank) except -1
    cdef bint spin(self, const uint64_t *word, uint64_t step) except -1
    cdef bint take_turns(self, const uint64_t *word, uint64_t step) except -1
    cdef bint core_is_wanted(self, uint32_t core) noexcept
    cdef uint32_t sit_down(self) noexcept
    cdef char *claim_long(self, size_t nbytes) except NULL
    cdef int raise_floor(self, uint64_t needed, bint short) except -1
    cdef int connect(self, list bells) except -1


# Bytes of an area, and of its words: what stands before the rings, and must be zero at first.
cdef size_t bytes_needed(int size, size_t chunk) noexcept
cdef size_t words_needed(int size) noexcept
