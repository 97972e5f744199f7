# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Bytes of a file by pread and pwrite.  See `module.pxd`."""
cimport cython
from libc.errno cimport EINTR
from libc.stdlib cimport free as free_memory, malloc
from libc.string cimport memset

from ompy.core.convertor cimport Convertor, Run
from ompy.core.file cimport MODE_RDONLY, Access, File
from ompy.core.signals cimport handle_signals
from ompy.core.view cimport View
from ompy.mca.fbtl cimport INTERFACE, FbtlModule
from ompy_fbtl_posix.calls cimport (
    EXCLUSIVE_RANGE, NO_RANGE, SHARED_RANGE, bytes_read, bytes_written, calls_made, copies_made, count_copy, fetch_bytes,
    fetch_pieces, iovec, lock_range, store_bytes, windows_sieved,
)
from ompy_fbtl_posix.mapping cimport Mapping

from ompy.mca.file_errors import file_error

interface = INTERFACE

cdef enum:
    # Pieces from this length on are worth a call of their own, bytes.
    LONG_PIECE = 65536
    # Pieces from this length on are worth an entry of preadv's each, and one for the gap behind them.
    STRAIGHT = 2048
    # Entries of a call (IOV_MAX), and how many are enough to make one.
    ENTRIES = 1024
    FEW = 16


def statistics() -> dict[str, int]:
    """What all files of this process have moved."""
    return {
        "bytes_read": bytes_read, "bytes_written": bytes_written, "calls": calls_made, "copies": copies_made,
        "sieved": windows_sieved,
    }


cdef class Posix(FbtlModule):
    """One file's bytes.

    Parameters:
        file: the file, open, with a descriptor.
        distance: from piece to piece, bytes, beyond which gaps are not read along.
        shortest: bytes of an access to a part of the file that may be mapped; 0: none is.
        times: how often a part has been met before it is mapped.
    """

    def __init__(self, File file not None, Py_ssize_t distance, Py_ssize_t shortest, int times):
        FbtlModule.__init__(self, "posix", file)
        self.distance = distance
        self.mapping = Mapping(file.descriptor, not file.mode & MODE_RDONLY, shortest, times)

    cdef Py_ssize_t move_run(self, char *memory, Py_ssize_t length, Py_ssize_t offset, bint reading) except? -1:
        cdef int descriptor = self.file.descriptor
        cdef Py_ssize_t moved = -1
        if self.mapping.enter(offset, length, length):
            with nogil:
                if self.mapping.move(memory, length, offset, reading):
                    count_copy(length, reading)
                    moved = length
            self.mapping.leave()
            if moved == length:
                return length
        with nogil:
            moved = fetch_bytes(descriptor, memory, length, offset) if reading else \
                store_bytes(descriptor, memory, length, offset)
        return moved

    cpdef Py_ssize_t preadv(self, Access access) except -1:
        """From the file to memory; returns bytes of data."""
        cdef Py_ssize_t moved
        if access.nbytes == 0:
            return 0
        if not (access.view.contiguous and access.typemap.contiguous):
            return self.move(access)
        moved = self.move_run(<char *> access.address, access.nbytes, access.view.displacement + access.position, True)
        if moved < 0:
            self.complain(access, -moved)
        return moved

    cpdef Py_ssize_t pwritev(self, Access access) except -1:
        """From memory to the file; returns bytes of data."""
        cdef Py_ssize_t moved, first, reach
        cdef bint locks, turns
        if access.nbytes == 0:
            return 0
        # In atomic mode whoever calls holds both.
        locks = not self.file.alone and self.file.hints.word("romio_ds_write") == "enable"
        turns = (self.file.alone or locks) and not self.file.atomic
        if turns:
            self.file.turn.acquire()
        try:
            if locks and not self.file.atomic:
                reach = access.view.reach(access.position, access.nbytes, &first)
                self.lock(first, reach, True)
                try:
                    return self.move(access)
                finally:
                    self.unlock(first, reach)
            if not (access.view.contiguous and access.typemap.contiguous):
                return self.move(access)
            moved = self.move_run(<char *> access.address, access.nbytes, access.view.displacement + access.position, False)
        finally:
            if turns:
                self.file.turn.release()
        if moved < 0:
            self.complain(access, -moved)
        return moved

    cdef Py_ssize_t move(self, Access access) except -1:
        cdef Transfer transfer = Transfer.__new__(Transfer)
        cdef str word = self.file.hints.word("romio_ds_write" if access.writing else "romio_ds_read")
        cdef Py_ssize_t room = self.file.hints.number("ind_wr_buffer_size" if access.writing else "ind_rd_buffer_size")
        cdef Py_ssize_t distance = self.distance, moved = 0, first, reach
        if not (access.view.ordered and self.file.readable) or word == "disable":
            distance = 0
        elif word == "enable":
            distance = room
        elif access.writing and not self.file.alone:
            distance = 0
        transfer.prepare(self.file.descriptor, access, room, distance)
        reach = access.view.reach(access.position, access.nbytes, &first)
        if self.mapping.enter(first, reach, access.nbytes):
            with nogil:
                if transfer.through(self.mapping):
                    count_copy(access.nbytes, not access.writing)
                    moved = access.nbytes
            self.mapping.leave()
            if moved > 0:
                return moved
            transfer = Transfer.__new__(Transfer)
            transfer.prepare(self.file.descriptor, access, room, distance)
        with nogil:
            moved = transfer.run()
        if moved < 0:
            self.complain(access, -moved)
        return moved

    def complain(self, Access access not None, int number):
        """Raise the error of a transfer."""
        doing = "write" if access.writing else "read"
        offset = access.view.offset(access.position)
        raise file_error(self.file.path, f"{doing} {access.nbytes} bytes from byte {offset} on", number)

    cpdef Py_ssize_t fetch(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1:
        """Bytes of the file as they are; returns how many there were before its end."""
        cdef Py_ssize_t moved = self.move_run(<char *> address, length, offset, True)
        if moved < 0:
            raise file_error(self.file.path, f"read {length} bytes from byte {offset} on", -moved)
        return moved

    cpdef int store(self, size_t address, Py_ssize_t length, Py_ssize_t offset) except -1:
        """Write bytes as they are."""
        cdef Py_ssize_t moved = self.move_run(<char *> address, length, offset, False)
        if moved < 0:
            raise file_error(self.file.path, f"write {length} bytes from byte {offset} on", -moved)
        return 0

    cpdef bint is_mapped(self, Access access) except -1:
        """Whether the part of the file that an access meets is mapped, as far as is known before it is moved."""
        cdef Py_ssize_t first, reach
        if access.nbytes == 0:
            return True
        reach = access.view.reach(access.position, access.nbytes, &first)
        return self.mapping.covers(first, reach, access.nbytes)

    cpdef int free(self) except -1:
        """Before the descriptor is closed."""
        return self.mapping.close()

    cpdef bint check_atomicity(self) except -1:
        """Whether the file system has range locks."""
        cdef int failed = -EINTR
        while failed == -EINTR:
            failed = lock_range(self.file.descriptor, SHARED_RANGE if self.file.mode & 2 else EXCLUSIVE_RANGE, 0, 1)
        if failed == 0:
            lock_range(self.file.descriptor, NO_RANGE, 0, 1)
        return failed == 0

    cpdef int lock(self, Py_ssize_t offset, Py_ssize_t length, bint exclusive) except -1:
        """Wait until no other process has a conflicting range."""
        cdef int descriptor = self.file.descriptor, failed = -EINTR
        cdef short kind = EXCLUSIVE_RANGE if exclusive else SHARED_RANGE
        while failed == -EINTR:
            with nogil:
                failed = lock_range(descriptor, kind, offset, length)
            if failed == -EINTR:
                handle_signals()
        if failed < 0:
            raise file_error(self.file.path, f"lock {length} bytes from byte {offset} on", -failed)
        return 0

    cpdef int unlock(self, Py_ssize_t offset, Py_ssize_t length) except -1:
        """End what `lock` began."""
        cdef int failed = lock_range(self.file.descriptor, NO_RANGE, offset, length)
        if failed < 0:
            raise file_error(self.file.path, f"unlock {length} bytes from byte {offset} on", -failed)
        return 0


@cython.final
cdef class Transfer:
    """See `module.pxd`."""

    def __dealloc__(self):
        free_memory(self.window)
        free_memory(self.packed)

    cdef int prepare(self, int descriptor, Access access, Py_ssize_t room, Py_ssize_t distance) except -1:
        cdef View view = access.view
        self.descriptor = descriptor
        self.access = access
        self.cursor = view.cursor(access.position)
        self.distance = 0 if view.contiguous else distance
        self.room = min(room, max(access.nbytes, 4096) if view.contiguous else room)
        if self.distance:
            self.probe = view.cursor(access.position)
            self.window = <char *> malloc(self.room)
        if access.typemap.contiguous:
            self.plain = <char *> access.address
        else:
            self.memory = Convertor.__new__(Convertor)
            self.memory.prepare(<char *> access.address, access.count, access.typemap)
            self.packed = <char *> malloc(self.room)
        if (self.distance and self.window == NULL) or (self.plain == NULL and self.packed == NULL):
            raise MemoryError(f"no memory for a window of {self.room} bytes on a file")
        return 0

    cdef bint through(self, Mapping mapping) noexcept nogil:
        cdef Py_ssize_t nbytes = self.access.nbytes, some
        cdef bint reading = not self.access.writing
        if self.plain != NULL:
            return mapping.move_pieces(self.cursor, self.plain, nbytes, reading)
        while self.done < nbytes:
            some = min(nbytes - self.done, self.room)
            if not reading:
                self.memory.move(self.packed, some, True)
            if not mapping.move_pieces(self.cursor, self.packed, some, reading):
                return False
            if reading:
                self.memory.move(self.packed, some, False)
            self.done += some
        return True

    cdef Py_ssize_t run(self) noexcept nogil:
        cdef Py_ssize_t length, start, span, take = 0, moved, asked
        cdef char *place = NULL
        while self.done < self.access.nbytes:
            length = min(self.cursor.stretch(&place), self.access.nbytes - self.done)
            start = <Py_ssize_t> place
            span = 0
            if self.distance and length < LONG_PIECE:
                span = self.look_ahead(start, length, &take)
            if span > 0 and not self.access.writing and self.plain != NULL and length >= STRAIGHT:
                asked = take
                moved = self.read_pieces(start, span, take)
                if 0 < moved < asked:
                    asked = moved                # the rest by the next call, which finds out whether there is any
            elif span > 0:
                asked = take
                moved = self.write_window(start, span, take) if self.access.writing else self.read_window(start, span, take)
            else:
                asked = length if self.plain != NULL else min(length, self.room)
                moved = self.piece(start, asked)
            if moved < 0:
                return moved
            self.done += moved
            if moved < asked:
                break                            # the end of the file
        return self.done

    cdef Py_ssize_t look_ahead(self, Py_ssize_t start, Py_ssize_t length, Py_ssize_t *take) noexcept nogil:
        """How much of the file to take as one window, and the bytes of data in it; 0 where pieces go one by one."""
        cdef Py_ssize_t here = self.access.position + self.done
        cdef Py_ssize_t some = min(self.access.view.position_of(start + self.room) - here, self.access.nbytes - self.done)
        cdef Py_ssize_t span
        cdef char *last = NULL
        self.probe.go_to(here + some - 1)
        self.probe.stretch(&last)
        span = <Py_ssize_t> last + 1 - start
        take[0] = some
        # As if all pieces were as long as the first one.
        return span if some > length and span // max(1, some // length) <= self.distance else 0

    cdef Py_ssize_t piece(self, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
        cdef char *memory = self.plain + self.done if self.plain != NULL else self.packed
        cdef Py_ssize_t moved
        if self.access.writing:
            if self.plain == NULL:
                self.memory.move(memory, length, True)
            moved = store_bytes(self.descriptor, memory, length, start)
        else:
            moved = fetch_bytes(self.descriptor, memory, length, start)
            if self.plain == NULL and moved > 0:
                self.memory.move(memory, moved, False)
        self.cursor.go_to(self.cursor.position + length)
        return moved

    cdef Py_ssize_t read_pieces(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil:
        global windows_sieved
        cdef iovec entries[ENTRIES]
        cdef Py_ssize_t here = self.access.position + self.done, end = start, data = 0, place, moved, i
        cdef int count = 0
        cdef Run run
        self.probe.go_to(here)
        while data < take and count < ENTRIES - 1:
            self.probe.next_run(take - data, &run)
            if run.length < STRAIGHT and data + run.length < take:
                if count < FEW:
                    return self.read_window(start, span, take)
                break
            for i in range(min(run.count, (ENTRIES - count) // 2)):
                place = <Py_ssize_t> run.place + i * run.stride
                if place > end:
                    # All gaps go to the same few lines of the cache, at which nobody looks.
                    entries[count].iov_base, entries[count].iov_len = self.window, place - end
                    count += 1
                entries[count].iov_base, entries[count].iov_len = self.plain + self.done + data, run.length
                count += 1
                end = place + run.length
                data += run.length
            if i + 1 < run.count:
                break
        windows_sieved += 1
        moved = fetch_pieces(self.descriptor, entries, count, start)
        if moved < 0:
            return moved
        if moved < end - start:
            data = min(data, self.access.view.position_of(start + moved) - here)
        self.cursor.go_to(here + data)
        return data

    cdef Py_ssize_t read_window(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil:
        global windows_sieved
        cdef char *memory = self.plain + self.done if self.plain != NULL else self.packed
        cdef Py_ssize_t moved = fetch_bytes(self.descriptor, self.window, span, start), distance
        windows_sieved += 1
        if moved < 0:
            return moved
        if moved < span:
            take = min(take, self.access.view.position_of(start + moved) - self.access.position - self.done)
        distance = <Py_ssize_t> self.window - start
        self.cursor.shift(distance)
        self.cursor.move(memory, take, True)
        self.cursor.shift(-distance)
        if self.plain == NULL:
            self.memory.move(memory, take, False)
        return take

    cdef Py_ssize_t write_window(self, Py_ssize_t start, Py_ssize_t span, Py_ssize_t take) noexcept nogil:
        global windows_sieved
        cdef char *memory = self.plain + self.done if self.plain != NULL else self.packed
        cdef Py_ssize_t moved, distance = <Py_ssize_t> self.window - start
        windows_sieved += 1
        if take < span:
            moved = fetch_bytes(self.descriptor, self.window, span, start)
            if moved < 0:
                return moved
            memset(self.window + moved, 0, span - moved)
        if self.plain == NULL:
            self.memory.move(memory, take, True)
        self.cursor.shift(distance)
        self.cursor.move(memory, take, False)
        self.cursor.shift(-distance)
        moved = store_bytes(self.descriptor, self.window, span, start)
        return moved if moved < 0 else take
