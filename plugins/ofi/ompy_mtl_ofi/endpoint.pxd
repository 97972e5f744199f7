# One endpoint of libfabric's, reliable and tagged, and what it needs: fabric, domain, addresses, a queue of completions.
#
# Every operation that the provider is given stands for itself as long as that has it: an `Operation`, whose first words are
# lent to the provider (FI_CONTEXT2), and which has `room` bytes of its own.  Nothing here waits, and nothing calls back:
# what the provider says is over is an `Event` in a ring, read from the front, so that whoever takes an operation back finds
# out at once whether it was too late, and what else has come stays in its order.
#
#     take -> send | receive -> ... provider ... -> read -> event -> give
#
# The provider leaves locking to us (FI_THREAD_DOMAIN): one thread at a time is inside the engine, and all of this is.
from libc.stdint cimport uint64_t

from ompy.core.progress_source cimport ProgressSource

from ompy_mtl_ofi.fabric cimport fi_info, fid, fid_av, fid_cq, fid_domain, fid_ep, fid_fabric

cdef enum:
    SLAB = 64                       # operations that are made at a time

cdef struct Operation:
    uint64_t lent[8]
    int kind                        # the engine's
    void *owner                     # a reference, or NULL
    uint64_t address, tag
    const char *data                # what is sent, or where it is received
    uint64_t length
    char *room
    Operation *next

cdef struct Event:
    Operation *operation
    uint64_t length, tag
    int error                       # 0, CANCELLED or what fi_strerror explains


cdef class Library:
    cdef void *handle
    cdef int (*getinfo)(unsigned int version, const char *node, const char *service, uint64_t flags, fi_info *hints,
                        fi_info **found) noexcept
    cdef void (*freeinfo)(fi_info *info) noexcept
    cdef fi_info *(*dupinfo)(const fi_info *info) noexcept
    cdef int (*fabric)(void *attr, fid_fabric **fabric, void *context) noexcept
    cdef const char *(*strerror)(int number) noexcept
    cdef unsigned int (*version)() noexcept

    cdef str explain(self, int number)


cdef class Endpoint(ProgressSource):
    cdef Library library
    cdef fi_info *info
    cdef fid_fabric *fabric
    cdef fid_domain *domain
    cdef fid_av *addresses
    cdef fid_cq *completions
    cdef fid_ep *ep
    cdef int waiter                              # a descriptor, or -1
    cdef int process                             # which opened it
    cdef readonly str provider
    cdef readonly bytes name                     # its address
    cdef readonly int tag_bits
    cdef readonly uint64_t room                  # bytes of an operation
    cdef readonly uint64_t inject_size, largest, receives
    cdef readonly uint64_t sending               # sends that the provider has
    cdef Operation *spare
    cdef list slabs                              # addresses of what `spare` was made of
    cdef Event *events
    cdef int first, count, size                  # of the ring
    cdef unsigned int vain                       # reads that found nothing

    cdef Operation *take(self, int kind, object owner) except NULL
    cdef int give(self, Operation *operation) except -1
    cdef uint64_t insert(self, bytes address) except? 0xFFFFFFFFFFFFFFFF
    # OK, OUT_OF_RESOURCE (nothing was taken), or the negative of an error's number.
    cdef int send(self, Operation *operation) noexcept
    cdef int inject(self, const char *data, uint64_t length, uint64_t address, uint64_t tag) noexcept
    cdef int receive(self, Operation *operation, uint64_t ignore) noexcept
    # Ask for an operation back: True when it is ours again.  False: an event for it is there, or will come.
    cdef bint take_back(self, Operation *operation) except -1
    # See what has come; returns how many events wait.
    cdef int read(self) except -1
    # Whether nothing is to be done until the descriptor is readable again.  False where there is none: whoever waits then rests
    # for moments only.
    cdef bint is_quiet(self) noexcept
    # The oldest event; False when there is none.
    cdef bint next_event(self, Event *event) noexcept
    cdef int note(self, void *operation, uint64_t length, uint64_t tag, int error) except -1
    cpdef int close(self) except -1
