# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The part of a file that is moved again and again, as pages of this process.  See `mapping.pxd`."""
cimport cython

from ompy.core.convertor cimport Convertor
from ompy_fbtl_posix.refuge cimport move_safely, plain_move, stand_ready

cdef enum:
    PAGE = 65536                                 # bytes, or a part of it on most machines

cdef extern from *:
    """
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <sys/vfs.h>

    /* Bytes that the file has. */
    static inline ssize_t ompy_size_of(int descriptor) {
        struct stat there;
        return fstat(descriptor, &there) < 0 ? -1 : there.st_size;
    }

    /* Whether reads and writes of any process on this host are those of the pages: not where other hosts write. */
    static int ompy_has_pages(int descriptor) {
        struct statfs there;
        if (fstatfs(descriptor, &there) < 0) return 0;
        switch ((unsigned long) there.f_type) {
        case 0xEF53:      /* ext2, ext3, ext4 */
        case 0x58465342:  /* xfs */
        case 0x9123683E:  /* btrfs */
        case 0xF2F52010:  /* f2fs */
        case 0x01021994:  /* tmpfs */
            return 1;
        }
        return 0;
    }

    static inline void *ompy_map(int descriptor, ssize_t start, ssize_t length, int writable) {
        void *pages = mmap(NULL, length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, start);
        return pages == MAP_FAILED ? NULL : pages;
    }

    /* The kernel notes when a page is first written to, not when it is written to again. */
    static inline void ompy_say_changed(int descriptor) { if (futimens(descriptor, NULL) < 0) {} }
    """
    Py_ssize_t size_of "ompy_size_of"(int descriptor)
    bint has_pages "ompy_has_pages"(int descriptor)
    void *map_pages "ompy_map"(int descriptor, Py_ssize_t start, Py_ssize_t length, bint writable)
    int munmap(void *pages, size_t length)
    void say_changed "ompy_say_changed"(int descriptor)


cdef Py_ssize_t move_by(Convertor cursor, char *memory, Py_ssize_t nbytes, bint reading) noexcept nogil:
    return cursor.move(memory, nbytes, reading)


@cython.final
cdef class Mapping:
    """See `mapping.pxd`.

    Parameters:
        descriptor: the file's, which is closed after `close`.
        writable: it is open for writing, too.
        shortest: bytes of an access that may be a copy; 0: none may.
        times: how often a part of the file has been met before it is mapped.
    """

    def __init__(self, int descriptor, bint writable, Py_ssize_t shortest, int times):
        self.descriptor = descriptor
        self.writable = writable
        self.shortest = shortest
        self.times = times
        self.possible = shortest > 0

    cdef bint covers(self, Py_ssize_t first, Py_ssize_t reach, Py_ssize_t nbytes) except -1:
        cdef Py_ssize_t end = first + reach
        if nbytes < self.shortest or reach > MOST or not self.possible:
            return False
        if self.pages == NULL or first < self.start or end > self.end:
            if self.low <= first and end <= self.high:
                self.met += 1
            elif first <= self.high and self.low <= end and max(end, self.high) - min(first, self.low) <= MOST:
                self.low, self.high, self.met = min(first, self.low), max(end, self.high), 0
            else:
                self.low, self.high, self.met = first, end, 0
            if self.met < self.times or self.users > 0:
                return False
            self.map()
            if self.pages == NULL:
                return False
        # What is behind the end is in the last page, too, and is no data.
        return end <= size_of(self.descriptor) and stand_ready() == 0

    cdef int map(self) except -1:
        cdef Py_ssize_t start = self.low - self.low % PAGE
        cdef Py_ssize_t length = (self.high + PAGE - 1) // PAGE * PAGE - start
        self.unmap()
        if not has_pages(self.descriptor):
            self.possible = False
            return 0
        self.pages = <char *> map_pages(self.descriptor, start, length, self.writable)
        if self.pages == NULL:
            self.possible = False
            return 0
        self.start, self.end = start, start + length
        return 0

    def unmap(self) -> None:
        """Give the pages back."""
        if self.pages != NULL:
            munmap(self.pages, self.end - self.start)
        self.pages = NULL

    cdef bint enter(self, Py_ssize_t first, Py_ssize_t reach, Py_ssize_t nbytes) except -1:
        if not self.covers(first, reach, nbytes):
            return False
        self.users += 1
        return True

    cdef int leave(self) noexcept:
        self.users -= 1
        return 0

    cdef bint move(self, char *memory, Py_ssize_t nbytes, Py_ssize_t offset, bint reading) noexcept nogil:
        cdef char *place = self.pages + (offset - self.start)
        self.changed = self.changed or not reading
        return move_safely(place, place + nbytes, <void *> plain_move, place, memory, nbytes, reading) == nbytes

    cdef bint move_pieces(self, Convertor cursor, char *memory, Py_ssize_t nbytes, bint reading) noexcept nogil:
        cdef char *end = self.pages + (self.end - self.start)
        cdef Py_ssize_t distance = <Py_ssize_t> self.pages - self.start, moved
        self.changed = self.changed or not reading
        cursor.shift(distance)
        moved = move_safely(self.pages, end, <void *> move_by, <void *> cursor, memory, nbytes, reading)
        cursor.shift(-distance)
        return moved == nbytes

    cdef int close(self) except -1:
        if self.changed:
            say_changed(self.descriptor)
        self.unmap()
        self.possible = False
        return 0
