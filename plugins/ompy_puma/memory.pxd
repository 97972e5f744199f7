# Regions of a process's memory, which its kin write, read and change without its help; and its own accesses to theirs.
#
#       0 WRITE --> an entry a region               put: sender's offset, acknowledged
#       1 READ ---> an entry a region               get: the kernel replies
#       2 CHANGE -> an entry a region               atomic: the kernel changes a word, and acknowledges with what it was
#       3 LAND ---> an entry a get under way        where replies go
#       4 WORD                                      acknowledgements; "nothing there" from targets
#       5 ...                                       the owner's
#
# A region's name, which its process chooses, is its match bits.  Who is to access it is told its handle: that name, and the
# address that offsets count from.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.mca.btl cimport Descriptor

from ompy_puma.descriptor cimport Buffer
from ompy_puma.header cimport Change, Header
from ompy_puma.kernel cimport QKernel
from ompy_puma.process cimport Event, Process

cdef enum:
    PORTAL_WRITE = 0
    PORTAL_READ = 1
    PORTAL_CHANGE = 2
    PORTAL_LAND = 3
    PORTAL_WORD = 4
    MEMORY_PORTALS = 5


cdef class Access:
    """A put, get or change under way."""
    cdef Descriptor descriptor
    cdef uint64_t number
    cdef uint32_t node
    cdef bint changes
    cdef Change question
    cdef int entry                               # at LAND, of a get; else -1
    cdef int awaited                             # the kernel's release of our memory, the other side's word
    cdef int status


cdef class Memory(Process):
    cdef QKernel qkernel
    cdef int capability
    cdef str limit
    cdef dict accesses                           # number -> Access
    cdef dict regions                            # name -> its entries
    cdef uint64_t serial
    cdef Buffer words

    cdef int open_region(self, uint64_t name, uint64_t address, uint64_t size) except -1
    cdef int close_region(self, uint64_t name) except -1

    # Of the descriptor's memory here and there; OUT_OF_RESOURCE: nothing was taken.  It is complete when all is there, or here;
    # with ERR_RMA_RANGE where the target has no such region, or does not let us in.
    cdef int put(self, uint32_t node, Descriptor descriptor) except -1
    cdef int get(self, uint32_t node, Descriptor descriptor) except -1
    # `operation`: by the numbers of `ompy.core.atomic`.
    cdef int change(self, uint32_t node, Descriptor descriptor, int operation, int64_t operand, int64_t compare) except -1
    # All that is under way with a node has failed.
    cdef int fail_all(self, uint32_t node, int status) except -1

    # An entry for a single block in front of a portal's list, or of one that the owner has added.
    cdef int entry_for(self, int portal, uint64_t bits, uint32_t source, void *address, uint64_t size, int operation,
                       int options) except -1
    cdef int drop_entry(self, int entry) except -1

    # -- within
    cdef bint is_full(self) noexcept
    cdef Access begin(self, uint32_t node, Descriptor descriptor, int portal, Header *header)
    cdef int launch(self, Access access, Header *header, const char *body, uint64_t length) except -1
    cdef int no_longer(self, Access access, int what, int status) except -1
    cdef int heard(self, const Header *header) except -1
    cdef int nothing_there(self, const Header *header) except -1


# What peers are told of a region.
cdef bytes handle_of(uint64_t name, uint64_t address)
# Gives a process its place, the same on every node, and the right to send to its kin; returns the capability.
cdef int join(QKernel kernel, Process process, int place) except -1
