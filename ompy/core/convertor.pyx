# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""Packs and unpacks typed data by running a typemap's loop program from any position."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ompy.core.atomic cimport full_fence
from ompy.core.copying cimport copy_bytes
from ompy.core.program cimport Program, Step
from ompy.core.typemap cimport span

from ompy.core.errors import ERR_ARG, ERR_COUNT, ERR_TRUNCATE, MPIError

cdef enum:
    # Bytes that a typed-to-typed copy packs before it unpacks them: small enough to stay in the first-level cache.
    BOUNCE = 8192
    # Blocks so many bytes apart, or a multiple, share an eighth of the sets of a first-level cache (64 sets of lines of 64).
    CROWDED = 512
    # Lines that one set of such a cache holds, today.
    WAYS = 12


cdef void gather_blocks(char *packed, const char *blocks, Py_ssize_t length, Py_ssize_t count,
                        Py_ssize_t stride) noexcept nogil:
    """Copy strided blocks into a run.  A memcpy of a literal length is a few move instructions, whatever the alignment; of up
    to a line of the cache it is done before a call would begin."""
    cdef Py_ssize_t i
    if length == 8:
        for i in range(count):
            memcpy(packed + i * 8, blocks + i * stride, 8)
    elif length == 4:
        for i in range(count):
            memcpy(packed + i * 4, blocks + i * stride, 4)
    elif length == 16:
        for i in range(count):
            memcpy(packed + i * 16, blocks + i * stride, 16)
    elif length == 32:
        for i in range(count):
            memcpy(packed + i * 32, blocks + i * stride, 32)
    elif length == 64:
        for i in range(count):
            memcpy(packed + i * 64, blocks + i * stride, 64)
    elif length == 1:
        for i in range(count):
            packed[i] = blocks[i * stride]
    elif length == 2:
        for i in range(count):
            memcpy(packed + i * 2, blocks + i * stride, 2)
    else:
        for i in range(count):
            memcpy(packed + i * length, blocks + i * stride, length)


cdef void store_blocks(const char *packed, char *blocks, Py_ssize_t length, Py_ssize_t count,
                       Py_ssize_t stride) noexcept nogil:
    """Copy a run into strided blocks, one store after the other."""
    cdef Py_ssize_t i
    if length == 8:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 8, 8)
    elif length == 4:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 4, 4)
    elif length == 16:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 16, 16)
    elif length == 32:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 32, 32)
    elif length == 64:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 64, 64)
    elif length == 1:
        for i in range(count):
            blocks[i * stride] = packed[i]
    elif length == 2:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * 2, 2)
    else:
        for i in range(count):
            memcpy(blocks + i * stride, packed + i * length, length)


cdef void scatter_blocks(const char *packed, char *blocks, Py_ssize_t length, Py_ssize_t count,
                         Py_ssize_t stride) noexcept nogil:
    """Copy a run into strided blocks.

    A processor fetches the lines of all the stores that wait in its store buffer.  Where they fall on the same few sets of the
    first cache, each pushes out another one before that was stored to: four times slower than a buffer that is drained in time.
    """
    cdef int i
    if stride % CROWDED == 0:
        while count > WAYS:
            if length == 8:                      # columns of doubles: spared a call for each few of them
                for i in range(WAYS):
                    memcpy(blocks + i * stride, packed + i * 8, 8)
            else:
                store_blocks(packed, blocks, length, WAYS, stride)
            full_fence()
            packed += WAYS * length
            blocks += WAYS * stride
            count -= WAYS
    store_blocks(packed, blocks, length, count, stride)


cdef inline void transfer(char *packed, char *user, Py_ssize_t length, bint packing) noexcept nogil:
    if packing:
        copy_bytes(packed, user, length)
    else:
        copy_bytes(user, packed, length)


@cython.freelist(8)
cdef class Convertor:
    """See `convertor.pxd`.  The methods of Python: `aim`, `seek_to`, `next_stretch`, `pack_bytes`, `unpack_bytes`."""

    def __cinit__(self):
        self.frames = self.own_frames
        self.capacity = FRAMES

    def __dealloc__(self):
        if self.frames != self.own_frames:
            free(self.frames)

    cdef int prepare(self, char *address, Py_ssize_t count, Typemap typemap) except -1:
        cdef Program program = typemap.program
        cdef const Step *root = program.roots
        cdef Frame *frames
        if count < 0:
            raise MPIError(ERR_COUNT, f"count: {count} is negative")
        if program.depth + 2 > self.capacity:
            frames = <Frame *> malloc((program.depth + 2) * sizeof(Frame))
            if frames == NULL:
                raise MemoryError("no memory for a convertor's frames")
            if self.frames != self.own_frames:
                free(self.frames)
            self.frames = frames
            self.capacity = program.depth + 2
        self.typemap = typemap
        self.total = count * typemap.size
        self.position = 0
        if program.root_count == 1 and (count == 1 or root.count == 1 or root.count * root.stride == typemap.extent):
            # One level less: consecutive elements go on where the element's only step ends.
            self.whole = root[0]
            if root.count == 1:
                self.whole.stride = typemap.extent
            self.whole.count *= count
            if root.body:
                self.whole.first = root.first
        else:
            self.whole.offset = 0
            self.whole.length = typemap.size
            self.whole.count = count
            self.whole.stride = typemap.extent
            self.whole.start = 0
            self.whole.first = -1
            self.whole.body = program.root_count
        self.frames[0].steps = &self.whole
        self.frames[0].count = 1
        self.frames[0].current = 0
        self.frames[0].done = 0
        self.frames[0].base = address
        self.level = 0
        self.partial = 0
        return 0

    cdef int seek(self, Py_ssize_t position) except -1:
        if not 0 <= position <= self.total:
            raise MPIError(ERR_ARG, f"position {position} is not in 0 .. {self.total}")
        self.go_to(position)
        return 0

    cdef void go_to(self, Py_ssize_t position) noexcept nogil:
        if position != self.position:
            self.position = position
            self.level = 0
            self.descend(position)

    cdef void descend(self, Py_ssize_t position) noexcept nogil:
        """Set the frames to a position by division and bisection, level by level."""
        cdef Frame *frame = self.frames
        cdef const Step *step
        cdef int low, high, middle
        while True:
            low = 0
            high = frame.count
            while high - low > 1:
                middle = (low + high) // 2
                if frame.steps[middle].start <= position:
                    low = middle
                else:
                    high = middle
            step = &frame.steps[low]
            position -= step.start if self.level else 0
            frame.current = low
            frame.done = position // step.length if step.length else 0
            position -= frame.done * step.length
            if step.body == 0 or frame.done == step.count:
                break
            self.enter(frame, step)
            frame += 1
        self.partial = position

    cdef inline void enter(self, Frame *frame, const Step *step) noexcept nogil:
        """Open the frame of the current round of `step`."""
        cdef Frame *inner = frame + 1
        inner.steps = self.typemap.program.roots if step.first < 0 else &self.typemap.program.bodies[step.first]
        inner.count = step.body
        inner.current = 0
        inner.done = 0
        inner.base = frame.base + step.offset + frame.done * step.stride
        self.level += 1

    cdef void advance(self) noexcept nogil:
        """From a finished step to the next, up through the levels as far as their rounds end with it."""
        cdef Frame *frame = &self.frames[self.level]
        while True:
            frame.current += 1
            frame.done = 0
            if frame.current < frame.count or self.level == 0:
                return
            self.level -= 1
            frame -= 1
            frame.done += 1
            if frame.done < frame.steps[frame.current].count:
                return

    cdef Py_ssize_t move(self, char *packed, Py_ssize_t limit, bint packing) noexcept nogil:
        cdef Py_ssize_t room = min(limit, self.total - self.position)
        cdef Py_ssize_t left = room, blocks, some
        cdef Frame *frame
        cdef const Step *step
        cdef char *user
        if room <= 0:
            return 0
        while left > 0:
            frame = &self.frames[self.level]
            step = &frame.steps[frame.current]
            if step.body:
                self.enter(frame, step)
                continue
            user = frame.base + step.offset + frame.done * step.stride
            if self.partial:
                some = min(left, step.length - self.partial)
                transfer(packed, user + self.partial, some, packing)
                packed += some
                left -= some
                self.partial += some
                if self.partial < step.length:
                    break
                self.partial = 0
                frame.done += 1
                user += step.stride
            blocks = step.count - frame.done
            if left < blocks * step.length:
                blocks = left // step.length
            if packing:
                gather_blocks(packed, user, step.length, blocks, step.stride)
            else:
                scatter_blocks(packed, user, step.length, blocks, step.stride)
            some = blocks * step.length
            packed += some
            left -= some
            frame.done += blocks
            if frame.done == step.count:
                self.advance()
            elif left > 0:
                transfer(packed, user + blocks * step.stride, left, packing)
                self.partial = left
                left = 0
        self.position += room
        return room

    cdef Py_ssize_t stretch(self, char **place) noexcept nogil:
        cdef Frame *frame = &self.frames[self.level]
        cdef const Step *step = &frame.steps[frame.current]
        if self.position >= self.total:
            return 0
        while step.body:
            self.enter(frame, step)
            frame = &self.frames[self.level]
            step = &frame.steps[frame.current]
        place[0] = frame.base + step.offset + frame.done * step.stride + self.partial
        return step.length - self.partial

    cdef Py_ssize_t next_run(self, Py_ssize_t limit, Run *run) noexcept nogil:
        cdef Py_ssize_t length = self.stretch(&run.place), blocks
        cdef Frame *frame = &self.frames[self.level]
        cdef const Step *step = &frame.steps[frame.current]
        run.count = 1
        run.stride = run.length = min(length, limit)
        if run.length <= 0:
            return 0
        if self.partial or run.length < step.length:
            # The rest of a block, or its beginning.
            self.partial += run.length
            blocks = self.partial // step.length
            self.partial -= blocks * step.length
        else:
            blocks = run.count = min(step.count - frame.done, limit // step.length)
            run.stride = step.stride
        frame.done += blocks
        if frame.done == step.count:
            self.advance()
        self.position += run.count * run.length
        return run.count * run.length

    cdef void shift(self, Py_ssize_t distance) noexcept nogil:
        cdef int level
        for level in range(self.level + 1):
            self.frames[level].base += distance

    cdef Py_ssize_t pack(self, char *target, Py_ssize_t limit) except -1:
        return self.move(target, limit, True)

    cdef Py_ssize_t unpack(self, const char *source, Py_ssize_t length) except -1:
        return self.move(<char *> source, length, False)

    def aim(self, size_t address, Py_ssize_t count, Typemap typemap not None) -> None:
        """Begin with `count` elements at `address`.  The caller keeps the memory alive."""
        self.prepare(<char *> address, count, typemap)

    def seek_to(self, Py_ssize_t position) -> None:
        """Go to a byte of the packed data, 0 to `total`; MPIError(ERR_ARG) beyond."""
        self.seek(position)

    def next_stretch(self) -> tuple[int, int]:
        """Address and number of the next bytes that lie in one piece; 0 bytes at the end."""
        cdef char *place = NULL
        cdef Py_ssize_t length = self.stretch(&place)
        return <size_t> place, length

    def pack_bytes(self, Py_ssize_t limit) -> bytes:
        """The next `limit` packed bytes, fewer at the end."""
        cdef Py_ssize_t length = max(0, min(limit, self.total - self.position))
        packed = PyBytes_FromStringAndSize(NULL, length)
        self.pack(PyBytes_AS_STRING(packed), length)
        return packed

    def unpack_bytes(self, const unsigned char[::1] data not None) -> int:
        """Write packed bytes to the elements; returns how many there was room for."""
        if data.shape[0] == 0:
            return 0
        return self.unpack(<const char *> &data[0], data.shape[0])


cdef Py_ssize_t pack_all(char *address, Py_ssize_t count, Typemap typemap, char *target) except -1:
    cdef Convertor convertor
    if typemap.contiguous:
        copy_bytes(target, address, count * typemap.size)
        return count * typemap.size
    convertor = Convertor.__new__(Convertor)
    convertor.prepare(address, count, typemap)
    return convertor.pack(target, convertor.total)


cdef Py_ssize_t unpack_all(const char *source, Py_ssize_t length, char *address, Py_ssize_t count, Typemap typemap) except -1:
    cdef Convertor convertor
    if typemap.contiguous:
        length = min(length, count * typemap.size)
        copy_bytes(address, source, length)
        return length
    convertor = Convertor.__new__(Convertor)
    convertor.prepare(address, count, typemap)
    return convertor.unpack(source, length)


cdef bint share_memory(size_t address, Py_ssize_t count, Typemap typemap,
                       size_t other_address, Py_ssize_t other_count, Typemap other_type) except -1:
    cdef Py_ssize_t first, other_first
    cdef Py_ssize_t length = span(typemap, count, &first), other_length = span(other_type, other_count, &other_first)
    cdef size_t begin = address + first, other_begin = other_address + other_first
    if length == 0 or other_length == 0 or begin >= other_begin + other_length or other_begin >= begin + length:
        return False
    if typemap.contiguous and other_type.contiguous:
        return True
    # One may lie between the pieces of the other: mark the bytes of one in a map of all, look for marks in the other's.
    cdef size_t low = min(begin, other_begin)
    cdef bytearray marks = bytearray(<Py_ssize_t> (max(begin + length, other_begin + other_length) - low))
    cdef bytearray found = bytearray(other_count * other_type.size)
    cdef bytes ones = b"\1" * (count * typemap.size)
    cdef char *plan = PyByteArray_AS_STRING(marks)
    unpack_all(PyBytes_AS_STRING(ones), len(ones), plan + <Py_ssize_t> (address - low), count, typemap)
    pack_all(plan + <Py_ssize_t> (other_address - low), other_count, other_type, PyByteArray_AS_STRING(found))
    return b"\1" in found


cdef int copy_typed(char *source, Py_ssize_t source_count, Typemap source_type,
                    char *target, Py_ssize_t target_count, Typemap target_type) except -1:
    cdef Py_ssize_t nbytes = source_count * source_type.size
    cdef Py_ssize_t room = target_count * target_type.size
    cdef Py_ssize_t some
    cdef Convertor packer, unpacker
    cdef char bounce[BOUNCE]
    if nbytes > room:
        raise MPIError(ERR_TRUNCATE, f"{nbytes} bytes of data do not fit in a receive buffer of {room} bytes")
    if target_type.contiguous:
        pack_all(source, source_count, source_type, target)
        return 0
    if source_type.contiguous:
        unpack_all(source, nbytes, target, target_count, target_type)
        return 0
    packer = Convertor.__new__(Convertor)
    packer.prepare(source, source_count, source_type)
    unpacker = Convertor.__new__(Convertor)
    unpacker.prepare(target, target_count, target_type)
    while True:
        some = packer.pack(bounce, BOUNCE)
        if some == 0:
            return 0
        unpacker.unpack(bounce, some)
