# How this process gets at memory of another one on this host: in place, where that lies in the other's shared heap
# (`heap.pxd`), and everywhere else by a copy of the kernel's (cross memory attach).
from libc.stdint cimport uint64_t

# The other process, for use without the GIL.
cdef struct Reach:
    int pid
    int pidfd                                    # readable once it is gone; -1 when not watched
    char *heap                                   # where its heap is mapped here, NULL while it is not
    uint64_t heap_address                        # in the other process
    uint64_t heap_size                           # 0: it can't be mapped


# Bytes of the other process, as the kernel takes them (`struct iovec`).
cdef struct Piece:
    size_t address, size

cdef enum:
    MOST_PIECES = 1024                           # IOV_MAX of Linux


# Where bytes of the other's heap are seen here; NULL where they are not in it, or it is not mapped.
cdef inline char *seen(const Reach *reach, uint64_t there, size_t size) noexcept nogil:
    cdef uint64_t offset = there - reach.heap_address
    if reach.heap == NULL or offset >= reach.heap_size or size > reach.heap_size - offset:
        return NULL
    return reach.heap + offset


# Moves `size` bytes between `here` and the other's `there`, to here when `inward`; 0, or an errno.  `reach` is a Reach.
cdef int move(void *reach, size_t here, uint64_t there, size_t size, bint inward) noexcept nogil
# The same between bytes here and up to MOST_PIECES pieces there, in one call of the kernel's.
cdef int move_pieces(void *reach, size_t here, Piece *pieces, size_t count, bint inward) noexcept nogil
# Has it gone?
cdef bint has_gone(void *reach) noexcept nogil
# For who has not found its memory or its descriptors: it is without them for a moment before it has gone.  Whether it has gone
# within a second.
cdef bint is_ending(void *reach) noexcept nogil

# Why this process can't have the kernel copy (a sentence), or None.  What a particular peer allows is known only by trying.
cpdef str refusal()
# Whether one copy by the kernel is quicker than two through a ring: measured.
cpdef bint pays(bint crowded=*) except -1
# Lets the job's other processes of this user attach where the kernel's Yama module asks for consent.
cpdef int allow_peers() except -1
# True when `pid` lets its memory be read: the eight bytes at `address` are `expected`.
cpdef bint can_read(int pid, size_t address, bytes expected) except -1
