# One-sided communication: how a window's processes read and write one another's memory (MPI-4.1, chapter 12).
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca osc NAME,pt2pt`) says which one was broken.
#
# LIFE CYCLE
#    1 choice        When a window is made, on every rank of it, each component's `query` sees it (`context.window`), and the
#                    one with the highest priority serves it: the same one on every rank, so a query depends only on what all
#                    ranks know (flavor, sizes, units, parameters), or what they tell one another in it: it is collective, and
#                    `window.parent`, from which the window is made, can carry collectives meanwhile.  By `Offer.again` the one
#                    that serves is given later windows of the kind without a query.  The capability
#                    `flavors` names the kinds of window that are served; others are refused with the reason.
#    2 open          `open` is called on the module that was chosen: from there on, other ranks may ask for its memory.  By then
#                    the window's private communicator carries messages and collectives.  Windows are made and freed in any
#                    order beside one another, on the same ranks or on some of them; what is done in one touches no other.
#    3 free          `free` is collective.  When it returns no other rank will touch this process's memory, and everything that
#                    the component held for the window is given back: memory, descriptors, shared segments, requests.  The
#                    caller then frees communicator and memory.  Within an epoch it is ERR_RMA_SYNC, and the window serves on;
#                    the caller asks `may_free` before it calls what the program has to have called before.
#
# ACCESSES, which the origin makes within an epoch
#    4 put           The origin's data are in the target's memory when the access is complete there; nothing else has changed.
#    5 get           What the target's memory holds is in the origin's when the access is complete at the origin.
#    6 layout        Memory is given as address, count and typemap.  Either side's typemap may be any, with gaps, lower bounds
#                    and extents of its own, also one that the origin alone has made; gaps stay as they are.  Counts may be 0.
#    7 accumulate    The target's elements become `operation` of what they were and the origin's data, for each predefined
#                    operation on the types that it is defined on; REPLACE writes, NO_OP leaves them.  A program's own
#                    operation is ERR_OP.
#    8 fetch         get_accumulate gives what the elements held just before its own operation; with NO_OP the origin's side is
#                    not looked at.  compare_and_swap writes where the element has the bytes of the one that is compared, and
#                    gives what was there.
#    9 atomic        Accumulates (accumulate, get_accumulate, compare_and_swap) are atomic for each element, towards all others
#                    of any origin, the target itself too, whatever their lengths, forms and operations.  Put and get are not.
#   10 order         The accumulates of one origin take effect at one target in the order of the calls (MPI-4.1, 12.7.2), long
#                    and short mixed.  Put and get promise no order.
#   11 bounds        What does not lie within the target's memory is refused at the origin, by the call, with ERR_RMA_RANGE or
#                    ERR_DISP (`Window.check_range`), and ERR_ARG when origin and target differ in their bytes of data.  Nothing
#                    was moved, and the epoch goes on.
#   12 request       An access method returns None, or, when `access.requested` is set and the access is not yet complete at the
#                    origin, a request that completes then without another call (MPI-4.1, 12.3.5).  It is never persistent.
#                    `access.owner` keeps the program's memory alive: the module holds it until then.
#
# EPOCHS
#   13 epoch         An access without an epoch towards its target, and a call that opens or closes one where it does not
#                    belong, is ERR_RMA_SYNC; a kind of lock that there is none of is ERR_LOCKTYPE.  Nothing was done by it.
#                    `ompy.mca.epochs` keeps count.
#   14 completion    `flush`, `unlock` and `unlock_all` return when the accesses are complete at the target, where they are then
#                    seen by loads and whoever is told; local flushes and `complete` when they are at the origin, whose memory
#                    is then the program's again.  A target of -1 means all.  Accesses that were made before a call are complete
#                    after it, whatever their number.
#   15 fence         `fence` returns when all ranks have entered it, and the accesses of the epoch before are complete on every
#                    rank, as origin and as target.
#   16 posts         `start` returns when the ranks of it have posted, or may before: then accesses wait for the post.  `wait`
#                    returns when all ranks of `post` have completed and their accesses are there; `test` says whether, without
#                    waiting, and ends the epoch like `wait` when it says yes.  Groups may differ from rank to rank and from one
#                    epoch to the next; a rank may be in its own; one may be origin and target at once.  They may be empty.
#                    The lists of ranks are only read: the next epoch may be given the same.
#   17 isolation     An epoch's end takes effect at the target only when answers have left the window: what its owner stores
#                    afterwards is not read by a get of before.  Nothing of the next epoch touches the target's memory before
#                    this one has ended there, for the other origins too.
#   18 locks         An exclusive lock excludes all others, of the target itself too; shared ones, and those of `lock_all`, hold
#                    together.  A lock that is asked for is granted when those before it are given back.  With ASSERT_NOCHECK
#                    nothing need be asked.  Locks of different targets have nothing to do with one another.
#   19 dynamic       In a dynamic window displacements are addresses; memory serves from `attach` to `detach`: ERR_RMA_ATTACH
#                    for what overlaps, ERR_ARG for what is not attached, ERR_RMA_FLAVOR in other windows.  An access may touch
#                    several stretches, and what lies between its elements need not be attached.  What lies outside is known to
#                    the target alone: ERR_RMA_RANGE comes from the access or from the call that completes it, and nothing was
#                    moved.
#
# RULES
#   20 progress      A target makes progress whenever it is inside any MPI call, or its progress thread runs
#                    (`mpi_async_progress`), and needs no call for the window: `direct` says that it needs none at all.  Waiting
#                    is the engine's (`ompy.core.progress`), with a request whose `operation` names the WIN_* call on the job
#                    board.
#   21 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
#
# The layer above has checked that ranks are in range and never PROC_NULL.
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
    cdef object origin_owner, result_owner, compare_owner    # `owner` is of all three


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

    # ERR_RMA_SYNC where `free` would be; nothing is done.
    cpdef int may_free(self) except -1
    cpdef int free(self) except -1
