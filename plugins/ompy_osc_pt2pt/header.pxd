# What an origin sends to a target: an order.
#
#     | Order | description of the target's datatype, padded to 16 bytes | data |
#
# Orders go under one tag, in the order of the calls, and a target carries those of one origin out in that order.
#
#     put, short       order with the data in it
#     put, long        order; then the data as a message of its own from the program's memory into the window
#     get              order; then the data as a message from the window into the program's memory
#     accumulate       as put, but what comes is combined with what is there; fetching ones answer with what was there
#     flush, unlock    order; then, when all before it is done, an answer: no bytes, or the words of what went wrong
#
# An access can be a flush as well (FLAG_FLUSHES): what it answers by itself, if anything, is then followed by a flush's answer.
#
# The number of the order is the tag of its data; the answer to it has the next higher one.  Origins draw even numbers, so a
# pair of ranks that order from each other never confuse data and answers.  The communicator is the window's own.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    TAG_ORDER = 0
    TAG_FIRST = 2
    TAG_LIMIT = 1 << 30

cdef enum Kind:
    KIND_PUT, KIND_GET, KIND_ACCUMULATE, KIND_GET_ACCUMULATE, KIND_COMPARE_AND_SWAP,
    KIND_FLUSH, KIND_LOCK, KIND_UNLOCK, KIND_POST, KIND_COMPLETE, KIND_FENCE

# Order.flags
cdef enum:
    FLAG_APART = 1                               # the data is a message of its own
    FLAG_SHARED = 2                              # of a lock
    FLAG_FLUSHES = 4

cdef struct Order:
    int32_t kind
    int32_t flags
    int32_t number
    int32_t operation                            # index into `OPERATIONS` of `service`
    int32_t basic                                # code of the target's datatype, or -1: the description says
    int32_t description                          # its bytes, without padding
    int64_t displacement
    int64_t count                                # of the target's elements
    int64_t length                               # bytes of data that the origin sends
    int64_t settles                              # FLAG_FLUSHES: accesses, for the origin, that are settled when it is answered
    int64_t spare                                # a multiple of 16 bytes in all, so that the data is aligned


cdef inline Py_ssize_t padded(Py_ssize_t length) noexcept:
    return (length + 15) // 16 * 16
