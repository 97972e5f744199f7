# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""The ring's slow paths; the fast ones are inline functions of `ring.pxd`, where the protocol is described."""
import os

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from ompy.core.atomic cimport full_fence
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.segment cimport Segment, attach, create

cdef size_t SMALLEST = 16384


cdef bint find_space(Writer *writer, uint64_t needed) noexcept nogil:
    """Looks at what the reader has returned.  When that is not enough, asks to be woken, see `ring.pxd`."""
    cdef bint blocked
    if writer.limit == 0:
        return False                             # not connected
    writer.limit = acquire(&writer.header.returned) + writer.mask + 1
    blocked = writer.position + needed > writer.limit
    if blocked != writer.blocked:
        writer.blocked = blocked
        release32(&writer.header.wants_space, blocked)
    return not blocked


cdef bint has_space(Writer *writer) noexcept nogil:
    """Of a blocked writer: has the reader returned something since?"""
    return acquire(&writer.header.returned) + writer.mask + 1 != writer.limit


cdef void withdraw(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil:
    cdef int index
    for index in range(WITHDRAWN):
        if header.withdrawn[index].size == 0:
            header.withdrawn[index].address = address
            release(&header.withdrawn[index].size, size)
            break
    else:
        release32(&header.withdrawals_unlisted, header.withdrawals_unlisted + 1)
    release32(&header.withdrawals, header.withdrawals + 1)
    full_fence()                                 # whatever is stored there now comes after


cdef void restore(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil:
    cdef int index
    for index in range(WITHDRAWN):
        if header.withdrawn[index].size == size and header.withdrawn[index].address == address:
            release(&header.withdrawn[index].size, 0)
            break
    else:
        release32(&header.withdrawals_unlisted, header.withdrawals_unlisted - 1)
    release32(&header.withdrawals, header.withdrawals - 1)


cdef bint overlaps_withdrawn(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil:
    cdef int index
    cdef uint64_t length
    if acquire32(&header.withdrawals_unlisted):
        return True
    for index in range(WITHDRAWN):
        length = acquire(&header.withdrawn[index].size)
        if length and address < header.withdrawn[index].address + length and header.withdrawn[index].address < address + size:
            return True
    return False


cdef size_t round_size(size_t size) noexcept:
    """The power of two that is at least `size`: whole pages, because it is mapped twice."""
    cdef size_t rounded = max(SMALLEST, page_size)
    while rounded < size:
        rounded *= 2
    return rounded


cdef Segment make(Writer *writer, size_t size, str backing, bytes doorbell):
    """A new, empty ring of `size` bytes, a power of two."""
    cdef Segment segment = create("ompy-ring", page_size + size, backing, page_size)
    cdef RingHeader *header = <RingHeader *> segment.address
    if len(doorbell) >= CARD_SIZE:
        raise MPIError(ERR_OTHER, f"the doorbell's card has {len(doorbell)} bytes, a ring has room for {CARD_SIZE - 1}")
    memcpy(header.doorbell, <char *> doorbell, len(doorbell))
    header.writer_pid = os.getpid()
    header.size = size
    memset(writer, 0, sizeof(Writer))
    writer.header = header
    writer.data = segment.address + page_size
    writer.mask = size - 1
    writer.limit = size
    return segment


cdef Segment open_reader(Reader *reader, bytes location, size_t size):
    """The reader's end of a ring that a peer has made."""
    cdef Segment segment = attach(location, page_size + size, page_size)
    cdef RingHeader *header = <RingHeader *> segment.address
    if size < SMALLEST or size & (size - 1) or header.size != size:
        raise MPIError(ERR_OTHER, f"{location.decode()} is not the ring of {size} bytes that was announced")
    memset(reader, 0, sizeof(Reader))
    reader.header = header
    reader.data = segment.address + page_size
    reader.mask = size - 1
    release32(&header.attached, 1)
    return segment
