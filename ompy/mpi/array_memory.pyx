# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""Large NumPy arrays in the shared heap, through NumPy's hook for the memory of arrays (NEP 49).

Of NumPy only the table of its C interface is needed, whose layout is part of NumPy's promise of a stable ABI: entry 304 is
PyDataMem_SetHandler, from NumPy 1.22 on.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset, strcpy

from ompy.core.heap cimport base, give_back, holds, room_of, take
from ompy.core.segment cimport page_size

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct {
        void *ctx;
        void *(*malloc)(void *ctx, size_t size);
        void *(*calloc)(void *ctx, size_t count, size_t size);
        void *(*realloc)(void *ctx, void *pointer, size_t size);
        void (*free)(void *ctx, void *pointer, size_t size);
    } ompy_allocator;
    typedef struct {
        char name[127];
        uint8_t version;
        ompy_allocator allocator;
    } ompy_handler;
    typedef PyObject *(*ompy_set_handler)(PyObject *);
    """
    ctypedef struct Allocator "ompy_allocator":
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t count, size_t size) noexcept nogil
        void *(*realloc)(void *ctx, void *pointer, size_t size) noexcept nogil
        void (*free)(void *ctx, void *pointer, size_t size) noexcept nogil
    ctypedef struct Handler "ompy_handler":
        char name[127]
        uint8_t version
        Allocator allocator
    ctypedef object (*SetHandler "ompy_set_handler")(object)

cdef enum:
    SET_HANDLER = 304
    DEFAULT_HANDLER = 306

cdef size_t smallest = 0                         # bytes from which on an array lives in the heap
cdef Allocator usual                             # NumPy's own, for all others
cdef Handler handler


cdef void *array_malloc(void *ctx, size_t size) noexcept nogil:
    cdef bint fresh
    cdef void *found = take(size, &fresh) if size >= smallest else NULL
    return found if found != NULL else usual.malloc(usual.ctx, size)


cdef void *array_calloc(void *ctx, size_t count, size_t size) noexcept nogil:
    cdef bint fresh
    cdef void *found = NULL
    # Counts whose product overflows are the usual allocator's to refuse.
    if size and count < <size_t> -1 // size and count * size >= smallest:
        found = take(count * size, &fresh)
    if found == NULL:
        return usual.calloc(usual.ctx, count, size)
    if not fresh:
        memset(found, 0, count * size)
    return found


cdef void *array_realloc(void *ctx, void *pointer, size_t size) noexcept nogil:
    cdef void *found
    cdef size_t room
    if not holds(<size_t> pointer, 1):
        return usual.realloc(usual.ctx, pointer, size)
    room = room_of(pointer)
    if size <= room and size > room // 2:
        return pointer
    found = array_malloc(ctx, size)
    if found != NULL:
        memcpy(found, pointer, min(size, room))
        give_back(pointer)
    return found


cdef void array_free(void *ctx, void *pointer, size_t size) noexcept nogil:
    if holds(<size_t> pointer, 1):
        give_back(pointer)
    else:
        usual.free(usual.ctx, pointer, size)


def use_heap_for_arrays(size_t nbytes) -> None:
    """New arrays of at least so many bytes live in the shared heap, where there is one.  Imports NumPy.

    NumPy keeps the choice for each thread (context variable): arrays that other threads make are ordinary ones.

    Raises:
        ImportError: no NumPy, or one before 1.22.
    """
    global smallest, usual
    cdef void **table
    if base == NULL:
        return
    import numpy
    try:
        from numpy._core._multiarray_umath import _ARRAY_API
    except ImportError:
        from numpy.core._multiarray_umath import _ARRAY_API
    if tuple(map(int, numpy.__version__.split(".")[:2])) < (1, 22):
        raise ImportError(f"mpi_numpy_heap needs NumPy 1.22 or later, not {numpy.__version__}")
    table = <void **> PyCapsule_GetPointer(_ARRAY_API, NULL)
    usual = (<Handler *> PyCapsule_GetPointer(<object> (<void **> table[DEFAULT_HANDLER])[0], "mem_handler")).allocator
    smallest = max(nbytes, page_size)
    strcpy(handler.name, "ompy_shared_heap")
    handler.version = 1
    handler.allocator = Allocator(NULL, array_malloc, array_calloc, array_realloc, array_free)
    (<SetHandler> table[SET_HANDLER])(PyCapsule_New(&handler, "mem_handler", NULL))
