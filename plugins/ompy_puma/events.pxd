# What an owner is told: counters first, then its `arrived`.
from ompy_puma.header cimport Header
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport DropReason, EventKind, Process

# Where a message went on its way through a process's lists.
cdef struct Way:
    int portal
    int entry                                    # -1: no matching list
    int refused                                  # last entry that matched and whose too-long link was followed, or -1
    int descriptor                               # last one asked, or -1
    DropReason reason                            # why that one refused

cdef int tell(Process process, EventKind kind, const Way *way, const Placement *placement, const Header *header) except -1
cdef int tell_drop(Process process, DropReason reason, const Way *way, const Header *header) except -1
