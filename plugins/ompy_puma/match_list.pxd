# Matching lists: which messages may reach a descriptor (Cplant, "Matching Lists").
#
#     portal table           entry 7                       entry 2                      entry 9
#     0 | descriptor 3 |     | criteria -> descriptor 4 |  | criteria -> descriptor 1|  | any -> heap, descriptor 0 |
#     1 | list: 7 -----|---> | no match ----------------|->| no match ---------------|->| no match -> end           |
#     2 | nothing      |     | too long -> end          |  | too long ---------------|->| too long -> end           |
#                            | invalid or full ---------|->| invalid or full --------|->| invalid or full -> end    |
#
# An entry takes a message when the source's group and rank are its own or wild, and (bits ^ its bits) & mask is zero.  The
# kernel follows one of three links when it can't use an entry; at the end it drops the message and says why.
#
# Entries live in the owner's memory, an array per process.  The kernel checks each index, and gives up after as many steps
# as there are entries, so that a list tied into a ring harms its owner only.
from libc.stdint cimport int32_t, uint32_t, uint64_t

from ompy_puma.header cimport Header

cdef enum:
    LINK_END = -1               # drop the message
    LINK_NEXT = -2              # for `too_long` and `invalid`: go where `no_match` goes
    ANY_GROUP = 0xFFFFFFFF
    ANY_RANK = 0xFFFFFFFF

# PortalEntry.kind
cdef enum:
    PORTAL_NOTHING = 0
    PORTAL_DESCRIPTOR = 1
    PORTAL_LIST = 2

cdef struct PortalEntry:
    int32_t kind
    int32_t index                                # of the descriptor, or of the first match entry (LINK_END: none)
    int32_t last                                 # match entry; the kernel does not look at it
    int32_t reserved
    uint64_t delivered, dropped

cdef struct MatchEntry:
    uint64_t match_bits
    uint64_t mask                                # the bits that must be equal
    uint32_t source_group                        # or ANY_GROUP
    uint32_t source_rank                         # or ANY_RANK
    int32_t no_match, too_long, invalid          # index of an entry, LINK_END; the latter two also LINK_NEXT
    int32_t descriptor                           # index
    # The kernel does not look at the rest.
    int32_t previous                             # whose `no_match` leads here; LINK_END for the first
    int32_t portal                               # in whose list it stands, or -1
    uint64_t owner                               # for its owner: handed back with every event


cdef inline bint matches(const MatchEntry *entry, const Header *header) noexcept nogil:
    return (
        (entry.match_bits ^ header.match_bits) & entry.mask == 0
        and (entry.source_rank == header.source_rank or entry.source_rank == <uint32_t> ANY_RANK)
        and (entry.source_group == header.source_group or entry.source_group == <uint32_t> ANY_GROUP)
    )
