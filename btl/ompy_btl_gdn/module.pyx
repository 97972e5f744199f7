# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The Raw chip's network as a byte transport."""
from time import monotonic

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.proc cimport Proc
from ompy.core.progress cimport waiting
from ompy.core.progress_source cimport events_made, wake
from ompy.mca.btl cimport FLAG_IN_ORDER, FLAG_SEND, FLAG_SENDI, INTERFACE, Btl, Descriptor, Endpoint
from ompy_btl_gdn.endpoint cimport Assembly, GdnEndpoint
from ompy_btl_gdn.packet cimport FIRST, MOST_WORDS, make_head, source_of, tag_of, words_of
from ompy_raw.chip cimport FOREVER
from ompy_raw.job cimport join, leave
from ompy_raw.tile cimport Tile, ready as tile_ready

from ompy_raw.errors import TileDied

interface = INTERFACE

# Instructions of this transport's own software, each of `issue` cycles: to begin a fragment, for each packet's head at
# both ends, and to look whether something has come.
cdef int INSTRUCTIONS_A_FRAGMENT = 40
cdef int INSTRUCTIONS_A_PACKET = 8
cdef int INSTRUCTIONS_A_LOOK = 10
# Words taken from the network at a time.
cdef Py_ssize_t PIECE = 1024
# Seconds between looks at whether peers are alive; only a process that is about to sleep looks.
cdef double LOOK_INTERVAL = 0.05


cdef bint anything(void *context) noexcept nogil:
    cdef Watch *watched = <Watch *> context
    return not watched.busy and (not watched.posted or watched.fresh > 0 or tile_ready(watched.tile))


cdef int take_by_interrupt(Tile tile, void *btl) except -1:
    return (<GdnBtl> btl).take()


cdef class GdnBtl(Btl):
    """The BTL over the Raw chip; joins the job's chip.

    Parameters:
        context: of the component's query.
    """

    def __init__(self, context):
        self.name = "gdn"
        self.flags = FLAG_SEND | FLAG_SENDI | FLAG_IN_ORDER
        self.context = context
        self.job = context.rte.job.encode()
        self.tile = join(context)
        self.tile.set_handler(take_by_interrupt, <void *> self)
        self.assemblies = [None] * self.tile.chip.tiles
        self.endpoints = {}
        self.watched.tile = self.tile.state
        self.ready = anything
        self.ready_context = &self.watched

    def __dealloc__(self):
        free(self.run)
        free(self.arrived)

    cpdef bytes address(self):
        return self.job

    cpdef list add_procs(self, list procs):
        cdef Proc proc
        found = []
        for proc in procs:
            if proc.is_self:
                found.append("a tile does not send to itself: name self too, `--mca btl gdn,self`")
            elif proc.card.get(self.name) != self.job:
                found.append("not on this job's chip")
            else:
                if proc.rank not in self.endpoints:
                    self.endpoints[proc.rank] = GdnEndpoint(self, proc, proc.rank)
                found.append(self.endpoints[proc.rank])
        return found

    cpdef int del_procs(self, list endpoints) except -1:
        cdef GdnEndpoint endpoint
        for endpoint in endpoints:
            self.endpoints.pop(endpoint.tile, None)
        return 0

    cpdef int finalize(self) except -1:
        if self.failure is None:
            leave(self.tile, self.context)
        return 0

    cpdef dict statistics(self):
        return {
            "messages_sent": self.sent, "messages_received": self.received, "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received, "cycles": self.tile.clock, "interrupts": self.tile.interrupts,
        }

    # -- sending

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef Py_ssize_t count
        cdef Tile tile = self.tile
        if self.failure is not None:
            raise self.failure
        if self.watched.busy:
            return OUT_OF_RESOURCE
        self.watched.busy = True
        try:
            self.call_off()
            count = self.pack((<GdnEndpoint> endpoint).tile, header, header_size, payload, payload_size, tag)
            tile.charge(INSTRUCTIONS_A_FRAGMENT * tile.costs.issue)
            tile.enable()
            tile.write(self.run, count, tile.costs.load, INSTRUCTIONS_A_PACKET * tile.costs.issue)
            tile.disable()
        except TileDied as error:
            self.fail(error)
            raise
        finally:
            self.watched.busy = False
            wake()                               # a thread that was kept out may go in
        self.sent += 1
        self.bytes_sent += header_size + payload_size
        return OK

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        cdef int outcome = self.sendi(
            endpoint, descriptor.data, descriptor.length, descriptor.payload, descriptor.payload_length, tag
        )
        if outcome != OK:
            return outcome
        descriptor.in_flight = True
        descriptor.complete()
        return OK

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        cdef Descriptor descriptor = self.alloc(endpoint, header_size)
        descriptor.payload = <char *> address
        descriptor.payload_length = size
        return descriptor

    cdef Py_ssize_t pack(self, int destination, const char *header, size_t header_size, const char *payload,
                         size_t payload_size, int tag) except -1:
        cdef size_t length = header_size + payload_size
        cdef Py_ssize_t left = (length + 3) // 4
        # Payload first, in one piece, at the end of the room; packets are then cut from it towards the beginning.
        cdef Py_ssize_t packets = (left + 1 + MOST_WORDS - 2) // (MOST_WORDS - 1)
        cdef Py_ssize_t needed = 1 + left + 2 * packets
        cdef Py_ssize_t place = 0
        cdef uint32_t *words
        cdef int count, extra
        if needed > self.run_room:
            words = <uint32_t *> realloc(self.run, needed * sizeof(uint32_t))
            if words == NULL:
                raise MemoryError(f"no memory for a fragment of {length} bytes")
            self.run = words
            self.run_room = needed
        words = self.run + needed - left
        if left:
            words[left - 1] = 0
        memcpy(words, header, header_size)
        if payload_size:
            memcpy(<char *> words + header_size, payload, payload_size)
        for packet in range(packets):
            extra = packet == 0
            count = min(left, <Py_ssize_t> MOST_WORDS - 1 - extra)
            self.run[place] = self.tile.header_to(destination, 1 + extra + count)
            self.run[place + 1] = make_head(tag, extra, count, self.tile.number)
            place += 2
            if extra:
                self.run[place] = length
                place += 1
            for _word in range(count):
                self.run[place] = words[0]
                words += 1
                place += 1
            left -= count
        return place

    # -- receiving

    cdef int take(self) except -1:
        cdef Tile tile = self.tile
        cdef Py_ssize_t count
        cdef uint32_t *words
        while True:
            if self.arrived_room < self.arrived_count + PIECE:
                words = <uint32_t *> realloc(self.arrived, 2 * (self.arrived_count + PIECE) * sizeof(uint32_t))
                if words == NULL:
                    raise MemoryError(f"no memory for {self.arrived_count} words from the network")
                self.arrived = words
                self.arrived_room = 2 * (self.arrived_count + PIECE)
            count = tile.read_available(self.arrived + self.arrived_count, PIECE, tile.costs.issue + tile.costs.store)
            self.arrived_count += count
            self.watched.fresh += count
            if count < PIECE:
                return 0

    cpdef int progress(self) except -1:
        cdef int events
        if self.watched.busy or self.failure is not None:
            return 0
        if self.watched.posted and not self.watched.fresh and not tile_ready(self.watched.tile):
            return 0
        self.watched.busy = True
        try:
            if self.watched.posted:
                self.watched.posted = False
                self.tile.end_wait()
            elif not waiting:
                self.tile.charge(INSTRUCTIONS_A_LOOK * self.tile.costs.issue)
            self.take()
        except TileDied as error:
            return self.fail(error)
        finally:
            self.watched.busy = False
        events = self.hand_over()
        # Nothing here, and nothing elsewhere since the last time: whoever waits may wait in cycles.
        if waiting and events == 0 and events_made == self.events_seen:
            self.begin_wait()
        self.events_seen = events_made
        return events

    cdef int begin_wait(self) except -1:
        if self.watched.busy or self.watched.posted or self.watched.fresh or self.failure is not None:
            return 0
        self.watched.busy = True
        try:
            self.watched.posted = not self.tile.begin_wait(FOREVER, True)
        except TileDied as error:
            self.fail(error)
        finally:
            self.watched.busy = False
        return 0

    cdef int hand_over(self) except -1:
        """Packets in memory become fragments, and whole fragments go to their receivers."""
        cdef int events = 0
        cdef uint32_t head
        cdef Assembly assembly
        cdef int count, behind
        self.watched.fresh = 0
        while self.first < self.arrived_count:
            head = self.arrived[self.first]
            count = words_of(head)
            behind = 2 if head & FIRST else 1
            if self.arrived_count - self.first < behind + count:
                break                            # the rest of the packet is still on its way
            assembly = self.assemblies[source_of(head)]
            if assembly is None:
                assembly = self.assemblies[source_of(head)] = Assembly()
            if head & FIRST:
                assembly.begin(tag_of(head), self.arrived[self.first + 1])
            complete = assembly.add(self.arrived + self.first + behind, count)
            self.first += behind + count
            self.tile.charge(INSTRUCTIONS_A_PACKET * self.tile.costs.issue + count * self.tile.costs.load)
            if complete:
                events += 1
                self.received += 1
                self.bytes_received += assembly.length
                self.deliver(assembly.tag, self.endpoints.get(source_of(head)), assembly.data, assembly.length)
        self.compact()
        return events

    cdef int compact(self) noexcept:
        self.arrived_count -= self.first
        if self.first and self.arrived_count:
            memmove(self.arrived, self.arrived + self.first, self.arrived_count * sizeof(uint32_t))
        self.first = 0
        return 0

    cdef int call_off(self) except -1:
        """Another thread waits on the tile: it will post again."""
        if self.watched.posted:
            self.watched.posted = False
            self.tile.call_off()
        return 0

    # -- peers that are gone

    cpdef bint may_sleep(self) except -1:
        cdef double now = monotonic()
        self.begin_wait()
        if now >= self.next_look:
            self.next_look = now + LOOK_INTERVAL
            self.tile.look_at_peers()
        return not anything(&self.watched)

    cdef int fail(self, object error) except -1:
        """No tile can go on: every peer is out of reach."""
        cdef GdnEndpoint endpoint
        self.failure = error
        self.watched.posted = True
        self.watched.fresh = 0
        for endpoint in list(self.endpoints.values()):
            self.report_error(endpoint.proc, error)
        return 1
