# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Long copies that sender and receiver share out; see `joint_copy.pxd`."""
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport release32

cdef extern from *:
    """
    static uint64_t ompy_draw(uint64_t *number) { return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED); }
    static void ompy_set(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
    static uint32_t ompy_get(uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
    """
    uint64_t draw "ompy_draw"(uint64_t *number) noexcept nogil
    void set_word "ompy_set"(uint32_t *word, uint32_t value) noexcept nogil
    uint32_t word_at "ompy_get"(uint32_t *word) noexcept nogil

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    SMALLEST_PIECE = 16384
    LARGEST_PIECE = 131072
    PIECES = 16
    MOST_OFFERS = 0x7FFFFFFF                     # then their numbers begin again; 0 is none
    LOOKS = 2000                                 # at a helper's word before the core is offered to others


cdef int receive_jointly(JointCopy *joint, uint64_t source, size_t target, size_t size, void *peer, MoveFunction move,
                         GoneFunction gone) noexcept nogil:
    cdef uint64_t piece = min(max(<uint64_t> (size // PIECES) & ~<uint64_t> 4095, <uint64_t> SMALLEST_PIECE),
                              <uint64_t> LARGEST_PIECE)
    cdef uint64_t offset
    cdef int error = 0
    cdef int look = 0
    joint.source = source
    joint.target = target
    joint.size = size
    joint.piece = piece
    joint.next = 0
    joint.failed = 0
    joint.offers = joint.offers % MOST_OFFERS + 1
    release32(&joint.open, joint.offers)
    while error == 0:
        offset = draw(&joint.next) * piece
        if offset >= size:
            break
        error = move(peer, target + offset, source + offset, min(piece, size - offset), True)
    set_word(&joint.open, 0)
    while word_at(&joint.helping):
        look += 1
        if look % LOOKS == 0:
            if gone(peer):
                joint.failed = 1
                break
            sched_yield()
    if error == 0 and joint.failed:
        error = move(peer, target, source, size, True)
    return error


cdef bint begin_helping(JointCopy *joint) noexcept nogil:
    # Said before the offer is looked at again, as the receiver withdraws it before it looks at this.
    set_word(&joint.helping, 1)
    return word_at(&joint.open) != 0


cdef void end_helping(JointCopy *joint) noexcept nogil:
    release32(&joint.helping, 0)


cdef int help_along(JointCopy *joint, void *peer, MoveFunction move) noexcept nogil:
    cdef uint64_t offset
    cdef int pieces = 0
    while True:
        offset = draw(&joint.next) * joint.piece
        if offset >= joint.size:
            return pieces
        if move(peer, joint.source + offset, joint.target + offset, min(joint.piece, joint.size - offset), False):
            joint.failed = 1
        pieces += 1
