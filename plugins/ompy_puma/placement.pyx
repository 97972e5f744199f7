# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages into and out of memory descriptors.  See `placement.pxd`.

Nothing that stands in a process's memory is believed: each field is checked where it is used, and read once.
"""
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from ompy.core.copying cimport copy_bytes
from ompy_puma.descriptor cimport (
    ACKNOWLEDGE, BUFFER_BUSY, BUFFER_FREE, BUFFER_USED, CHANGE, CIRCULAR, COMBINED, COMPACT, DYNAMIC, INDEPENDENT, NO_OVERLAY,
    READ, SAVE_BODY, SAVE_BOTH, SAVE_HEADER, SENDER_OFFSET, SINGLE, TRUNCATE, WRITE,
)
from ompy_puma.header cimport ACKNOWLEDGEMENT, REPLY, RETURN
from ompy_puma.heap cimport LETTER_LOST, LETTER_WHOLE, Heap, allocate_letter, compact_heap, letter_body, letter_size
from ompy_puma.process cimport DROP_FULL, DROP_INVALID, DROP_NO_REPLY, DROP_NONE, DROP_TOO_LONG


cdef DropReason place(Process process, int descriptor, const Header *header, Placement *placement) noexcept:
    cdef MemoryDescriptor *chosen
    cdef MemoryDescriptor *base
    if descriptor < 0 or descriptor >= process.descriptor_count:
        return DROP_INVALID
    chosen = &process.descriptors[descriptor]
    placement.descriptor = placement.base = descriptor
    base = chosen
    if chosen.overlay != NO_OVERLAY:
        placement.base = chosen.overlay
        if placement.base < 0 or placement.base >= process.descriptor_count:
            return DROP_INVALID
        base = &process.descriptors[placement.base]
        if base.overlay != NO_OVERLAY or base.kind != chosen.kind:
            return DROP_INVALID
    placement.operation = chosen.operation
    placement.saved = chosen.save
    placement.acknowledge = chosen.options & ACKNOWLEDGE
    placement.body = NULL
    placement.buffer = NULL
    placement.letter = NULL
    placement.stream = 0
    if chosen.operation == WRITE:
        if chosen.save == 0 or chosen.save > SAVE_BOTH:
            return DROP_INVALID
        placement.length = header.length if chosen.save & SAVE_BODY else 0
    elif chosen.operation == READ and chosen.kind != DYNAMIC \
            or chosen.operation == CHANGE and chosen.kind == SINGLE and chosen.options & SENDER_OFFSET:
        if header.flags & (RETURN | ACKNOWLEDGEMENT | REPLY) != RETURN:
            return DROP_NO_REPLY
        placement.saved = 0
        placement.length = header.return_length
    else:
        return DROP_INVALID
    if chosen.kind == SINGLE:
        return place_single(process, chosen.options, base, header, placement)
    if chosen.kind == INDEPENDENT:
        return place_independent(process, chosen.options, base, header, placement)
    if chosen.kind == COMBINED:
        return place_combined(process, chosen.options, base, header, placement)
    if chosen.kind == DYNAMIC:
        return place_dynamic(process, chosen.options, base, header, placement)
    return DROP_INVALID


cdef inline DropReason fit(int options, uint64_t length, uint64_t offset, uint64_t front, Placement *placement) noexcept:
    """Whether `front` bytes and the body fit in `length` bytes behind `offset`; cuts the body off where that is allowed."""
    cdef uint64_t room
    if offset > length:
        return DROP_TOO_LONG if options & SENDER_OFFSET else DROP_INVALID
    room = length - offset
    if front <= room and placement.length <= room - front:
        return DROP_NONE
    if room == 0 and length and not options & SENDER_OFFSET:
        return DROP_FULL
    if front <= room and options & TRUNCATE:
        placement.length = room - front
        return DROP_NONE
    return DROP_TOO_LONG


cdef DropReason place_single(Process process, int options, MemoryDescriptor *base, const Header *header,
                             Placement *placement) noexcept:
    cdef char *start = base.start
    cdef uint64_t length = base.length
    cdef uint64_t offset = header.offset if options & SENDER_OFFSET else base.offset
    cdef uint64_t front = sizeof(Header) if placement.saved & SAVE_HEADER else 0
    cdef DropReason reason
    if not process.allows(start, length):
        return DROP_INVALID
    reason = fit(options, length, offset, front, placement)
    if reason != DROP_NONE:
        return reason
    if process.withheld_count and not header.flags & REPLY \
            and process.is_withheld(header.source_node, <size_t> start + offset, front + placement.length):
        return DROP_INVALID
    if not options & SENDER_OFFSET:
        base.offset = offset + front + placement.length
    if front:
        memcpy(start + offset, header, sizeof(Header))
    placement.body = start + offset + front
    return DROP_NONE


cdef Buffer *buffers_of(Process process, MemoryDescriptor *base, uint32_t *count) noexcept:
    """The table of buffers, NULL when it does not lie in the process's memory."""
    cdef Buffer *buffers = base.buffers
    count[0] = base.buffer_count
    if <size_t> buffers % sizeof(uint64_t) or not process.allows(buffers, <uint64_t> count[0] * sizeof(Buffer)):
        return NULL
    return buffers


cdef DropReason place_independent(Process process, int options, MemoryDescriptor *base, const Header *header,
                                  Placement *placement) noexcept:
    cdef uint32_t count, current
    cdef Buffer *buffers = buffers_of(process, base, &count)
    cdef Buffer *buffer
    cdef uint64_t length
    if buffers == NULL:
        return DROP_INVALID
    current = base.current
    if current >= count:
        if current > count or count == 0:
            return DROP_INVALID
        if not options & CIRCULAR:
            return DROP_FULL
        current = 0
    buffer = &buffers[current]
    if buffer.state != BUFFER_FREE:
        return DROP_FULL if buffer.state == BUFFER_USED or buffer.state == BUFFER_BUSY else DROP_INVALID
    length = buffer.length
    placement.body = buffer.address
    if not process.allows(placement.body, length):
        return DROP_INVALID
    if placement.length > length:
        if not options & TRUNCATE:
            return DROP_TOO_LONG
        placement.length = length
    base.current = current + 1
    buffer.state = BUFFER_BUSY
    buffer.used = 0
    if placement.saved & SAVE_HEADER:
        buffer.header = header[0]
    placement.buffer = buffer
    return DROP_NONE


cdef DropReason place_combined(Process process, int options, MemoryDescriptor *base, const Header *header,
                               Placement *placement) noexcept:
    cdef uint32_t count, index
    cdef Buffer *buffers = buffers_of(process, base, &count)
    cdef uint64_t total = 0
    cdef uint64_t offset = header.offset if options & SENDER_OFFSET else base.offset
    cdef DropReason reason
    if buffers == NULL or (placement.operation == WRITE and placement.saved != SAVE_BODY):
        return DROP_INVALID
    for index in range(count):
        if not process.allows(buffers[index].address, buffers[index].length):
            return DROP_INVALID
        total += buffers[index].length
        if total < buffers[index].length:
            return DROP_INVALID
    reason = fit(options, total, offset, 0, placement)
    if reason != DROP_NONE:
        return reason
    if not options & SENDER_OFFSET:
        base.offset = offset + placement.length
    placement.stream = offset
    return DROP_NONE


cdef DropReason place_dynamic(Process process, int options, MemoryDescriptor *base, const Header *header,
                              Placement *placement) noexcept:
    cdef char *start = base.start
    cdef uint64_t length = base.length
    cdef bint broken = False
    cdef Letter *letter
    if not placement.saved & SAVE_HEADER or <size_t> start % 16 or length < sizeof(Heap) or not process.allows(start, length):
        return DROP_INVALID
    letter = allocate_letter(start, length, placement.length, &broken)
    if letter == NULL and not broken and options & COMPACT and compact_heap(start, length):
        letter = allocate_letter(start, length, placement.length, &broken)
    if letter == NULL:
        if broken:
            return DROP_INVALID
        if placement.length > length or letter_size(placement.length) > length - sizeof(Heap):
            return DROP_TOO_LONG
        return DROP_FULL
    letter.header = header[0]
    placement.letter = letter
    placement.body = letter_body(letter)
    return DROP_NONE


# -- bytes

cdef char *run_at(Process process, Placement *placement, uint64_t position, uint64_t *size) noexcept:
    cdef MemoryDescriptor *base
    cdef Buffer *buffers
    cdef uint32_t count, index
    cdef uint64_t length
    if placement.body != NULL:
        size[0] = placement.length - position
        return placement.body + position
    base = &process.descriptors[placement.base]
    if base.kind != COMBINED:
        return NULL
    buffers = buffers_of(process, base, &count)
    if buffers == NULL:
        return NULL
    position += placement.stream
    for index in range(count):
        length = buffers[index].length
        if position < length:
            if not process.allows(buffers[index].address, length):
                return NULL
            size[0] = length - position
            return buffers[index].address + position
        position -= length
    return NULL


cdef bint write(Process process, Placement *placement, uint64_t position, const char *data, uint64_t size) noexcept:
    cdef char *run
    cdef uint64_t length = 0
    if position >= placement.length:
        return True
    size = min(size, placement.length - position)
    while size:
        run = run_at(process, placement, position, &length)
        if run == NULL:
            return False
        length = min(length, size)
        copy_bytes(run, data, length)
        data += length
        position += length
        size -= length
    return True


cdef bint read(Process process, Placement *placement, uint64_t position, char *data, uint64_t size) noexcept:
    cdef char *run
    cdef uint64_t length = 0
    while size:
        run = run_at(process, placement, position, &length)
        if run == NULL:
            return False
        length = min(length, size)
        copy_bytes(data, run, length)
        data += length
        position += length
        size -= length
    return True


cdef void settle(Placement *placement, bint whole) noexcept:
    if placement.buffer != NULL:
        placement.buffer.used = placement.length if whole else 0
        placement.buffer.state = BUFFER_USED
    elif placement.letter != NULL:
        placement.letter.state = LETTER_WHOLE if whole else LETTER_LOST
