# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Memory that peers on this host read and write in place; `heap.pxd` has the picture."""
import os

from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from ompy.core.errors import MPIError
from ompy.core.segment cimport Segment, attach, page_size
from ompy.core.segment import create_sparse

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdint.h>
    #include <sys/mman.h>

    #ifndef MADV_POPULATE_WRITE
    #define MADV_POPULATE_WRITE 23
    #endif

    static pthread_mutex_t ompy_heap_mutex = PTHREAD_MUTEX_INITIALIZER;
    /* What a forked child does with the heap that it has inherited. */
    static char *ompy_heap_base;
    static size_t ompy_heap_size;
    static int ompy_heap_descriptor, ompy_heap_inherited;
    static void ompy_heap_make_private(void) {
        pthread_mutex_unlock(&ompy_heap_mutex);
        ompy_heap_inherited = 1;
        mmap(ompy_heap_base, ompy_heap_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
             ompy_heap_descriptor, 0);
    }

    static void ompy_heap_lock(void) { pthread_mutex_lock(&ompy_heap_mutex); }
    static void ompy_heap_unlock(void) { pthread_mutex_unlock(&ompy_heap_mutex); }

    static void ompy_heap_mind_forks(char *base, size_t size, int descriptor) {
        ompy_heap_base = base;
        ompy_heap_size = size;
        ompy_heap_descriptor = descriptor;
        pthread_atfork(ompy_heap_lock, ompy_heap_unlock, ompy_heap_make_private);
    }

    /* Pages made and mapped now: want of memory is an answer here, not a SIGBUS later. */
    static int ompy_populate(char *address, size_t size) { return madvise(address, size, MADV_POPULATE_WRITE) == 0; }
    static void ompy_keep_out_of_dumps(char *address, size_t size) { madvise(address, size, MADV_DONTDUMP); }
    /* Under AddressSanitizer, blocks that wait are nobody's to look at. */
    #ifdef __SANITIZE_ADDRESS__
    #include <sanitizer/asan_interface.h>
    static void ompy_shun(char *address, size_t size) { ASAN_POISON_MEMORY_REGION(address, size); }
    static void ompy_allow(char *address, size_t size) { ASAN_UNPOISON_MEMORY_REGION(address, size); }
    #else
    static void ompy_shun(char *address, size_t size) {}
    static void ompy_allow(char *address, size_t size) {}
    #endif

    static int ompy_punch(char *address, size_t size) { return madvise(address, size, MADV_REMOVE) == 0; }

    /* Zeroed when first looked at: costs memory only where the heap is used. */
    static void *ompy_table(size_t size) {
        void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return table == MAP_FAILED ? NULL : table;
    }
    """
    void lock "ompy_heap_lock"() noexcept nogil
    void unlock "ompy_heap_unlock"() noexcept nogil
    void mind_forks "ompy_heap_mind_forks"(char *base, size_t size, int descriptor) noexcept nogil
    bint inherited "ompy_heap_inherited"
    bint populate "ompy_populate"(char *address, size_t size) noexcept nogil
    void keep_out_of_dumps "ompy_keep_out_of_dumps"(char *address, size_t size) noexcept nogil
    void shun "ompy_shun"(char *address, size_t size) noexcept nogil
    void allow "ompy_allow"(char *address, size_t size) noexcept nogil
    bint punch "ompy_punch"(char *address, size_t size) noexcept nogil
    void *lazy_table "ompy_table"(size_t size) noexcept nogil

cdef enum:
    KINDS = 256
    HOLLOW = 0x80                                # of a page's kind: the block waits without its pages
    NOBODY = 0xFFFFFFFF

# Bytes that may wait with their pages.
cdef size_t KEPT = 256 << 20

base = NULL
span = 0
cdef Segment own = None
cdef size_t top = 0                              # pages ever given out
cdef size_t used = 0                             # bytes in use
cdef size_t kept = 0                             # bytes that wait with their pages
cdef uint8_t *kinds = NULL                       # of the block that begins at each page
cdef uint32_t *links = NULL                      # of a waiting block: the next one of its kind
cdef uint32_t waiting[KINDS]


cdef inline size_t pages_of(int kind) noexcept nogil:
    """1 2 3 4, 5 6 7 8, 10 12 14 16, 20 24 28 32 ..."""
    if kind < 8:
        return kind + 1
    return <size_t> (5 + kind % 4) << (kind // 4 - 1)


cdef int kind_of(size_t pages) noexcept nogil:
    """The smallest kind that has so many pages."""
    cdef int kind = 0
    while kind < HOLLOW and pages_of(kind) < pages:
        kind += 1
    return kind


def open_heap() -> tuple[bytes, int, int] | None:
    """Make this process's heap; returns what peers need to map it: location, address, bytes.  None: not here.

    It is of the machine's physical memory, and stays until the process ends.
    """
    global base, span, own, kinds, links
    cdef int kind
    cdef size_t pages = os.sysconf("SC_PHYS_PAGES")
    if own is None:
        for kind in range(KINDS):
            waiting[kind] = NOBODY
        try:
            own = create_sparse("ompy-heap", pages * page_size)
        except MPIError:
            return None
        kinds = <uint8_t *> lazy_table(pages)
        links = <uint32_t *> lazy_table(pages * sizeof(uint32_t))
        if kinds == NULL or links == NULL:
            own = None
            return None
        keep_out_of_dumps(own.address, pages * page_size)
        span = pages * page_size
        base = own.address
        mind_forks(base, span, own.descriptor)
    return own.location(), <size_t> base, span


cdef Segment map_heap(bytes location, size_t size):
    return attach(location, size)


cdef void *take(size_t nbytes, bint *fresh) noexcept nogil:
    global top, used, kept
    cdef int kind
    cdef size_t page, pages
    cdef bint ready = False
    fresh[0] = False
    if base == NULL or nbytes > span or inherited:
        return NULL
    kind = kind_of(max((nbytes + page_size - 1) // page_size, <size_t> 1))
    pages = pages_of(kind)
    lock()
    if kind < HOLLOW and waiting[kind] != NOBODY:
        page = waiting[kind]
        waiting[kind] = links[page]
        ready = not kinds[page] & HOLLOW
        if ready:
            kept -= pages * page_size
    elif kind < HOLLOW and top + pages <= span // page_size:
        page = top
        top += pages
    else:
        unlock()
        return NULL
    kinds[page] = kind
    used += pages * page_size
    unlock()
    allow(base + page * page_size, pages * page_size)
    if not ready:
        fresh[0] = True
        if not populate(base + page * page_size, pages * page_size):
            put_away(page, True)
            return NULL
    return base + page * page_size


cdef void give_back(void *address) noexcept nogil:
    cdef size_t page = <size_t> (<char *> address - base) // page_size
    if inherited:
        return                                   # the block is the parent's
    put_away(page, kept + pages_of(kinds[page]) * page_size > KEPT)


cdef void put_away(size_t page, bint hollow) noexcept nogil:
    """Let a block wait for the next request of its size, with or without its pages."""
    global used, kept
    cdef int kind = kinds[page]
    cdef size_t size = pages_of(kind) * page_size
    shun(base + page * page_size, size)
    if hollow:
        hollow = punch(base + page * page_size, size)
    lock()
    used -= size
    if hollow:
        kinds[page] = <uint8_t> (kind | HOLLOW)
    else:
        kept += size
    links[page] = waiting[kind]
    waiting[kind] = <uint32_t> page
    unlock()


cdef size_t room_of(void *address) noexcept nogil:
    return pages_of(kinds[<size_t> (<char *> address - base) // page_size]) * page_size


def counters() -> dict[str, int]:
    """Bytes in use, bytes that wait with their pages, bytes of address space ever given out."""
    return {"used": used, "kept": kept, "top": top * page_size}


cdef class Block:
    """Memory that peers on this host see, where there is a heap; zero at first.

    Parameters:
        size: bytes.
    """

    def __init__(self, size_t size):
        cdef bint fresh = False
        cdef void *memory = take(size, &fresh)
        if memory == NULL:
            memory = calloc(max(size, 1), 1)
        elif not fresh:
            memset(memory, 0, size)
        if memory == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        self.address = <size_t> memory
        self.size = size

    def __dealloc__(self):
        if holds(self.address, 1):
            give_back(<void *> self.address)
        else:
            free(<void *> self.address)

    @property
    def view(self):
        """The memory, writable."""
        return PyMemoryView_FromMemory(<char *> self.address, self.size, PyBUF_WRITE) if self.size else memoryview(bytearray())
