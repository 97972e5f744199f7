# Put, get and atomics for a BTL that has none: active messages, which the target carries out from its progress.
#
#     ActiveRdma  ->  inner BTL's sendi, TAG_OSC   ~~~>   Servant, one an inner BTL  ->  memory  ->  answer back the same way
#
#     PUT     Order, data                   DONE      Order
#     GET     Order                         DATA      Order, data
#     ATOMIC  Order (operand, compare)      DONE      Order (the old value as operand)
#     SCATTER Order, runs of blocks, data   DONE      Order
#     GATHER  Order, runs of blocks         DATA      Order, data
#     ASK     Order                         DATA      Order, data: what a register says of the address
#     HELLO   Order                         no answer: it wakes who sleeps, and has the transport watch both ends
#
# It is a `Btl` as far as remote memory goes, so that whoever uses one need not care; its own `send` is nobody's.  A region's
# handle is a name, which the target looks up: what is not registered there, or no longer, is ERR_RMA_RANGE.  An answer that
# the inner BTL does not take waits in `answers`.
from libc.stdint cimport int64_t, uint64_t

from ompy.mca.btl cimport Btl, Descriptor, Endpoint, Receiver

cdef enum:
    PUT = 1
    GET = 2
    ATOMIC = 3
    DONE = 4
    DATA = 5
    HELLO = 6
    ASK = 7
    SCATTER = 8
    GATHER = 9

cdef struct Order:
    int kind
    int status                                   # of an answer: 0, or an error class
    int operation
    int size                                     # bytes that are asked for or sent
    uint64_t number                              # of the access, at its origin
    uint64_t region
    uint64_t address
    int64_t operand                              # of SCATTER and GATHER: how many runs
    int64_t compare


cdef class ActiveRdma(Btl):
    cdef readonly Btl inner
    cdef dict accesses                           # number -> (Descriptor, Endpoint)
    cdef uint64_t numbers
    cdef object answers                          # (Endpoint, bytes) that were not taken
    cdef int waiting                             # there are some
    cdef unsigned int rounds
    cdef int users

    cdef int order(self, Endpoint endpoint, Descriptor descriptor, Order *order, const void *body, size_t size) except -1
    cdef int carry_runs(self, Endpoint endpoint, Order *order, const char *data, size_t length) except -1
    cdef int arrived(self, Endpoint endpoint, const char *data, size_t length) except -1
    cdef int look_up(self, Endpoint endpoint, Order *order) except -1
    cdef int answer(self, Endpoint endpoint, Order *order, const char *data, size_t length) except -1
    cdef int tell(self, Endpoint endpoint, const char *head, size_t head_size, const char *data, size_t length) except -1
    cdef int conclude(self, const Order *order, const char *data, size_t length) except -1
    # To blocks of the peer's memory: the descriptor's bytes are `count` runs, with addresses there, then the blocks' own.
    cdef int scatter(self, Endpoint endpoint, Descriptor descriptor, size_t count) except -1
    # The other way; the runs are at `remote_address`, here.
    cdef int gather(self, Endpoint endpoint, Descriptor descriptor, size_t count) except -1
    # `size` bytes of what the register named by `remote_handle` says of `remote_address` come to `local_address`.
    cdef int ask(self, Endpoint endpoint, Descriptor descriptor) except -1
    # Wake the peer.
    cdef int greet(self, Endpoint endpoint) except -1


# The one around a BTL, made for its first user.
cdef ActiveRdma around(Btl inner)
cdef int let_go(ActiveRdma layer) except -1
# Make memory of this process known to peers by a name, the same for all inner BTLs, until `close_region`.
cdef uint64_t open_region(uint64_t address, uint64_t size) except 0
cdef int close_region(uint64_t name) except -1
# The same for an object whose method `entry(address)` returns the bytes that peers are told.
cdef uint64_t open_register(object register) except 0
cdef int close_register(uint64_t name) except -1
