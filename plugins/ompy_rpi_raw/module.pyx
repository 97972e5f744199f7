# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the three versions of rMPI on Raw share."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.unistd cimport usleep

from ompy.core.progress cimport waiting, waits
from ompy.core.progress_source cimport events_made
from ompy.mca.rpi cimport INTERFACE, KIND_ACKNOWLEDGEMENT, KIND_SYNCHRONOUS, Detached, MpiLayer
from ompy_raw.job cimport join, leave
from ompy_raw.tile cimport FOREVER, ready

from ompy_rpi_raw.actions cimport (
    CACHE_BYTES, COMPARE, COPY_FOUR, ENTRY, FINISH, LINE_WORDS, LOOK, PACK_WORD, PACKET_OUT, READ_WORD, RECEIVE_CALL,
    SECTION_IN, SEND_CALL, WRITE_WORD, perform,
)

interface = INTERFACE


cdef int handle_interrupt(Tile tile, void *rpi) except -1:
    (<RawRpi> rpi).read_network()
    return 0


cdef class RawRpi(Rpi):
    """Base of the three versions.

    Parameters:
        name: the component's.
        context: of the query: the place in the job; tile numbers are ranks of the world.
        message_bytes: the longest message that the packets' fields can tell the length of.
    """

    def __init__(self, str name not None, context, message_bytes):
        cdef Tile tile = join(context)
        Rpi.__init__(self, name, {"message_bytes": message_bytes, "processes": tile.chip.tiles})
        self.tile = tile
        self.context = context
        self.rank = context.rte.rank
        self.processes = context.rte.size
        self.posted = []
        self.arrived = []
        self.acknowledgements = []
        self.ready = ready
        self.ready_context = tile.state

    cpdef int begin(self, MpiLayer layer) except -1:
        """Messages may come from now on."""
        Rpi.begin(self, layer)
        self.tile.set_handler(handle_interrupt, <void *> self)
        if self.interrupt_driven:
            self.tile.enable()
        self.attached = True
        return 0

    # -- who may use the tile: threads of this process take turns

    cdef int acquire(self) except -1:
        while self.busy:
            with nogil:
                usleep(100)
        self.busy = True
        return 0

    cdef int resume(self) except -1:
        """The program acts again: a wait that is still posted is called off."""
        if self.in_wait:
            self.in_wait = False
            self.acquire()
            try:
                if ready(self.tile.state):
                    self.tile.end_wait()
                else:
                    self.tile.call_off()
            finally:
                self.busy = False
        return 0

    cdef int64_t misses(self, uint64_t message_bytes, int words) noexcept:
        if message_bytes <= CACHE_BYTES:
            return 0
        return words * self.tile.costs.cache_miss // LINE_WORDS

    # -- sending --------------------------------------------------------------------------------------------------

    cdef int start_send(self, Outgoing request) except -1:
        return self.push(request, True)

    cdef int send(self, Outgoing request) except -1:
        return self.push(request, self.interrupt_driven)

    cdef int push(self, Outgoing request, bint interruptible) except -1:
        self.resume()
        perform(self.tile, SEND_CALL())
        self.messages_sent += 1
        if request.envelope.kind == KIND_SYNCHRONOUS:
            self.unacknowledged += 1
        if request.dest == self.rank:
            self.send_to_self(request)
        else:
            self.acquire()
            try:
                self.transmit(request, interruptible)
            finally:
                self.busy = False
        request.sent()
        cdef int events = self.flush()
        self.tile.raise_deferred()
        return events

    cdef int transmit(self, Outgoing request, bint interruptible) except -1:
        """Cut the message into packets and write them, as many at once as there is room for."""
        cdef const Envelope *envelope = &request.envelope
        cdef uint64_t left = envelope.length
        cdef uint64_t part
        cdef int count = 0, header, words
        cdef bint first = True
        cdef uint32_t *packet
        cdef int per_word = WRITE_WORD if request.contiguous else WRITE_WORD + PACK_WORD
        cdef int per_packet
        cdef int64_t before = self.tile.clock
        perform(self.tile, PACKET_OUT())
        per_packet = <int> (self.tile.clock - before + self.misses(envelope.length, self.format.other_payload))
        if interruptible and not self.interrupt_driven:
            self.tile.enable()
        try:
            while first or left:
                part = min(left, <uint64_t> (4 * (self.format.first_payload if first else self.format.other_payload)))
                words = <int> ((part + 3) >> 2)
                packet = self.run + count
                if first:
                    header = self.first_header(envelope, words, packet + 1)
                else:
                    header = self.other_header(envelope, words, packet + 1)
                packet[0] = self.tile.header_to(request.dest, header + words)
                if part:
                    request.fetch(packet + 1 + header, part)
                count += 1 + header + words
                left -= part
                first = False
                self.packets_sent += 1
                if left == 0 or count + 1 + MOST_WORDS > RUN_WORDS:
                    self.tile.write(self.run, count, per_word, per_packet, True)
                    count = 0
        finally:
            if interruptible and not self.interrupt_driven:
                self.tile.disable()
        return 0

    cdef int send_to_self(self, Outgoing request) except -1:
        """Straight to where messages are kept (thesis, 4.3.3, "sending to oneself")."""
        cdef Stored message = self.begin_message(&request.envelope)
        cdef uint64_t left = request.envelope.length
        cdef uint64_t part
        if message is None:
            return 0
        while left:
            part = min(left, <uint64_t> (4 * MOST_WORDS))
            request.fetch(self.run, part)
            message.append(self.run, part)
            left -= part
        perform(self.tile, COPY_FOUR(), (request.envelope.length + 15) >> 4)
        self.end_message(message)
        return 0

    # -- reading --------------------------------------------------------------------------------------------------

    cdef int read_network(self) except -1:
        """Read what there is, and let the version act on each section that is complete."""
        cdef Py_ssize_t count, position, used
        cdef int events = 0
        while True:
            count = self.tile.read_available(self.burst, BURST_WORDS, READ_WORD)
            perform(self.tile, LOOK())
            if count == 0:
                return events
            events += 1
            position = 0
            while position < count:
                used = min(count - position, <Py_ssize_t> (self.wanted - self.have))
                memcpy(self.section + self.have, self.burst + position, 4 * used)
                position += used
                self.have += <int> used
                if self.have == self.wanted:
                    self.have = 0
                    perform(self.tile, SECTION_IN())
                    self.take_section()

    cdef Incoming match_posted(self, const Envelope *envelope):
        cdef Incoming request
        cdef Py_ssize_t index
        for index in range(len(self.posted)):
            request = self.posted[index]
            perform(self.tile, COMPARE())
            if request.takes(envelope):
                del self.posted[index]
                return request
        return None

    cdef Stored begin_message(self, const Envelope *envelope):
        if envelope.kind == KIND_ACKNOWLEDGEMENT:
            self.acknowledgements.append((envelope.source, envelope.tag, envelope.scope))
            return None
        return self.store_message(envelope, self.match_posted(envelope))

    cdef Stored store_message(self, const Envelope *envelope, Incoming claimant):
        cdef Stored message = self.new_message()
        message.envelope = envelope[0]
        message.claimant = claimant
        if claimant is not None:
            claimant.matched(&message.envelope)
        else:
            self.messages_unexpected += 1
        perform(self.tile, ENTRY())
        self.keep(message)
        return message

    cdef int end_message(self, Stored message) except -1:
        message.done = True
        # What a matched probe took is found done by whoever receives it.
        if message.claimant is not None and not message.taken:
            self.arrived.append(message)
        elif message.forgotten:
            self.drop(message)
            message.release()
        return 0

    # -- receiving ------------------------------------------------------------------------------------------------

    cdef int start_receive(self, Incoming request) except -1:
        cdef Stored message
        self.resume()
        perform(self.tile, RECEIVE_CALL())
        if self.interrupt_driven:
            self.acquire()
            try:
                self.tile.settle()
            finally:
                self.busy = False
        message = self.find(request)
        if message is None:
            perform(self.tile, ENTRY())
            self.posted.append(request)
        else:
            self.claim(message, request)
        return self.flush()

    cdef int claim(self, Stored message, Incoming request) except -1:
        message.claimant = request
        message.taken = False
        request.matched(&message.envelope)
        if message.done:
            self.arrived.append(message)
        return 0

    cdef int flush(self) except -1:
        """Finish what has arrived; returns how much that was."""
        cdef int events = 0
        cdef Stored message
        cdef Incoming request
        cdef Envelope envelope
        while self.arrived or self.acknowledgements:
            events += 1
            if self.acknowledgements:
                envelope.source, envelope.tag, envelope.scope = self.acknowledgements.pop(0)
                envelope.kind, envelope.length = KIND_ACKNOWLEDGEMENT, 0
                self.unacknowledged -= 1
                self.layer.acknowledged(&envelope)
                continue
            self.messages_received += 1
            perform(self.tile, FINISH())
            item = self.arrived.pop(0)
            if isinstance(item, Stored):
                message = <Stored> item
                request = message.claimant
                message.copy_to(request)
                perform(self.tile, COPY_FOUR(), (message.received + 15) >> 4)
                self.tile.charge(2 * self.misses(message.received, <int> (message.received >> 2)))
                perform(self.tile, ENTRY())
                self.drop(message)
                message.release()
            else:
                request = <Incoming> item
            if not request.contiguous:
                self.tile.charge(PACK_WORD * (request.nbytes >> 2))
            request.arrived()
        self.layer.settle()
        return events

    cdef bint cancel_receive(self, Incoming request) except -1:
        if request not in self.posted:
            return False
        self.posted.remove(request)
        return True

    cdef bint probe(self, Incoming wanted, Envelope *found) except -1:
        cdef Stored message
        self.resume()
        self.probing = True
        message = self.find(wanted)
        if message is None:
            return False
        found[0] = message.envelope
        return True

    cdef Detached detach(self, Incoming wanted):
        cdef Stored message = self.find(wanted)
        if message is not None:
            # Found by nobody else from now on.
            message.claimant = wanted
            message.taken = True
        return message

    cdef int receive_detached(self, Incoming request, Detached message) except -1:
        self.resume()
        perform(self.tile, RECEIVE_CALL())
        self.claim(<Stored> message, request)
        return self.flush()

    # -- progress and the end -------------------------------------------------------------------------------------

    cpdef int progress(self) except -1:
        """Take what the network has brought; in a wait, let time pass until it brings something."""
        cdef int events
        if self.busy or not self.attached:
            return 0
        if self.arrived or self.acknowledgements:
            return self.flush()
        if waiting:
            if not self.in_wait:
                if not self.all_is_quiet() or not self.post_wait():
                    return 0
            elif not ready(self.tile.state):
                return 0
        self.resume()
        perform(self.tile, LOOK())
        self.acquire()
        try:
            if self.interrupt_driven:
                self.tile.settle()
                events = 0
            else:
                events = self.read_network()
        finally:
            self.busy = False
        return events + self.flush()

    cdef bint all_is_quiet(self) noexcept:
        """Whether nobody had anything to do since this was last asked in the same wait.

        What ends the program's wait may be another source's; with the tile's wait posted already, the chip would then take
        the tile for one that waits while it computes.
        """
        if self.waits_seen == waits and self.events_seen == events_made:
            return True
        self.waits_seen = waits
        self.events_seen = events_made
        return False

    cdef bint post_wait(self) except -1:
        """Let time pass until the network brings a word; True: it has."""
        patient = not (self.posted or self.unacknowledged or self.probing)
        self.probing = False
        self.in_wait = True
        return self.tile.begin_wait(FOREVER, patient)

    cpdef bint may_sleep(self) except -1:
        if self.busy or not self.attached:
            return True
        if self.arrived or self.acknowledgements:
            return False
        if self.in_wait:
            return not ready(self.tile.state)
        return self.all_is_quiet() and not self.post_wait()

    cdef int close_scope(self, uint32_t scope) except -1:
        cdef Stored message
        for message in self.messages():
            if message.envelope.scope == scope and message.claimant is None:
                message.forgotten = True
                if message.done:
                    self.drop(message)
                    message.release()
        return 0

    cpdef dict dump(self):
        """Posted receives, and messages nobody has asked for: (source, tag, scope, bytes)."""
        cdef Incoming request
        cdef Stored message
        return {
            "posted": [(request.world_source, request.wanted_tag, request.scope, request.nbytes) for request in self.posted],
            "unexpected": [
                (message.envelope.source, message.envelope.tag, message.envelope.scope, message.envelope.length)
                for message in self.messages() if message.claimant is None and not message.forgotten
            ],
        }

    cpdef dict statistics(self):
        """What was sent and received, and what the tile's interrupts did."""
        return {
            "messages_sent": self.messages_sent,
            "packets_sent": self.packets_sent,
            "messages_received": self.messages_received,
            "messages_unexpected": self.messages_unexpected,
            "interrupts": self.tile.interrupts,
            "cycles": self.tile.clock,
        }

    cpdef int finalize(self) except -1:
        """Leave the chip: time goes on without this tile."""
        if self.attached:
            self.resume()
            self.flush()
            self.attached = False
            leave(self.tile, self.context)
        return 0

    # -- a version's own ------------------------------------------------------------------------------------------

    cdef int first_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        return 0

    cdef int other_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        return 0

    cdef int take_section(self) except -1:
        raise NotImplementedError

    cdef Stored new_message(self):
        raise NotImplementedError

    cdef int keep(self, Stored message) except -1:
        raise NotImplementedError

    cdef int drop(self, Stored message) except -1:
        raise NotImplementedError

    cdef Stored find(self, Incoming wanted):
        raise NotImplementedError

    cdef list messages(self):
        raise NotImplementedError
