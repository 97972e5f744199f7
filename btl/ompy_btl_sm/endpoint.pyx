# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""One peer on this host: the ring towards it, the ring from it, its doorbell."""
import os

from libc.stdint cimport uint64_t

from ompy.core.atomic cimport acquire32, full_fence, release, release32
from ompy.core.doorbell cimport RemoteDoorbell, ring
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.heap cimport map_heap
from ompy.core.reach import host_identity
from ompy.core.reach cimport has_gone
from ompy.mca.btl cimport Endpoint
from ompy_btl_sm.inbox cimport announce
from ompy_btl_sm.ring cimport CARD_SIZE, make, open_reader, peek

cdef extern from "<string.h>":
    size_t strnlen(const char *text, size_t limit) nogil

PROBE = b"ompy cma"
# Kept for the life of the process: peers read it to learn whether they can.
cdef bytes probe_bytes = PROBE


cdef class Card:
    @staticmethod
    def write(bytes inbox, int slots, bytes doorbell, heap: tuple[bytes, int, int] | None) -> bytes:
        """This process's card; `heap` is what `open_heap` returned."""
        probe = <size_t> <char *> probe_bytes
        where, address, size = heap or (b"", 0, 0)
        fields = (os.getpid(), host_identity(), inbox.decode(), slots, probe, doorbell.decode(), where.decode(), address, size)
        return "\n".join(map(str, fields)).encode()

    def __init__(self, bytes text):
        pid, host, inbox, slots, probe, doorbell, heap, address, size = text.decode().split("\n")
        self.pid = int(pid)
        self.host = host
        self.inbox = inbox.encode()
        self.slots = int(slots)
        self.probe_address = int(probe)
        self.doorbell = doorbell.encode()
        self.heap = heap.encode()
        self.heap_address = int(address)
        self.heap_size = int(size)


cdef class Incoming:
    def __init__(self, int pid, bytes location, size_t size):
        self.pid = pid
        self.segment = open_reader(&self.reader, location, size)

    cdef int give_back(self) except -1:
        self.reader.returned = self.reader.position
        release(&self.reader.header.returned, self.reader.position)
        full_fence()
        if acquire32(&self.reader.header.wants_space):
            if self.doorbell is None:
                card = self.reader.header.doorbell[:strnlen(self.reader.header.doorbell, CARD_SIZE)]
                try:
                    self.doorbell = RemoteDoorbell(card)
                except MPIError:
                    return 0                     # it has died, or looks for space by itself at its back-stop
            ring(self.doorbell)
        return 0

    cdef int close(self) except -1:
        if self.segment is not None:
            release32(&self.reader.header.reader_closed, 1)
            self.reader.header = NULL
            self.segment.close()
            self.segment = None
            if self.doorbell is not None:
                self.doorbell.close()
        return 0


cdef class SmEndpoint(Endpoint):
    def __cinit__(self):
        self.reach.pidfd = -1

    def __init__(self, btl, proc, Card card):
        Endpoint.__init__(self, btl, proc)
        self.card = card
        self.reach.pid = card.pid
        self.reach.heap_address = card.heap_address
        self.reach.heap_size = card.heap_size

    cdef bint connect(self, size_t ring_size, str backing, bytes own_doorbell) except -1:
        if self.connecting:
            return False                         # another thread is inside, in a system call
        self.connecting = True
        try:
            if self.segment is None:
                self.doorbell = RemoteDoorbell(self.card.doorbell)
                self.segment = make(&self.writer, ring_size, backing, own_doorbell)
                self.writer.limit = 0            # nothing may be written before the ring is announced
            if not announce(self.card.inbox, self.card.slots, os.getpid(), self.segment.location(), ring_size):
                return False
            self.watch()
            self.connected = True
            self.writer.limit = ring_size
            ring(self.doorbell)
            return True
        except MPIError as error:
            raise self.reason(error)
        finally:
            self.connecting = False

    cdef int watch(self) except -1:
        if self.reach.pidfd < 0:
            try:
                self.reach.pidfd = os.pidfd_open(self.card.pid)
            except OSError:
                pass                             # gone already, or an old kernel: `is_dead` asks in another way
        return 0

    cdef bint sees(self, uint64_t address, size_t size) except -1:
        cdef uint64_t offset = address - self.reach.heap_address
        if offset >= self.reach.heap_size or size > self.reach.heap_size - offset:
            return False
        if self.heap is None:
            try:
                self.heap = map_heap(self.card.heap, self.card.heap_size)
            except MPIError:
                self.reach.heap_size = 0
                return False
            self.reach.heap = self.heap.address
        return True

    cdef object reason(self, object error):
        self.watch()
        if error is not None and not has_gone(&self.reach):
            return error
        return MPIError(ERR_PROC_FAILED, f"process {self.card.pid} (rank {self.proc.rank} of job {self.proc.job}) has died")

    cdef bint is_found(self) except -1:
        return not self.connected or acquire32(&self.writer.header.attached) or has_gone(&self.reach)

    cdef bint is_dead(self) except -1:
        if not has_gone(&self.reach):
            return False
        if self.incoming is not None:
            # What it sent before it went is still to be received.
            if peek(&self.incoming.reader) or self.incoming.reader.header.writer_closed:
                return False
        return self.writer.header == NULL or not self.writer.header.reader_closed

    cdef int close(self) except -1:
        if self.segment is not None:
            release32(&self.writer.header.writer_closed, 1)
            self.connected = False
            self.writer.header = NULL
            self.writer.limit = 0
            self.segment.close()
            self.segment = None
        if self.doorbell is not None:
            self.doorbell.close()
            self.doorbell = None
        if self.reach.pidfd >= 0:
            os.close(self.reach.pidfd)
            self.reach.pidfd = -1
        if self.heap is not None:
            self.reach.heap = NULL
            self.heap.close()
            self.heap = None
        self.reach.heap_size = 0
        return 0
