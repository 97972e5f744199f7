# How a rank gets at the others' memory: by what, at which address, with which handle.
#
#     towards each rank   a `Btl` with put, get and atomics, where the component finds one (`find_native`) that exposes the
#                         window's memory and the state; else active messages over the first of the rank's BTLs
#                         (`ompy.mca.active_rdma`)
#
# What a rank tells of a piece of its memory is a row of numbers, of which others make a key:
#
#     | address | bytes | region of the layer | exposed | name of a BTL, length and words of a handle | ...
#
# Each rank has a state, words that the others change by remote atomics:
#
#     | combining | drawn  writing  reading | detached | holders ... | posted ... | completed ... | combiners .. |  8 bytes each
#
#     combining    whose turn it is to accumulate into this rank's memory: 0 where it is nobody's; else how many numbers were
#                  drawn, which is served, and who took it without drawing, rank + 1.  Whoever is quick has it, until another
#                  has waited for long and draws: then nobody gets two turns before all have had theirs who have drawn
#
#                        0 -> 1|0|4  rank 3, at once -> 2|0|4  number 1 is drawn -> 2|1|0  rank 3 is done -> 0
#     drawn ..     the lock of this rank's memory, fair: who wants it draws a number.  A writer has it when `writing` has
#                  come to his number, a reader when `reading` has, which he then moves on so that the next one may read
#                  too; giving it back moves on `writing`, and a writer `reading` as well
#
#                        drawn 4   writing 1   reading 3       number 0 is done, 1 and 2 read, 3 is a writer and waits
#
#     detached     how often this rank has taken memory away from a dynamic window
#     holders      what rank i has of the lock: if i is dead, those behind it wait for nothing.  While it waits, its number + 1
#                  above that: if i is dead, whoever waits behind it passes the lock on when its turn has come
#     posted       how often rank i has posted to this one
#     completed    how often rank i has completed towards this one
#     combiners    how many numbers of `combining` threads of rank i draw or have: if i is dead, those behind wait for nothing
#
# An access is begun and counted; a flush waits for the count.  What is begun is ended: exceptions of signal handlers are kept
# meanwhile, since transports write to memory of ours.
#
# Where what is begun towards a rank takes effect there in that order (`in_order`) several changes and accesses are begun at
# once, and one round trip is waited for:
#
#     lock     hold, draw, look      | waits |                   unlock   pass on, let go      | waits |
#     update   take the turn, read   | waits | combine here, write, give the turn back         | waits |
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t

from ompy.core.heap cimport Block
from ompy.core.proc cimport Proc
from ompy.core.request cimport Request
from ompy.mca.active_rdma cimport ActiveRdma
from ompy.mca.bml cimport Bml, PeerRoutes
from ompy.mca.btl cimport Btl, Descriptor, Endpoint
from ompy.mca.epochs cimport Epochs

cdef enum Word:
    COMBINING, DRAWN, WRITING, READING, DETACHED, HOLDERS


cdef enum:
    # Fields of `combining`, 64 bits together, so that what is carried out of `drawn` is gone: | drawn | served | holder |
    HOLDER_BITS = 20
    NUMBER_BITS = 22
    # Of `holders`: | number + 1 | LOCK_SHARED or LOCK_EXCLUSIVE |
    WAITING = 1024

cdef enum What:
    PUT, GET, ATOMIC, ASK, SCATTER, GATHER

cdef enum Row:
    ADDRESS, BYTES, REGION, EXPOSED, HANDLES

cdef enum:
    # Of a handle in a row: a length and so many words; and as many handles, one for each BTL that wants it.
    HANDLE_WORDS = 5
    MOST_HANDLES = 3
    LONGEST_ROW = 25                             # HANDLES + MOST_HANDLES * (2 + HANDLE_WORDS)


cdef class Key:
    """What opens a piece of another rank's memory."""
    cdef Btl btl                                 # native, or the layer
    cdef Endpoint endpoint                       # of it; the layer's is the inner BTL's
    cdef bytes handle
    cdef uint64_t address, size
    cdef size_t put_limit, get_limit
    cdef list parts                              # of elements in several pieces: keys as `require_attached` asks; no more here


cdef class Way:
    """One rank's memory, as this one gets at it."""
    cdef int rank                                # in the window
    cdef Proc proc
    cdef Btl native                              # with put, get and atomics; None: there is none
    cdef Endpoint endpoint                       # of it
    cdef ActiveRdma layer                        # None: this rank
    cdef Endpoint waking                         # of the layer, by which the peer is woken too
    cdef uint64_t base
    cdef Key memory, state                       # both native or neither; of this rank None
    cdef bytes register                          # of what the rank has attached
    cdef size_t in_order                         # of accesses of so many bytes at most; 0: nothing keeps its order
    cdef int under_way                           # descriptors
    cdef int status                              # what went wrong, until it is told


cdef class Attempt(Request):
    """A call that a transport has refused for now, as the job board shows it."""
    cdef Way way
    # Made again; whether it was taken.  ERR_PROC_FAILED where the rank has died.
    cdef bint make(self) except -1


cdef class Transfer:
    """What a descriptor leaves to be done."""
    cdef Way way
    cdef object owner                            # of the memory here
    cdef bytes local_handle


cdef inline int64_t number_in(bytearray word):
    return (<int64_t *> PyByteArray_AS_STRING(word))[0]
cdef Key key_of(list row, Btl btl, Endpoint endpoint, bytes handle)
cdef Descriptor new_descriptor(Way way, Key key, size_t here, uint64_t there, size_t size, object owner)


cdef class Ways(Epochs):
    cdef Bml bml
    cdef list ways                               # rank -> Way
    cdef Block state
    cdef int64_t *words                          # of it
    cdef list layers                             # in use
    cdef list rows                               # of memory and state, as the others have them
    cdef list held                               # (Btl, handle) of both

    # For components: sets `native` and `endpoint` of a way where there is what can do without the rank's help, and `in_order`.
    cdef int find_native(self, Way way, PeerRoutes routes) except -1

    # Of memory of this rank; what is to be released goes to `held`.
    cdef list row_of(self, uint64_t address, uint64_t size, list held)
    cdef int close_row(self, list row, list held) except -1
    # None where `native` does not get there.
    cdef Key native_key(self, Way way, list row)
    cdef Key layer_key(self, Way way, list row)

    cdef int begin(self, Way way, Key key, bint inward, size_t here, uint64_t there, size_t size, object owner) except -1
    # Until it is taken, while the engine goes on.
    cdef int persist(self, Attempt attempt) except -1
    # Hand a descriptor over, and count it; the numbers are an atomic's.
    cdef int launch(self, Way way, Key key, int what, Descriptor descriptor, str operation, int64_t operand,
                    int64_t compare) except -1
    # All that was begun is done here; and, unless `local`, there.
    cdef int finish(self, int target, bint local) except -1
    # On a word of a rank's state; the old value.
    cdef int64_t change(self, int target, int word, str operation, int64_t operand, int64_t compare) except? -1
    # The same without a wait: where the old value is once all is finished.
    cdef bytearray begin_change(self, int target, int word, str operation, int64_t operand, int64_t compare)
    # Read the first words of a rank's state.
    cdef int look(self, int target, int count, bytearray words) except -1
    cdef int begin_look(self, int target, int count, bytearray words) except -1
    # What is begun next takes effect after what was begun.
    cdef int keep_order(self, int target) except -1
    # Until something may have changed elsewhere, longer from round to round; exceptions of signal handlers are kept.
    cdef int pause(self, int round, int target, int operation) except -1
    cdef int require_alive(self, int rank, str doing) except -1
    cdef int wake_peer(self, int target) except -1


# Errors: ERR_PROC_FAILED.
cdef int require_living(Way way, str doing) except -1
