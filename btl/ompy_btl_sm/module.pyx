# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""Shared memory between processes of one user on one host."""
from errno import EMFILE, ENFILE, ENOMEM
from time import monotonic, sleep

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.copying cimport copy_out
from ompy.core.doorbell cimport own, ring
from ompy.core.errors import ERR_INTERN, ERR_OTHER, ERR_RMA_RANGE, MPIError
from ompy.core.heap cimport holds
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport exclude_watchers, goal, unregister_source
from ompy.core.reach cimport allow_peers, can_read, has_gone, move, seen
from ompy.core.segment cimport page_size
from ompy.mca.btl cimport (
    FLAG_ASYNCHRONOUS, FLAG_ATOMICS, FLAG_GET, FLAG_IN_ORDER, FLAG_PUT, FLAG_SEND, FLAG_SENDI, INTERFACE, Btl, Descriptor,
    Endpoint, carry_out_atomic,
)
from ompy_btl_sm.endpoint cimport Card, Incoming, SmEndpoint
from ompy_btl_sm.inbox cimport Inbox
from ompy_btl_sm.ring cimport (
    HEAD, LINE, Reader, RingHeader, Writer, acquire32, begin_writing, end_writing, has_space, is_good, lines, offered,
    own_ahead, peek, publish, reserve, restore as restore_memory, round_size, withdraw as withdraw_memory,
)
from ompy_btl_sm.joint_copy cimport JointCopy, begin_helping, end_helping, help_along, receive_jointly
from ompy_btl_sm.ring_copy cimport CACHED, LONG, MEASURED, STREAMING, LongWrites, cost_of, open_long_writes, write_long
from ompy.core.reach import host_identity
from ompy_btl_sm.endpoint import PROBE

interface = INTERFACE

cdef extern from *:
    """
    #include <sched.h>

    static inline void ompy_prefetch(const void *line) { __builtin_prefetch(line); }
    """
    int sched_yield() nogil
    void prefetch "ompy_prefetch"(const void *line) noexcept nogil

cdef enum:
    LONGEST_FETCHED = 9000                       # bytes; what is longer the processor fetches as well in one go

# Of these there may be enough another time.
LACK = (EMFILE, ENFILE, ENOMEM)
RING_COPIES = {"auto": MEASURED, "cached": CACHED, "streaming": STREAMING}
WORDS = {CACHED: "by ordinary stores", STREAMING: "past the caches"}

# Messages taken from one ring before the next source has its turn.
cdef int BATCH = 64
# Seconds between looks at whether peers are alive; only a process that is about to sleep looks.
cdef double LOOK_INTERVAL = 0.05
# A peer of another job that waits for our last message finds our ring within this time, looked for every so many seconds.
cdef double PARTING = 5.0
cdef double PARTING_PAUSE = 0.0005


cdef bint anything(void *context) noexcept nogil:
    cdef Watch *watched = <Watch *> context
    cdef int index
    for index in range(watched.reader_count):
        if peek(watched.readers[index]) or offered(watched.readers[index]):
            return True
    for index in range(watched.blocked_count):
        if has_space(watched.blocked[index]):
            return True
    return acquire32(watched.changes) != watched.seen


cdef class SmBtl(Btl):
    """The shared-memory BTL.

    Parameters:
        ring_size: bytes of one direction between two processes; rounded up to a power of two.
        backing: `auto`, `memfd` or `file`, see `ompy.core.segment`.
        slots: rings towards this process that can be announced at a time.
        single_copy: let the kernel copy between processes (`put` and `get`).
        heap: what `ompy.core.heap.open_heap` returned; None: this process's memory is not read in place.
        joint_size: bytes from which on both processes work at a `get`; 0: never.
        ring_copy: how long payloads get into the ring, one of `RING_COPIES`.
    """

    def __init__(self, size_t ring_size=262144, str backing="auto", int slots=64, bint single_copy=True, heap=None,
                 size_t joint_size=0, str ring_copy="auto"):
        self.name = "sm"
        self.flags = FLAG_SEND | FLAG_SENDI | FLAG_IN_ORDER | FLAG_ASYNCHRONOUS
        self.kernel_copies = single_copy
        self.heap = heap
        if single_copy:
            self.flags |= FLAG_PUT | FLAG_GET
        if heap is not None:
            # What lies elsewhere the kernel reads, though it may not be the quickest way (`exposes`).
            self.flags |= FLAG_GET | FLAG_ATOMICS
        if self.flags & FLAG_GET:
            allow_peers()
        self.joint_size = joint_size
        self.ring_copy = RING_COPIES[ring_copy]
        self.ring_size = round_size(ring_size)
        self.backing = backing
        self.incoming = []
        self.endpoints = {}
        self.leaving = []
        self.host = host_identity()
        self.inbox = Inbox(slots, backing)
        self.own_doorbell = own(backing).card()
        self.watched.changes = &self.inbox.header.changes
        self.ready = anything
        self.ready_context = &self.watched

    def __dealloc__(self):
        free(self.watched.readers)
        free(self.watched.blocked)

    @property
    def in_files(self):
        """Whether shared memory lives in files, whose room is limited."""
        return bool(self.inbox.segment.path)

    @property
    def ring_bytes(self):
        """Bytes of shared memory that one direction between two processes takes."""
        return page_size + self.ring_size

    def serves_other_jobs(self):
        """The kernel decides who may map what: processes of one user."""
        return True

    cpdef bytes address(self):
        return Card.write(self.inbox.segment.location(), self.inbox.header.slot_count, self.own_doorbell, self.heap)

    # -- peers

    cpdef list add_procs(self, list procs):
        cdef Proc proc
        cdef Card card
        cdef SmEndpoint endpoint
        cdef Incoming incoming
        found = []
        for proc in procs:
            text = proc.card.get(self.name)
            if not text:
                found.append("the peer does not run btl/sm")
                continue
            try:
                card = Card(text)
            except (ValueError, OverflowError) as error:
                found.append(f"rank {proc.rank} has a card that can't be read: {error}")
                continue
            if card.host != self.host:
                found.append("on another host, or of another user or process name space")
                continue
            endpoint = self.endpoints.get(card.pid)
            if endpoint is None:
                endpoint = SmEndpoint(self, proc, card)
                open_long_writes(&endpoint.long_writes, self.ring_copy)
                self.endpoints[card.pid] = endpoint
                self.make_room()
                for incoming in self.incoming:
                    if incoming.pid == card.pid:
                        incoming.endpoint = endpoint
                        endpoint.incoming = incoming
                        endpoint.watch()
                if self.flags & (FLAG_PUT | FLAG_GET) and not can_read(card.pid, card.probe_address, PROBE):
                    self.kernel_copies = False
                    self.flags &= ~(FLAG_PUT | FLAG_GET)
                    if self.on_fallback is not None:
                        self.on_fallback(f"the kernel does not let this process read the memory of process {card.pid}")
            found.append(endpoint)
        return found

    cdef int make_room(self) except -1:
        """So many readers and blocked writers as there are peers, known and unknown."""
        cdef int needed = len(self.endpoints) + len(self.incoming) + 1
        cdef void *readers
        cdef void *blocked
        if needed > self.capacity:
            exclude_watchers()
            needed *= 2
            readers = realloc(self.watched.readers, needed * sizeof(Reader *))
            if readers == NULL:
                raise MemoryError("no memory for another peer of btl/sm")
            self.watched.readers = <Reader **> readers
            blocked = realloc(self.watched.blocked, needed * sizeof(Writer *))
            if blocked == NULL:
                raise MemoryError("no memory for another peer of btl/sm")
            self.watched.blocked = <Writer **> blocked
            self.capacity = needed
        return 0

    cpdef int del_procs(self, list endpoints) except -1:
        cdef SmEndpoint endpoint
        for endpoint in endpoints:
            if self.endpoints.get(endpoint.card.pid) is endpoint:
                del self.endpoints[endpoint.card.pid]
                self.unblock_writer(endpoint)
                if endpoint.incoming is not None:
                    self.drop_incoming(endpoint.incoming)
                    endpoint.incoming = None
                # A peer of this job has met us at the launcher's fence; of another one, what it has yet to read is there.
                if endpoint.proc.circle is None or endpoint.is_found():
                    endpoint.close()
                else:
                    self.leaving.append(endpoint)
        return 0

    cdef int see_off(self) except -1:
        """Rings that we gave back and that have been found can go, and those of peers that have done so and that are empty."""
        cdef SmEndpoint endpoint
        cdef Incoming incoming
        for endpoint in list(self.leaving):
            if endpoint.is_found():
                self.leaving.remove(endpoint)
                endpoint.close()
        for incoming in list(self.incoming):
            if incoming.endpoint is None and incoming.reader.header.writer_closed and not peek(&incoming.reader):
                self.drop_incoming(incoming)
        return 0

    cpdef int finalize(self) except -1:
        cdef SmEndpoint endpoint
        cdef double end
        if self.inbox is None:
            return 0
        unregister_source(self)
        exclude_watchers()
        self.del_procs(list(self.endpoints.values()))
        end = monotonic() + PARTING
        while self.leaving and monotonic() < end:
            sleep(PARTING_PAUSE)
            self.see_off()
        for endpoint in self.leaving:
            endpoint.close()
        self.leaving.clear()
        for incoming in list(self.incoming):
            self.drop_incoming(incoming)
        self.inbox.close()
        self.inbox = None
        if self.reservation is not None:
            self.reservation.close()
        return 0

    cpdef dict statistics(self):
        cdef SmEndpoint endpoint
        cdef int rings_out = 0
        cdef int streams_out = 0
        for endpoint in self.endpoints.values():
            rings_out += endpoint.connected
            streams_out += endpoint.long_writes.usual == STREAMING
        return {
            "messages_sent": self.sent,
            "bytes_sent": self.bytes_sent,
            "messages_received": self.received,
            "bytes_received": self.bytes_received,
            "ring_full": self.refused,
            "bytes_copied_by_kernel": self.copied_by_kernel,
            "bytes_copied_in_heap": self.copied_in_heap,
            "pieces_copied_for_peers": self.pieces_helped,
            "bytes_streamed": self.streamed,
            "streams_out": streams_out,
            "rings_out": rings_out,
            "rings_in": len(self.incoming),
            "rings_given_back": len(self.leaving),
        }

    cdef int accept(self) except -1:
        """Attaches to the rings that peers have announced; returns their number."""
        cdef Incoming incoming
        cdef SmEndpoint endpoint
        cdef int count = 0
        cdef bint lacking = False
        self.see_off()
        arrivals = self.inbox.arrivals()
        self.watched.seen = self.inbox.seen
        for slot, pid, location, size in arrivals:
            try:
                incoming = Incoming(pid, location, size)
            except MPIError as error:
                if isinstance(error.__cause__, OSError) and error.__cause__.errno in LACK:
                    # Nobody who waits can help it, and no message is lost: it is tried again, with the next look at peers.
                    self.inbox.postpone(slot)
                    lacking = True
                    if not self.postponed and self.on_lack is not None:
                        self.on_lack(f"{error}; what it sends is received when that is over")
                    continue
                self.inbox.release_slot(slot)
                endpoint = self.endpoints.get(pid)
                if endpoint is not None:
                    self.report_error(endpoint.proc, endpoint.reason(error))
                continue
            self.inbox.release_slot(slot)
            endpoint = self.endpoints.get(pid)
            if endpoint is not None:
                incoming.endpoint = endpoint
                endpoint.incoming = incoming
                endpoint.watch()
            self.incoming.append(incoming)
            self.make_room()
            self.watched.readers[self.watched.reader_count] = &incoming.reader
            self.watched.reader_count += 1
            count += 1
        self.postponed = lacking
        return count

    cdef int drop_incoming(self, Incoming incoming) except -1:
        cdef int index = self.incoming.index(incoming)
        exclude_watchers()
        self.incoming.pop(index)
        self.watched.reader_count -= 1
        while index < self.watched.reader_count:
            self.watched.readers[index] = self.watched.readers[index + 1]
            index += 1
        return incoming.close()

    # -- messages

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        cdef size_t length = header_size + payload_size
        cdef bint changed = False
        cdef char *place = reserve(&peer.writer, length)
        if place == NULL:
            if self.cannot_write(peer) == OUT_OF_RESOURCE:
                return OUT_OF_RESOURCE
            place = reserve(&peer.writer, length)
            if place == NULL:
                return OUT_OF_RESOURCE
        # The header goes last: the reader watches its line, and would fetch it in between.
        if payload_size >= LONG:
            self.streamed -= peer.long_writes.streamed
            changed = write_long(&peer.long_writes, place + header_size, payload, payload_size)
            self.streamed += peer.long_writes.streamed
        elif payload_size:
            copy_out(place + header_size, payload, payload_size)
        memcpy(place, header, header_size)
        publish(&peer.writer, length, tag)
        ring(peer.doorbell)
        own_ahead(&peer.writer, length)
        self.sent += 1
        self.bytes_sent += length
        if changed:
            self.tell_choice(peer)
        return OK

    cdef int tell_choice(self, SmEndpoint endpoint) except -1:
        cdef LongWrites *writes = &endpoint.long_writes
        if self.on_choice is not None:
            self.on_choice(f"long payloads to process {endpoint.card.pid} are written into the ring "
                           f"{WORDS[<int> writes.usual]}: of a MiB the writer's part takes {cost_of(writes, CACHED):.0f} us "
                           f"{WORDS[<int> CACHED]}, {cost_of(writes, STREAMING):.0f} us {WORDS[<int> STREAMING]}")
        return 0

    cdef int cannot_write(self, SmEndpoint endpoint) except -1:
        """No room was found: OK when there may be some now, because the ring has only now been made."""
        cdef int index
        if endpoint.failure is not None:
            raise endpoint.failure
        if not endpoint.connected:
            if self.reservation is not None and endpoint.segment is None:
                self.reservation.give_back(self.ring_bytes)
            if endpoint.card is None or not endpoint.connect(self.ring_size, self.backing, self.own_doorbell):
                return OUT_OF_RESOURCE
            return OK
        self.refused += 1
        for index in range(self.watched.blocked_count):
            if self.watched.blocked[index] == &endpoint.writer:
                return OUT_OF_RESOURCE
        self.watched.blocked[self.watched.blocked_count] = &endpoint.writer
        self.watched.blocked_count += 1
        return OUT_OF_RESOURCE

    cdef int unblock_writer(self, SmEndpoint endpoint) except -1:
        cdef int index
        cdef int kept = 0
        exclude_watchers()                       # they read the ring that is about to go
        for index in range(self.watched.blocked_count):
            if self.watched.blocked[index] != &endpoint.writer:
                self.watched.blocked[kept] = self.watched.blocked[index]
                kept += 1
        self.watched.blocked_count = kept
        return 0

    cdef int unblock(self) except -1:
        """Forgets the writers that have room again, which is an event: whoever has something to send tries again."""
        cdef int index
        cdef int kept = 0
        cdef int events = 0
        for index in range(self.watched.blocked_count):
            if has_space(self.watched.blocked[index]):
                events += 1
            else:
                self.watched.blocked[kept] = self.watched.blocked[index]
                kept += 1
        self.watched.blocked_count = kept
        return events

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        cdef int taken = self.sendi(endpoint, descriptor.data, descriptor.length,
                                    descriptor.payload, descriptor.payload_length, tag)
        if taken == OK:
            descriptor.in_flight = True
            descriptor.complete()
        return taken

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        cdef Descriptor descriptor = self.alloc(endpoint, header_size)
        descriptor.payload = <char *> address    # goes straight from there into the ring
        descriptor.payload_length = size
        return descriptor

    cpdef int progress(self) except -1:
        cdef int events = 0
        cdef int index = 0
        cdef uint64_t head
        if acquire32(self.watched.changes) != self.watched.seen:
            events += self.accept()
        while index < self.watched.reader_count:
            head = peek(self.watched.readers[index])
            if head:
                events += self.drain(<Incoming> self.incoming[index], head)
            elif offered(self.watched.readers[index]):
                events += self.help_with(<Incoming> self.incoming[index])
            index += 1
        if self.watched.blocked_count:
            events += self.unblock()
        return events

    cdef int drain(self, Incoming incoming, uint64_t head) except -1:
        cdef Reader *reader = &incoming.reader
        cdef uint64_t quarter = (reader.mask + 1) // 4
        cdef int events = 0
        cdef size_t length, line
        cdef int tag
        cdef const char *data
        while head and events < BATCH:
            length = <uint32_t> head
            tag = <uint8_t> (head >> 32)
            data = reader.data + (reader.position & reader.mask) + HEAD
            if length <= LONGEST_FETCHED:
                # The message's other lines come while its header is read.
                line = LINE
                while line < lines(length):
                    prefetch(data - HEAD + line)
                    line += LINE
            reader.position += lines(length)
            if events:
                # In a stream the next message is there already: its line comes while this one is handled.
                prefetch(reader.data + (reader.position & reader.mask))
            events += 1
            self.received += 1
            self.bytes_received += length
            if self.receivers[tag] is None:
                raise MPIError(ERR_INTERN, f"btl sm got a message with tag {tag}, which nobody registered")
            self.deliver(tag, incoming.endpoint, data, length)
            if reader.position - reader.returned >= quarter:
                incoming.give_back()
            if goal[0]:
                break                            # the next line would have to come from the writer's core: not now
            head = peek(reader)
        return events

    cpdef bint may_sleep(self) except -1:
        return self.look_at_peers() == 0

    cpdef int look_at_peers(self) except -1:
        """Who has died?  Returns the number of peers reported."""
        cdef SmEndpoint endpoint
        cdef int dead = 0
        cdef double now = monotonic()
        if now < self.next_look:
            return 0
        self.next_look = now + LOOK_INTERVAL
        self.see_off()
        if self.postponed:
            self.accept()
        for endpoint in list(self.endpoints.values()):
            if endpoint.failure is not None or not (endpoint.connected or endpoint.incoming is not None):
                continue
            if endpoint.connected and endpoint.writer.header.attached:
                endpoint.segment.seal()
            if endpoint.is_dead():
                dead += 1
                proc = endpoint.proc
                endpoint.failure = endpoint.reason(None)
                self.unblock_writer(endpoint)
                endpoint.close()
                self.report_error(proc, endpoint.failure)
        return dead

    # -- single copy

    cpdef bint exposes(self, Endpoint endpoint, size_t address, size_t size) except -1:
        return self.kernel_copies or (self.heap is not None and holds(address, size))

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        cdef bint in_heap = peer.sees(descriptor.remote_address, descriptor.size)
        cdef RingHeader *header = NULL if peer.incoming is None else peer.incoming.reader.header
        cdef int error = 0
        if header == NULL or begin_writing(header, descriptor.remote_address, descriptor.size):
            if move(&peer.reach, descriptor.local_address, descriptor.remote_address, descriptor.size, False):
                error = ERR_OTHER
        else:
            error = ERR_RMA_RANGE
        if header != NULL:
            end_writing(header)
        return self.copied(descriptor, error, in_heap)

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        cdef bint in_heap = peer.sees(descriptor.remote_address, descriptor.size)
        cdef int error
        if self.joint_size and descriptor.size >= self.joint_size and peer.connected \
                and (self.kernel_copies or holds(descriptor.local_address, descriptor.size)):
            error = receive_jointly(&peer.writer.header.joint, descriptor.remote_address, descriptor.local_address,
                                    descriptor.size, &peer.reach, move, has_gone)
        else:
            error = move(&peer.reach, descriptor.local_address, descriptor.remote_address, descriptor.size, True)
        if peer.incoming is not None and not is_good(peer.incoming.reader.header, descriptor.remote_address, descriptor.size):
            return self.copied(descriptor, ERR_RMA_RANGE, in_heap)
        return self.copied(descriptor, ERR_OTHER if error else 0, in_heap)

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """Words in the peer's heap, which this processor changes itself."""
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        cdef int error = ERR_RMA_RANGE
        if peer.sees(descriptor.remote_address, descriptor.size):
            carry_out_atomic(seen(&peer.reach, descriptor.remote_address, descriptor.size), descriptor.size, operation, operand,
                             compare, <void *> descriptor.local_address)
            error = 0
        descriptor.in_flight = True
        descriptor.complete(error)
        return OK

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        if not peer.connected:
            return False
        withdraw_memory(peer.writer.header, address, size)
        # One copy at most, whose length the peer chose.
        while acquire32(&peer.writer.header.writing) and not has_gone(&peer.reach):
            sched_yield()
        return True

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        cdef SmEndpoint peer = <SmEndpoint> endpoint
        if peer.connected:
            restore_memory(peer.writer.header, address, size)
        return 0

    cdef int copied(self, Descriptor descriptor, int status, bint in_heap) except -1:
        """The copy is made, or can't be: then the PML takes another way."""
        if status == 0:
            if in_heap:
                self.copied_in_heap += descriptor.size
            else:
                self.copied_by_kernel += descriptor.size
        descriptor.in_flight = True
        descriptor.complete(status)
        return OK

    cdef int help_with(self, Incoming incoming) except -1:
        """A peer that receives a long message from here offers part of the copy."""
        cdef JointCopy *joint = &incoming.reader.header.joint
        cdef SmEndpoint peer = incoming.endpoint
        cdef uint32_t offer = offered(&incoming.reader)
        cdef int pieces = 0
        try:
            if begin_helping(joint) and peer is not None and self.still_sends(peer, joint.source, joint.size) \
                    and (peer.sees(joint.target, joint.size) or self.kernel_copies):
                pieces = help_along(joint, &peer.reach, move)
        finally:
            end_helping(joint)
        incoming.reader.spent = offer
        self.pieces_helped += pieces
        return pieces

    cdef bint still_sends(self, SmEndpoint peer, uint64_t address, uint64_t size) except -1:
        """Whether that memory is a message's yet, and not the program's again, who may have unmapped it: a send that a signal
        has ended withdraws it, and one to a peer that has died fails."""
        return not (peer.connected and not is_good(peer.writer.header, address, size)) and not has_gone(&peer.reach)
