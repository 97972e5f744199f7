# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What an owner is told of its portals.  See `events.pxd`."""
from ompy_puma.process cimport (
    DROP_NONE, EVENT_DEPOSITED, EVENT_DROPPED, EVENT_READ, SIGNAL_ARRIVAL, SIGNAL_DROP, Event,
)


cdef int tell(Process process, EventKind kind, const Way *way, const Placement *placement, const Header *header) except -1:
    cdef Event event
    if kind == EVENT_DEPOSITED or kind == EVENT_READ:
        process.signals |= SIGNAL_ARRIVAL
        process.portals[way.portal].delivered += 1
        process.descriptors[placement.descriptor].messages += 1
        process.descriptors[placement.descriptor].bytes += placement.length
    event.kind = kind
    event.reason = DROP_NONE
    event.portal = way.portal
    event.entry = way.entry
    event.refused = way.refused
    event.descriptor = placement.descriptor
    event.saved = placement.saved
    event.header = header
    event.body = placement.body
    event.length = placement.length
    event.buffer = placement.buffer
    event.letter = placement.letter
    event.owner = process.entries[way.entry].owner if way.entry >= 0 else 0
    return process.arrived(&event)


cdef int tell_drop(Process process, DropReason reason, const Way *way, const Header *header) except -1:
    cdef Event event
    process.signals |= SIGNAL_DROP
    process.drops[<int> reason] += 1
    if 0 <= way.portal < process.portal_count:
        process.portals[way.portal].dropped += 1
    if 0 <= way.descriptor < process.descriptor_count:
        process.descriptors[way.descriptor].dropped += 1
        process.descriptors[way.descriptor].last_drop = reason
    event.kind = EVENT_DROPPED
    event.reason = reason
    event.portal = way.portal
    event.entry = way.entry
    event.refused = way.refused
    event.descriptor = way.descriptor
    event.saved = 0
    event.header = header
    event.body = NULL
    event.length = 0
    event.buffer = NULL
    event.letter = NULL
    event.owner = process.entries[way.entry].owner if 0 <= way.entry < process.entry_count else 0
    return process.arrived(&event)
