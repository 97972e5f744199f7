# The shared heap: memory of this process's that peers on this host map and read or write in place, so that a large message
# between two heaps is one copy and no system call.
#
#     reserved   | a a a | b | - - | c c c c |   ...   never touched: costs no memory   |
#                base                        top                                     base + span
#
# One memfd as large as the machine's memory, mapped once; a peer maps the whole of it at first need, and an address here is
# found there by one subtraction.  Blocks are whole pages in four sizes for each power of two (4, 5, 6, 7, 8, 10, 12 ...
# pages).  A block that is given back waits in the list of its size (`b`, `-`): its pages are there and mapped already, and
# page faults cost more than the copy that follows them.  What waits beyond KEPT bytes gives its pages back.
#
# Fork: the heap stays the parent's.  The child sees it as private memory, so that nothing that it writes or frees reaches the
# parent, and takes no blocks from it.
from ompy.core.segment cimport Segment

cdef char *base                                  # NULL until `open_heap`
cdef size_t span

# Zeroed memory when `fresh` is set, else what was there; NULL: no heap, or no room.  Any thread, with or without the GIL.
cdef void *take(size_t nbytes, bint *fresh) noexcept nogil
cdef void give_back(void *address) noexcept nogil
# Bytes that the block at this address has room for.
cdef size_t room_of(void *address) noexcept nogil


# Zeroed memory in the heap, or where there is none anywhere, as long as the object lives.
cdef class Block:
    cdef readonly size_t address, size


cdef inline bint holds(size_t address, size_t nbytes) noexcept nogil:
    return address - <size_t> base < span and nbytes <= span - (address - <size_t> base)


# Maps a peer's; `card` is what its `open_heap` returned.
cdef Segment map_heap(bytes location, size_t size)
