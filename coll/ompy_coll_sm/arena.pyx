# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Where communicators get their shared memory from; `arena.pxd` has the picture."""
from _weakref import ref                         # `weakref` itself takes every rank a while to import

from libc.string cimport memset

from ompy.core.atomic cimport acquire32, add32
from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.segment cimport Segment, attach, create

from ompy.core.errors import MPIError
from ompy.core.segment import create_sparse

from ompy_coll_sm.area cimport Header, SHORT, bytes_needed, words_needed

# Contributions of a small room are cut into pieces of so many bytes.
cdef enum:
    SMALL_CHUNK = 4 * SHORT

cdef Segment slab = None                         # of this process
cdef bint no_slab = False                        # it could not be made
cdef size_t taken = 0                            # bytes of it that were ever lent
cdef size_t alone = 0                            # bytes lent in segments of their own
cdef list returned = []                          # rooms of it that are not used, but perhaps by those who are slow

# Slabs of others, by location, and their doorbells, by card, as long as a communicator uses them: of two processes that were
# here one after the other, both may have had the same number.
cdef dict mapped = {}
cdef dict doorbells = {}


cdef class Room:
    """Shared memory of one communicator."""

    cdef bytes card(self):
        return b"%d %d %d %d %d %b" % (self.offset, self.size, self.chunk, self.alone, self.segment.size,
                                       self.segment.location())

    cdef int settle(self) except -1:
        if self.alone:
            self.segment.seal()
        return 0

    cdef int leave(self) except -1:
        if not self.lent:
            add32(self.left, 1)
        elif not self.alone:
            returned.append(self)
        return self.close()

    cdef int withdraw(self) except -1:
        if self.lent:
            self.guests = 0
            self.leave()
        return self.close()

    cdef int close(self) except -1:
        global alone
        if self.alone:
            self.segment.close()
            if self.lent:
                alone -= self.size
                self.lent = False
        return 0


cdef Room lend(int size, size_t chunk, size_t memory, str backing):
    cdef Room room = again(size, chunk) if returned else None
    cdef size_t smaller = min(chunk, <size_t> SMALL_CHUNK)
    if room is None and taken + alone + bytes_needed(size, chunk) <= memory // 2:
        room = carve(size, chunk, memory, backing)
    if room is None and returned:
        room = again(size, smaller)
    if room is None and taken + alone + bytes_needed(size, smaller) <= memory:
        room = carve(size, smaller, memory, backing)
    if room is not None:
        room.guests = size - 1
        room.left = &(<Header *> room.address()).left
    return room


cdef Room again(int size, size_t chunk):
    """A room of this size that everybody has left, its words zeroed."""
    cdef Room room
    cdef size_t nbytes = bytes_needed(size, chunk)
    for room in returned:
        if room.size == nbytes and room.chunk == chunk and acquire32(room.left) >= room.guests:
            returned.remove(room)
            memset(room.address(), 0, words_needed(size))
            return room
    return None


cdef Room carve(int size, size_t chunk, size_t memory, str backing):
    """A room that was not lent before."""
    global slab, no_slab, taken, alone
    cdef Room room = Room.__new__(Room)
    room.size = bytes_needed(size, chunk)
    room.chunk = chunk
    room.lent = True
    if slab is None and not no_slab and backing != "file":
        try:
            slab = create_sparse("ompy-coll", memory)
        except MPIError:
            no_slab = True
    if slab is not None and taken + room.size <= slab.size:
        room.segment = slab
        room.offset = taken
        taken += room.size
        return room
    try:
        room.segment = create("ompy-coll", room.size, backing)
    except MPIError:
        return None
    room.alone = True
    alone += room.size
    return room


cdef object known(dict things, bytes name):
    found = things.get(name)
    return None if found is None else found()


cdef int remember(dict things, bytes name, object thing) except -1:
    for other in [other for other, reference in things.items() if reference() is None]:
        del things[other]
    things[name] = ref(thing)
    return 0


cdef Room enter(bytes card):
    cdef Room room = Room.__new__(Room)
    cdef bytes location
    offset, size, chunk, is_alone, length, location = card.split(b" ", 5)
    room.offset, room.size, room.chunk, room.alone = int(offset), int(size), int(chunk), int(is_alone)
    room.segment = known(mapped, location)
    if room.segment is None:
        room.segment = attach(location, int(length))
        if not room.alone:
            remember(mapped, location, room.segment)
    room.left = &(<Header *> room.address()).left
    return room


cdef RemoteDoorbell doorbell_of(bytes card):
    cdef RemoteDoorbell bell = known(doorbells, card)
    if bell is None:
        try:
            bell = RemoteDoorbell(card)
        except MPIError:
            return None
        remember(doorbells, card, bell)
    return bell
