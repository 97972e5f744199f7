# The dynamic block: a heap that the kernel fills with letters and its owner empties (Puma, 4.1 and figure 4).
#
#     | Heap | letter | free block | letter | free ... |        letters in order of arrival: oldest -> ... -> newest
#              ^oldest                ^newest                   free blocks in order of address
#
# All of it lies in the owner's memory.  Places are offsets from the heap's start, 0 for none.  The kernel appends at the
# `newest` letter, so it never walks that list; it walks the free blocks, and gives up when an address does not grow.
from libc.stdint cimport uint32_t, uint64_t

from ompy_puma.header cimport Header
from ompy_puma.match_list cimport MatchEntry

cpdef enum:
    LETTER_ARRIVING = 1         # in its place in the order; the body is not whole yet
    LETTER_WHOLE = 2
    LETTER_LOST = 3             # the rest of the body will never come

cdef struct Heap:
    uint64_t length                              # of the whole block
    uint64_t oldest, newest                      # letters
    uint64_t free                                # lowest free block
    uint64_t letters                             # in the list
    uint64_t used                                # bytes now taken, and the most that ever were
    uint64_t most_used
    uint64_t reserved

cdef struct FreeBlock:
    uint64_t next
    uint64_t size

cdef struct Letter:
    uint64_t size                                # of its block
    uint64_t older, newer
    uint32_t state
    uint32_t listed                              # 0 once detached
    uint64_t length                              # bytes of body behind it; 0 where headers only are saved
    Header header
    # the body follows


# Bytes that a letter with so much body takes out of the heap.
cdef inline uint64_t letter_size(uint64_t body) noexcept nogil:
    return (sizeof(Letter) + body + 15) // 16 * 16


cdef inline char *letter_body(Letter *letter) noexcept nogil:
    return <char *> (letter + 1)

# -- the owner's side
# Makes `length` bytes at `start` (16-byte aligned) an empty heap.
cdef int format_heap(char *start, uint64_t length) except -1
cdef Letter *oldest_letter(char *start) noexcept nogil
cdef Letter *newer_letter(char *start, Letter *letter) noexcept nogil
# The oldest letter that an entry would take, or NULL.
cdef Letter *find_letter(char *start, const MatchEntry *entry) noexcept nogil
# Out of the list, memory kept: for matched probes.
cdef void detach_letter(char *start, Letter *letter) noexcept nogil
# Memory back (and out of the list, if it is still there).
cdef void release_letter(char *start, Letter *letter) noexcept nogil

# -- the kernel's side: trusts nothing that it reads.  NULL: no block is large enough, or the lists are broken.
cdef Letter *allocate_letter(char *start, uint64_t length, uint64_t body, bint *broken) noexcept nogil
# Slides whole letters down over free blocks; False: nothing could be gained, or the blocks are broken.
cdef bint compact_heap(char *start, uint64_t length) noexcept nogil
