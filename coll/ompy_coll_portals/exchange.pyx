# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages between the ranks of one communicator, straight on portals; see `exchange.pxd`."""
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from ompy.core.copying cimport copy_bytes
from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc, table
from ompy.core.progress cimport DoneFunction, wait_until
from ompy.core.signals cimport keep_exceptions, raise_kept

from ompy_puma.btl_wire cimport kernel_over
from ompy_puma.capability cimport GroupCapability
from ompy_puma.descriptor cimport SAVE_BODY, SAVE_BOTH, SENDER_OFFSET, WRITE, make_dynamic, make_single
from ompy_puma.header cimport Header
from ompy_puma.heap cimport LETTER_ARRIVING, LETTER_WHOLE, Heap, Letter, format_heap, letter_body, letter_size, release_letter
from ompy_puma.transmission cimport QUEUED, REFUSED, SENT
from ompy_puma.match_list cimport ANY_GROUP, ANY_RANK, LINK_END, PORTAL_LIST
from ompy_puma.process cimport EVENT_DEPOSITED

# The place in every node's context table, and the number of the process group.
cdef enum:
    STATION = 4

cdef uint64_t COMMUNICATOR_MASK = 0xFFFFFFFFFFFF0000u

# Communicators, and blocks that wait, at a time.
ENTRIES = 1 << 16


cdef class Station(Process):
    cdef int arrived(self, Event *event) except -1:
        """A peer's block is ready; all else is seen by the descriptors' counters."""
        cdef Exchange exchange
        cdef int rank
        if event.portal == PORTAL_READY and event.kind == EVENT_DEPOSITED and event.owner:
            exchange = <Exchange> <void *> event.owner
            rank = exchange.comm.group.rank_of(event.header.source_rank)
            if rank >= 0:
                exchange.ready[rank] = event.header.match_bits
        return 0

    cdef int sent(self, uint64_t owner, int status) except -1:
        cdef Sending sending = <Sending> <void *> owner
        sending.status = status
        sending.out = 1
        Py_DECREF(sending)
        return 0


cdef dict stations = {}                          # id of a kernel -> its Station


cdef Station station_over(Bml bml, uint32_t node):
    cdef QKernel kernel = kernel_over(bml, node)
    cdef Station station = stations.get(id(kernel))
    if station is None:
        station = Station(STATION, node, portals=PORTALS, entries=ENTRIES, descriptors=ENTRIES, queue_limit=ENTRIES)
        station.qkernel = kernel
        station.exchanges = {}
        kernel.create_context(station, STATION)
        station.capability = station.grant(GroupCapability(STATION, [(peer, STATION) for peer in range(len(table))]))
        for portal in range(PORTALS):
            station.portals[portal].kind = PORTAL_LIST
            station.portals[portal].index = station.portals[portal].last = LINK_END
        stations[id(kernel)] = station
    return station


cdef Exchange exchange_for(Communicator comm, Bml bml, uint32_t node, uint64_t short_limit, int drift):
    cdef Station station
    cdef Exchange exchange
    enter()
    try:
        station = station_over(bml, node)
        exchange = station.exchanges.get(comm.context)
        if exchange is None:
            exchange = Exchange(comm, bml, node, short_limit, drift)
            station.exchanges[comm.context] = exchange
        exchange.users += 1
    finally:
        leave()
    return exchange


cdef struct Wait:
    uint64_t *word
    uint64_t goal
    bint exactly                                 # past the goal is not there
    void *proc


cdef inline bint has_arrived(const Wait *state) noexcept:
    return state.word[0] == state.goal if state.exactly else state.word[0] >= state.goal


cdef bint arrived_or_lost(void *context) except -1:
    cdef Wait *state = <Wait *> context
    return has_arrived(state) or (<Proc> state.proc).failure is not None


cdef struct Arriving:
    Letter *letter
    void *proc


cdef bint settled_or_lost(void *context) except -1:
    cdef Arriving *state = <Arriving *> context
    return state.letter.state != LETTER_ARRIVING or (<Proc> state.proc).failure is not None


cdef struct Abandoned:
    void *station
    int descriptor


cdef bint is_written_no_more(void *context) except -1:
    cdef Abandoned *state = <Abandoned *> context
    cdef Station station = <Station> state.station
    enter()
    try:
        return station.qkernel.abandon(station, state.descriptor) == 0
    finally:
        leave()


cdef int outwait(DoneFunction done, void *state) except -1:
    """Until it is done, whatever signal handlers raise meanwhile: the memory is about to go."""
    keep_exceptions()
    try:
        wait_until(done, state, None)
    finally:
        raise_kept()
    return 0


cdef class Exchange:
    """The portals of one communicator.

    Parameters:
        comm: the communicator.
        bml: leads to the BTLs that the kernel rides on.
        node: this process's rank in the job.
        short_limit: bytes of the longest short message.
        drift: collectives that a rank may be ahead.
    """

    def __cinit__(self):
        self.heap_entry = self.ready_entry = -1

    def __init__(self, Communicator comm not None, Bml bml not None, uint32_t node, uint64_t short_limit, int drift):
        cdef int levels = max(comm.size - 1, 1).bit_length()
        # A tree brings one message a level, and meeting again one empty one.
        cdef uint64_t size = sizeof(Heap) + 64 + (drift + 3) * levels * (letter_size(short_limit) + letter_size(0))
        self.comm = comm
        self.station = station_over(bml, node)
        self.short_limit = short_limit
        self.shown = Request()
        self.shown.communicator = comm
        size = size // 16 * 16
        self.heap = <char *> calloc(size // 16, 16)
        self.ready = <uint64_t *> calloc(comm.size, sizeof(uint64_t))
        if self.heap == NULL or self.ready == NULL:
            raise MemoryError(f"no memory for a heap of {size} bytes")
        format_heap(self.heap, size)
        self.heap_entry = self.catcher(PORTAL_SHORT)
        self.heap_descriptor = self.station.entries[self.heap_entry].descriptor
        make_dynamic(&self.station.descriptors[self.heap_descriptor], self.heap, size, SAVE_BOTH, 0)
        self.ready_entry = self.catcher(PORTAL_READY)
        make_single(&self.station.descriptors[self.station.entries[self.ready_entry].descriptor], <char *> &self.sequence, 0,
                    WRITE, SAVE_BODY, SENDER_OFFSET)

    def __dealloc__(self):
        free(self.heap)
        free(self.ready)

    def close(self):
        """A module needs it no more; without any, the portals go."""
        self.users -= 1
        if self.users == 0:
            del self.station.exchanges[self.comm.context]
            self.drop_entry(self.heap_entry)
            self.drop_entry(self.ready_entry)
            self.heap_entry = self.ready_entry = -1

    def catcher(self, int portal):
        """An entry for whatever comes to a portal for this communicator."""
        cdef int entry = self.entry_for(-1, 0, NULL, 0, 0)
        self.station.entries[entry].mask = COMMUNICATOR_MASK
        self.station.entries[entry].source_rank = ANY_RANK
        self.station.entries[entry].owner = <uint64_t> <void *> self
        self.station.insert(portal, entry, LINK_END)
        return entry

    cdef int node(self, int rank) noexcept:
        return self.comm.group.members[rank]

    cdef uint64_t bits(self, int phase) noexcept:
        return self.comm.context << 16 | (self.sequence & 0x3FF) << 6 | phase

    # -- entries --------------------------------------------------------------------------------------------------

    cdef int entry_for(self, int rank, int phase, char *data, uint64_t length, int options) except -1:
        enter()
        try:
            return self.make_entry(rank, phase, data, length, options)
        finally:
            leave()

    cdef int make_entry(self, int rank, int phase, char *data, uint64_t length, int options) except -1:
        cdef Station station = self.station
        cdef int entry = station.new_entry()
        cdef int descriptor = station.new_descriptor()
        if entry < 0 or descriptor < 0:
            if entry >= 0:
                station.free_entry(entry)
            raise MPIError(ERR_NO_MEM, f"coll portals: {ENTRIES} entries are in use; free some communicators")
        make_single(&station.descriptors[descriptor], data if data != NULL else <char *> &self.sequence, length, WRITE,
                    SAVE_BODY, options)
        station.entries[entry].match_bits = self.bits(phase)
        station.entries[entry].mask = <uint64_t> -1
        station.entries[entry].source_group = ANY_GROUP
        station.entries[entry].source_rank = <uint32_t> self.node(rank) if rank >= 0 else <uint32_t> ANY_RANK
        station.entries[entry].too_long = LINK_END
        station.entries[entry].invalid = LINK_END
        station.entries[entry].descriptor = descriptor
        station.entries[entry].portal = -1
        station.entries[entry].owner = 0
        return entry

    cdef int drop_entry(self, int entry) except -1:
        cdef Station station = self.station
        cdef Abandoned state = Abandoned(<void *> station, station.entries[entry].descriptor)
        enter()
        try:
            station.remove(entry)
        finally:
            leave()
        try:
            if not is_written_no_more(&state):
                outwait(is_written_no_more, &state)
        finally:
            enter()
            station.free_descriptor(state.descriptor)
            station.free_entry(entry)
            leave()
        return 0

    # -- waiting --------------------------------------------------------------------------------------------------

    cdef int until(self, uint64_t *word, uint64_t goal, bint exactly, int rank) except -1:
        """Until a word has reached its goal; raises when the peer that is to move it is lost."""
        cdef Proc proc = self.comm.peer(rank)
        cdef Wait state = Wait(word, goal, exactly, <void *> proc)
        self.shown.peer = rank
        wait_until(arrived_or_lost, &state, self.shown)
        if not has_arrived(&state):
            raise proc.failure
        return 0

    cdef int await_ready(self, int rank, int phase) except -1:
        self.until(&self.ready[rank], self.bits(phase), True, rank)
        self.ready[rank] = 0                     # sequence numbers come again
        return 0

    # -- messages -------------------------------------------------------------------------------------------------

    cdef int transmit(self, int portal, int rank, int phase, const char *data, uint64_t length, uint64_t offset) except -1:
        """Returns when the memory may be used again."""
        cdef Station station = self.station
        cdef Sending sending = self.spare if self.spare is not None else Sending()
        cdef Header header
        cdef int verdict = REFUSED
        self.spare = None
        sending.out = 0
        memset(&header, 0, sizeof(header))
        header.portal = portal
        header.match_bits = self.bits(phase)
        header.offset = offset
        Py_INCREF(sending)                       # the kernel's reference, until `sent`
        enter()
        try:
            verdict = station.qkernel.send_app_msg(station, station.capability, self.node(rank), &header, data, length,
                                                   <uint64_t> <void *> sending, NULL)
        finally:
            leave()
            if verdict != QUEUED:
                Py_DECREF(sending)
        if verdict == QUEUED:
            try:
                self.until(&sending.out, 1, False, rank)
            except BaseException:
                self.take_back(sending, rank, data, length)
                raise
            if sending.status:
                error = MPIError(sending.status, f"a message to rank {rank} could not be sent")
                raise self.comm.peer(rank).failure or error
        elif verdict != SENT:
            raise MPIError(ERR_OTHER, f"coll portals: the kernel takes no message for rank {rank}")
        self.spare = sending
        return 0

    cdef int take_back(self, Sending sending, int rank, const char *data, uint64_t length) except -1:
        cdef QKernel kernel = self.station.qkernel
        cdef Proc proc = self.comm.peer(rank)
        cdef Wait state = Wait(&sending.out, 1, False, <void *> proc)
        cdef bint aside
        enter()
        try:
            aside = proc.failure is not None or kernel.set_aside(self.node(rank), data, length)
        finally:
            leave()
        if not aside:
            # The peer reads it just now, and can't be told not to.
            outwait(arrived_or_lost, &state)
        if proc.failure is not None:
            enter()
            try:
                kernel.peer_lost(self.node(rank), proc.failure)
            finally:
                leave()
        return 0

    cdef int send(self, int rank, int phase, const char *data, uint64_t length) except -1:
        return self.transmit(PORTAL_SHORT, rank, phase, data, length, 0)

    cdef int recv(self, int rank, int phase, char *data, uint64_t length) except -1:
        cdef Station station = self.station
        cdef int entry = self.entry_for(rank, phase, data, length, SENDER_OFFSET)
        cdef uint64_t before = self.pieces(entry)
        cdef Letter *letter
        try:
            enter()
            letter = station.search_or_activate(self.heap_descriptor, PORTAL_SHORT, entry, station.portals[PORTAL_SHORT].index)
            leave()
            if letter == NULL:
                self.await_pieces(entry, rank, before + 1)
            else:
                self.take_letter(letter, rank, data, length)
        finally:
            self.drop_entry(entry)
        return 0

    cdef int take_letter(self, Letter *letter, int rank, char *data, uint64_t length) except -1:
        """A message that came before its receiver, or is coming; after an exception it stays in the heap."""
        cdef Proc proc = self.comm.peer(rank)
        cdef Arriving state = Arriving(letter, <void *> proc)
        if letter.state == LETTER_ARRIVING:
            self.shown.peer = rank
            wait_until(settled_or_lost, &state, self.shown)
        if letter.state != LETTER_WHOLE:
            raise proc.failure or MPIError(ERR_OTHER, f"coll portals: the rest of a message of rank {rank} never came")
        enter()
        copy_bytes(data, letter_body(letter), min(length, letter.length))
        release_letter(self.heap, letter)
        leave()
        return 0

    cdef int send_long(self, int rank, int phase, const char *data, uint64_t length) except -1:
        self.await_ready(rank, phase)
        return self.transmit(PORTAL_LONG, rank, phase, data, length, 0)

    cdef int recv_long(self, int rank, int phase, char *data, uint64_t length) except -1:
        cdef int entry = self.open_block(rank, phase, data, length)
        cdef uint64_t before = self.pieces(entry)
        try:
            self.transmit(PORTAL_READY, rank, phase, NULL, 0, 0)
            self.await_pieces(entry, rank, before + 1)
        finally:
            self.close_block(entry)
        return 0

    cdef int open_block(self, int rank, int phase, char *data, uint64_t length) except -1:
        cdef int entry = self.entry_for(rank, phase, data, length, SENDER_OFFSET)
        enter()
        try:
            self.station.insert(PORTAL_LONG, entry, LINK_END)
        finally:
            leave()
        return entry

    cdef uint64_t pieces(self, int entry) noexcept:
        return self.station.descriptors[self.station.entries[entry].descriptor].messages

    cdef int await_pieces(self, int entry, int rank, uint64_t count) except -1:
        return self.until(&self.station.descriptors[self.station.entries[entry].descriptor].messages, count, False, rank)

    cdef int close_block(self, int entry) except -1:
        return self.drop_entry(entry)
