# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The processes on this host with which windows are shared.  See `neighbours.pxd`."""
import os
from hashlib import blake2b

from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.doorbell cimport own as own_doorbell
from ompy.core.heap cimport base, map_heap
from ompy.core.reach cimport has_gone, refusal, can_read

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.heap import open_heap
from ompy.core.reach import host_identity

# Read by others, to learn whether they can.
cdef bytes PROBE = b"ompy osc"

cdef bytes card = None                           # of this process, as long as its doorbell is the same
cdef object carded = None
cdef bytes host = None
cdef dict met = {}


cdef class Neighbour:
    def __cinit__(self):
        self.reach.pidfd = -1

    def __dealloc__(self):
        if self.reach.pidfd >= 0:
            os.close(self.reach.pidfd)


cdef bytes own_host():
    global host
    if host is None:
        host = blake2b(host_identity().encode(), digest_size=8).hexdigest().encode()
    return host


cdef bytes own_card():
    global card, carded
    if base == NULL:
        return None
    doorbell = own_doorbell()
    if card is None or carded is not doorbell:
        location, address, size = open_heap()
        words = (own_host(), os.getpid(), <size_t> <char *> PROBE, location, address, size, doorbell.card())
        card = b" ".join([word if isinstance(word, bytes) else b"%d" % word for word in words])
        carded = doorbell
    return card if len(card) <= CARD_SIZE else None


cdef Neighbour meet(bytes card):
    cdef Neighbour neighbour = met.get(card)
    if neighbour is not None and not has_gone(&neighbour.reach):
        return neighbour
    where, pid, probe, location, address, size, doorbell = card.split(b" ", 6)
    if where != own_host():
        raise MPIError(ERR_OTHER, f"process {int(pid)} is on another host, or of another user or process name space")
    neighbour = Neighbour.__new__(Neighbour)
    neighbour.reach.pid = int(pid)
    try:
        neighbour.reach.pidfd = os.pidfd_open(neighbour.reach.pid)
    except OSError:
        pass                                     # an old kernel: `has_gone` asks in another way
    neighbour.heap = map_heap(location, int(size))
    neighbour.reach.heap = neighbour.heap.address
    neighbour.reach.heap_address = int(address)
    neighbour.reach.heap_size = int(size)
    neighbour.doorbell = RemoteDoorbell(doorbell)
    neighbour.by_kernel = refusal() is None and can_read(neighbour.reach.pid, int(probe), PROBE)
    met[card] = neighbour
    return neighbour


cdef int forget(list neighbours) except -1:
    global met
    met = {card: neighbour for card, neighbour in met.items() if neighbour not in neighbours}
    return 0
