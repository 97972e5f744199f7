# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages that are matched and not whole yet.  See `incoming.pxd`."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

from ompy.core.constants cimport OK
from ompy_puma.placement cimport run_at


cdef class IncomingTable:
    """The table of one node."""

    def __dealloc__(self):
        cdef uint32_t slot
        for slot in range(self.slot_count):
            Py_XDECREF(<PyObject *> self.slots[slot].process)
            Py_XDECREF(<PyObject *> self.slots[slot].handle)
            PyMem_Free(self.slots[slot])
        PyMem_Free(self.slots)

    cdef Incoming *open(self, Process process, uint64_t number, const Header *header, const Way *way,
                        const Placement *placement) except NULL:
        cdef Incoming *record = self.spare
        cdef void *larger
        cdef int bucket = (number ^ header.source_node) % BUCKETS
        if record != NULL:
            self.spare = record.next
        else:
            if self.slot_count == self.slot_room:
                larger = PyMem_Realloc(self.slots, (2 * self.slot_room + 64) * sizeof(Incoming *))
                if larger == NULL:
                    raise MemoryError("no memory for messages under way")
                self.slots = <Incoming **> larger
                self.slot_room = 2 * self.slot_room + 64
            record = <Incoming *> PyMem_Calloc(1, sizeof(Incoming))
            if record == NULL:
                raise MemoryError("no memory for messages under way")
            record.slot_index = self.slot_count
            self.slots[self.slot_count] = record
            self.slot_count += 1
        Py_INCREF(process)
        process.arriving += 1
        self.generation = (self.generation + 1) & 0xFFFFFFFF
        record.slot = self.generation << 32 | record.slot_index
        record.process = <void *> process
        record.handle = NULL
        record.number = number
        record.node = header.source_node
        record.discarded = record.failed = record.stalled = record.asking = False
        record.fetches = 0
        record.remote = 0
        record.position = 0
        record.way = way[0]
        record.placement = placement[0]
        record.header = header[0]
        record.next = self.buckets[bucket]
        self.buckets[bucket] = record
        self.count += 1
        return record

    cdef Incoming *find(self, uint32_t node, uint64_t number) noexcept:
        cdef Incoming *record = self.buckets[(number ^ node) % BUCKETS]
        while record != NULL and (record.number != number or record.node != node):
            record = record.next
        return record

    cdef Incoming *at(self, uint64_t slot) noexcept:
        cdef uint64_t index = slot & 0xFFFFFFFF
        if index >= self.slot_count or self.slots[index].process == NULL or self.slots[index].slot != slot:
            return NULL
        return self.slots[index]

    cdef void close(self, Incoming *record) noexcept:
        cdef int bucket = (record.number ^ record.node) % BUCKETS
        cdef Incoming **place = &self.buckets[bucket]
        while place[0] != record:
            place = &place[0].next
        place[0] = record.next
        (<Process> record.process).arriving -= 1
        Py_XDECREF(<PyObject *> record.handle)
        Py_XDECREF(<PyObject *> record.process)
        record.handle = NULL
        record.process = NULL
        record.next = self.spare
        self.spare = record
        self.count -= 1

    cdef FetchVerdict fetch(self, Incoming *record, Link link) except *:
        cdef Process process = <Process> record.process
        cdef uint64_t size = 0
        cdef uint64_t at = record.position
        cdef char *run
        cdef bytes handle = <bytes> record.handle if record.handle != NULL else None
        record.stalled = False
        while at < record.placement.length and not (record.failed or record.discarded):
            run = run_at(process, &record.placement, at, &size)
            if run == NULL:
                record.discarded = True
                break
            size = min(size, record.placement.length - at)
            if link.fetch_limit:
                size = min(size, <uint64_t> link.fetch_limit)
            # Counted before the call, which may complete the fetch.
            record.fetches += 1
            record.position = at + size
            if link.fetch(run, record.remote + at, size, handle, record.slot) != OK:
                record.fetches -= 1
                record.position = at
                record.stalled = True
                return FETCH_STALLED
            at += size
        if record.fetches:
            return FETCH_WAITS
        return FETCH_FAILED if record.failed else FETCH_DONE
