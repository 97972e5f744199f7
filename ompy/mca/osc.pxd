# One-sided communication: how a window's processes read and write one another's memory (MPI-4.1, chapter 12).
#
# LIFE CYCLE
#   open     When a window is made, on every rank of it, each component's `query` sees it (`context.window`), and the one with
#            the highest priority serves it: the same one on every rank, so a query depends only on what all ranks know
#            (flavor, sizes, units, parameters), or what they tell one another in it: it is collective, and
#            `window.parent`, from which the window is made, can carry collectives meanwhile.  Afterwards the window's
#            private communicator carries messages and collectives.
#            `open` is then called on the one that was chosen: from there on, other ranks may ask for its memory.
#   access   Within epochs that the synchronisation methods open and close, the origin calls put, get, ... for a target.
#   close    `free` is collective.  When it returns no other rank will touch this process's memory, and everything that the
#            component held for the window is given back; the caller then frees communicator and memory.
#
# RULES
#   * The layer above has checked that ranks are in range and never PROC_NULL.  The module checks epochs (ERR_RMA_SYNC), the
#     target's range (`Window.check_range`), and that origin and target have the same number of bytes of data.
#   * Memory is given as address, count and typemap; typemaps of the target's side may be any that the origin has made.
#     `owner` keeps the program's memory alive: the module holds it until the access is complete at the origin.
#   * An access method returns None, or, when `access.requested` is set and the access is not yet complete at the origin, a
#     request that completes then (MPI-4.1, 12.3.5).  A request is never persistent.
#   * Accumulates (accumulate, get_accumulate, compare_and_swap) are atomic for each element, and those of one origin take
#     effect at one target in the order of the calls (12.7.2).  Put and get promise neither.
#   * A target makes progress whenever it is inside any MPI call, or its progress thread runs (`mpi_async_progress`).  Waiting
#     is the engine's (`ompy.core.progress`), with a request whose `operation` names the WIN_* call on the job board.
from ompy.core.operation cimport Operation
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.core.window cimport Window

cdef enum:
    INTERFACE = 1


cdef class Access:
    """One access to a target's memory.

        put, accumulate      origin is read
        get                  origin is written; in the other two forms that fetch, `result` is
        compare_and_swap     one element each of origin, compare and result, all of `origin_type`
    """
    cdef public size_t origin_address, result_address, compare_address
    cdef public Py_ssize_t origin_count, result_count, target_count
    cdef public Typemap origin_type, result_type, target_type
    cdef public int target                       # rank in the window
    cdef public Py_ssize_t displacement          # in units of the target's; an address in a dynamic window
    cdef public Operation operation              # predefined, or REPLACE, or NO_OP
    cdef public bint requested
    cdef public object owner


cdef class OscModule:
    """One component's service for one window."""
    cdef readonly str component
    cdef readonly Window window
    cdef public bint direct                      # accesses need nothing of their target, which may be outside of MPI

    cpdef int open(self) except -1

    # -- accesses (12.3)
    cpdef Request put(self, Access access)
    cpdef Request get(self, Access access)
    cpdef Request accumulate(self, Access access)
    cpdef Request get_accumulate(self, Access access)
    cpdef Request compare_and_swap(self, Access access)

    # -- synchronisation (12.5); `ranks` are ranks in the window
    cpdef int fence(self, int assertion) except -1
    cpdef int post(self, list ranks, int assertion) except -1
    cpdef int start(self, list ranks, int assertion) except -1
    cpdef int complete(self) except -1
    cpdef int wait(self) except -1
    cpdef bint test(self) except -1
    cpdef int lock(self, int target, int kind, int assertion) except -1
    cpdef int unlock(self, int target) except -1
    cpdef int lock_all(self, int assertion) except -1
    cpdef int unlock_all(self) except -1
    # target -1: all.  `local`: complete at the origin is enough.
    cpdef int flush(self, int target, bint local) except -1
    cpdef int sync(self) except -1

    # -- memory of a dynamic window (12.2.4)
    cpdef int attach(self, size_t address, Py_ssize_t size) except -1
    cpdef int detach(self, size_t address) except -1

    cpdef int free(self) except -1
