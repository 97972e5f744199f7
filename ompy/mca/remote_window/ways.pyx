# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""How a rank gets at the others' memory.  See `ways.pxd`."""
from array import array

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from ompy.core.board cimport WIN_FLUSH
from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport OK
from ompy.core.heap cimport Block
from ompy.core.owner cimport enter, leave
from ompy.core.clock cimport clock_now, rest_for
from ompy.core.proc cimport Proc
from ompy.core.progress cimport progress, wait_until
from ompy.core.request cimport Request
from ompy.core.signals cimport keep_exceptions, raise_kept
from ompy.mca.active_rdma cimport ActiveRdma, around, close_region, let_go, open_region
from ompy.mca.bml cimport PeerRoutes
from ompy.mca.btl cimport FLAG_IN_ORDER, FLAG_NEEDS_REGISTRATION, Btl, Descriptor, Endpoint, carry_out_atomic
from ompy.mca.epochs cimport Epochs

from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.mca.agreement import gathered

# Nanoseconds for which a process that is ending may not be known to be, and between two looks.
cdef int64_t LONGEST_ENDING = 1_000_000_000
cdef int64_t PAUSE_WHILE_ENDING = 100_000

cdef enum:
    # Looks at a word elsewhere, then looks with so many nanoseconds between them that the core is let go for: a wait of the
    # progress engine's sleeps for longer than that; then with a wait between them, twice as long after every so many, and
    # as long as this at most: each of them watches for some 500 us before it sleeps.
    ROUNDS = 50
    RESTS = 40
    REST = 10000
    PAUSES = 8
    LONGEST = 20000000

# An old value that has not come.
UNKNOWN = b"\xff" * 8
# When a rank has died.
WITHIN = "amid accesses to its memory"


cdef class Way:
    """One rank's memory, as this one gets at it."""


cdef class Key:
    """What opens a piece of another rank's memory."""


cdef class Attempt(Request):
    cdef bint make(self) except -1:
        raise NotImplementedError


cdef bint is_taken(void *context) except -1:
    return (<Attempt> context).make()


cdef int await_news(Proc proc) except -1:
    """Of a process whose memory can't be reached: who is ending has none any more, a moment before it is known to have gone."""
    cdef int64_t begun = clock_now()
    while proc.failure is None and clock_now() - begun < LONGEST_ENDING:
        progress()
        with nogil:
            rest_for(PAUSE_WHILE_ENDING)
    return 0


cdef int require_living(Way way, str doing) except -1:
    if way.proc.failure is not None:
        raise MPIError(ERR_PROC_FAILED, f"rank {way.rank} of the window (process {way.proc.pid}) has died {doing}")
    return 0


cdef bint handed_over(Way way, Key key, What what, Descriptor descriptor, str atomic, int64_t operand,
                      int64_t compare) except -1:
    """Whether the transport has taken it."""
    cdef int taken
    require_living(way, WITHIN)
    enter()
    try:
        if what == PUT:
            taken = key.btl.put(key.endpoint, descriptor)
        elif what == GET:
            taken = key.btl.get(key.endpoint, descriptor)
        elif what == ATOMIC:
            taken = key.btl.atomic(key.endpoint, descriptor, atomic, operand, compare)
        elif what == ASK:
            taken = way.layer.ask(way.waking, descriptor)
        elif what == SCATTER:
            taken = way.layer.scatter(way.waking, descriptor, operand)
        else:
            taken = way.layer.gather(way.waking, descriptor, operand)
    finally:
        leave()
    return taken == OK


cdef class Launch(Attempt):
    """Of a descriptor."""
    cdef Key key
    cdef What what
    cdef Descriptor descriptor
    cdef str atomic
    cdef int64_t operand, compare

    cdef bint make(self) except -1:
        return handed_over(self.way, self.key, self.what, self.descriptor, self.atomic, self.operand, self.compare)


cdef bint flushed(Way way) except -1:
    enter()
    try:
        return way.state.btl.flush(way.state.endpoint) == OK
    finally:
        leave()


cdef class Flush(Attempt):
    """Of all towards a rank."""

    cdef bint make(self) except -1:
        if flushed(self.way):
            return True
        require_living(self.way, WITHIN)
        return False


cdef class Transfer:
    """What a descriptor leaves to be done."""


cdef int transferred(object context, Descriptor descriptor, int status) except -1:
    cdef Transfer transfer = <Transfer> context
    transfer.way.under_way -= 1
    transfer.way.status = transfer.way.status or status
    if transfer.local_handle is not None:
        descriptor.btl.release_mem(transfer.local_handle)
    return 0


cdef Descriptor new_descriptor(Way way, Key key, size_t here, uint64_t there, size_t size, object owner):
    cdef Descriptor descriptor = Descriptor.__new__(Descriptor, key.btl, 0)
    cdef Transfer transfer = Transfer()
    transfer.way = way
    transfer.owner = owner
    descriptor.local_address = here
    descriptor.remote_address = there
    descriptor.size = size
    descriptor.remote_handle = key.handle
    descriptor.context = transfer
    descriptor.callback = transferred
    descriptor.in_flight = True
    return descriptor


cdef Key key_of(list row, Btl btl, Endpoint endpoint, bytes handle):
    cdef Key key = Key()
    key.btl, key.endpoint, key.handle = btl, endpoint, handle
    key.address, key.size = row[ADDRESS], row[BYTES]
    key.put_limit = btl.put_limit or <size_t> -1
    key.get_limit = btl.get_limit or <size_t> -1
    return key


cdef bint is_quiet(void *context) except -1:
    cdef Way way = <Way> context
    return way.under_way == 0 or way.proc.failure is not None


cdef class Pause(Request):
    """A wait for what nobody tells of, as the job board shows it."""
    cdef int64_t end


cdef bint is_time(void *context) except -1:
    return clock_now() >= (<Pause> context).end


cdef list packed_handle(bytes handle):
    if len(handle) > 8 * HANDLE_WORDS:
        raise MPIError(ERR_OTHER, f"a handle of {len(handle)} bytes: {8 * HANDLE_WORDS} is what ranks of a window pass on")
    return [len(handle), *array("q", handle.ljust(8 * HANDLE_WORDS, b"\0"))]


cdef bytes unpacked_handle(list words):
    return array("q", words[1:]).tobytes()[:words[0]]


cdef int64_t name_of(Btl btl):
    cdef bytes name = btl.name.encode()
    return crc32c(0, <const char *> name, len(name))


cdef class Ways(Epochs):
    """The ways to a window's ranks."""

    cpdef int open(self) except -1:
        """Tell the others where this rank's memory is, and find theirs; collective."""
        cdef int rank
        cdef uint64_t register = self.open_register()
        self.state = Block(8 * (<size_t> HOLDERS + 4 * self.ranks))
        self.words = <int64_t *> self.state.address
        self.layers = []
        self.held = []
        self.ways = []
        for rank in range(self.ranks):
            self.ways.append(self.way_to(rank))
        self.rows = [
            self.row_of(self.window.base, self.window.size, self.held),
            self.row_of(self.state.address, self.state.size, self.held),
        ]
        told = [word for row in self.rows for word in row + [0] * (LONGEST_ROW - len(row))]
        rows = gathered(self.window.communicator, [*told, register])
        for rank in range(self.ranks):
            self.enter_row(self.ways[rank], rank, rows[rank])
        return 0

    def open_register(self) -> int:
        """What tells of memory that is yet to come has a name; 0: there will be none."""
        return 0

    def way_to(self, int rank):
        cdef Way way = Way()
        cdef PeerRoutes routes
        way.rank = rank
        way.proc = self.window.communicator.group.proc(rank)
        if rank == self.rank:
            return way
        enter()
        try:
            if way.proc.routes is None:
                way.proc.routes = self.bml.add_proc(way.proc)
        finally:
            leave()
        routes = way.proc.routes
        way.layer = self.layer_around(routes.first.btl)
        way.waking = routes.first.endpoint
        self.find_native(way, routes)
        return way

    cdef int find_native(self, Way way, PeerRoutes routes) except -1:
        return 0

    def layer_around(self, Btl inner):
        cdef ActiveRdma layer
        for layer in self.layers:
            if layer.inner is inner:
                return layer
        layer = around(inner)
        self.layers.append(layer)
        return layer

    cdef list row_of(self, uint64_t address, uint64_t size, list held):
        cdef Way way
        cdef bytes handle
        cdef dict handles = {}
        cdef bint exposed = True
        enter()
        try:
            for way in self.ways:
                if way.native is None:
                    continue
                exposed = exposed and (size == 0 or way.native.exposes(way.endpoint, address, size))
                if way.native.flags & FLAG_NEEDS_REGISTRATION and name_of(way.native) not in handles:
                    handle = b""
                    if size:
                        try:
                            handle = way.native.hold_mem(way.endpoint, address, size)
                        except MPIError as error:
                            if error.code != ERR_NO_MEM:
                                raise
                            exposed = False      # messages get there
                            continue
                        held.append((way.native, handle))
                    handles[name_of(way.native)] = packed_handle(handle)
        finally:
            leave()
        row = [address, size, open_region(address, size), exposed]
        for name, packed in list(handles.items())[:MOST_HANDLES]:
            row += [name, *packed]
        return row

    cdef int close_row(self, list row, list held) except -1:
        """Nobody accesses that memory any more."""
        close_region(row[REGION])
        enter()
        try:
            for btl, handle in held:
                (<Btl> btl).release_mem(handle)
        finally:
            leave()
        return 0

    def enter_row(self, Way way, int rank, list told):
        cdef list memory = told[:LONGEST_ROW], state = told[LONGEST_ROW:2 * LONGEST_ROW]
        way.base = memory[ADDRESS]
        if way.layer is None:
            return
        way.register = array("Q", told[2 * LONGEST_ROW:]).tobytes()
        way.memory, way.state = self.native_key(way, memory), self.native_key(way, state)
        if way.memory is None or way.state is None:
            way.memory, way.state = self.layer_key(way, memory), self.layer_key(way, state)
            way.in_order = way.layer.put_limit if way.layer.inner.flags & FLAG_IN_ORDER else 0
        # So that the transport has exchanged messages with it, and tells when it dies.
        self.wake_peer(rank)

    cdef Key native_key(self, Way way, list row):
        cdef int place
        if way.native is None or not row[EXPOSED]:
            return None
        if not way.native.flags & FLAG_NEEDS_REGISTRATION:
            return key_of(row, way.native, way.endpoint, b"")
        for place in range(HANDLES, len(row), 2 + HANDLE_WORDS):
            if row[place] == name_of(way.native):
                return key_of(row, way.native, way.endpoint, unpacked_handle(row[place + 1:place + 2 + HANDLE_WORDS]))
        return None

    cdef Key layer_key(self, Way way, list row):
        return key_of(row, way.layer, way.waking, array("Q", [row[REGION]]).tobytes())

    def close(self):
        """Nobody accesses memory here any more."""
        self.close_row(self.rows[0], self.held)
        self.close_row(self.rows[1], [])
        for layer in self.layers:
            let_go(layer)
        self.ways = self.layers = self.held = self.rows = []

    # -- accesses ---------------------------------------------------------------------------------------------------------

    cdef int begin(self, Way way, Key key, bint inward, size_t here, uint64_t there, size_t size, object owner) except -1:
        """Bring `size` bytes here, or take them there."""
        cdef Descriptor descriptor
        cdef Transfer transfer
        cdef size_t piece
        while size:
            piece = min(size, key.get_limit if inward else key.put_limit)
            descriptor = new_descriptor(way, key, here, there, piece, owner)
            if key.btl.flags & FLAG_NEEDS_REGISTRATION:
                transfer = descriptor.context
                enter()
                try:
                    transfer.local_handle = descriptor.local_handle = key.btl.hold_mem(key.endpoint, here, piece)
                finally:
                    leave()
            self.launch(way, key, GET if inward else PUT, descriptor, None, 0, 0)
            here += piece
            there += piece
            size -= piece
        return 0

    cdef int launch(self, Way way, Key key, int what, Descriptor descriptor, str operation, int64_t operand,
                    int64_t compare) except -1:
        cdef Launch launch
        way.under_way += 1
        try:
            if handed_over(way, key, <What> what, descriptor, operation, operand, compare):
                return 0
            launch = Launch.__new__(Launch)
            launch.way, launch.key, launch.what, launch.descriptor = way, key, <What> what, descriptor
            launch.atomic, launch.operand, launch.compare = operation, operand, compare
            return self.persist(launch)
        except BaseException:
            enter()
            try:
                transferred(descriptor.context, descriptor, 0)
            finally:
                leave()
            raise

    cdef int persist(self, Attempt attempt) except -1:
        attempt.operation = WIN_FLUSH
        attempt.communicator = self.window.communicator
        attempt.peer = attempt.way.rank
        return wait_until(is_taken, <void *> attempt, attempt)

    cdef int finish(self, int target, bint local) except -1:
        cdef Way way = self.ways[target]
        cdef Flush flush
        cdef int status
        if way.layer is None:
            return 0
        if way.under_way:
            self.await_quiet(way, target)
        if not local and not flushed(way):
            flush = Flush.__new__(Flush)
            flush.way = way
            self.persist(flush)
        status = way.status
        if status:
            way.status = 0
            await_news(way.proc)
            self.require_alive(target, WITHIN)
            raise MPIError(status, f"osc {self.component} could not access the memory of rank {target} of the window, "
                                   f"by {way.state.btl.name}")
        return 0

    def await_quiet(self, Way way, int target):
        cdef Request shown = Request()
        shown.operation = WIN_FLUSH
        shown.communicator = self.window.communicator
        shown.peer = target
        keep_exceptions()
        try:
            wait_until(is_quiet, <void *> way, shown)
        finally:
            raise_kept()
        if way.under_way:
            self.require_alive(target, WITHIN)

    cdef int64_t change(self, int target, int word, str operation, int64_t operand, int64_t compare) except? -1:
        cdef bytearray old = self.begin_change(target, word, operation, operand, compare)
        self.finish(target, True)
        return number_in(old)

    cdef bytearray begin_change(self, int target, int word, str operation, int64_t operand, int64_t compare):
        cdef Way way = self.ways[target]
        cdef Descriptor descriptor
        cdef bytearray old = bytearray(UNKNOWN)
        if way.layer is None:
            carry_out_atomic(&self.words[word], 8, operation, operand, compare, PyByteArray_AS_STRING(old))
            return old
        descriptor = new_descriptor(way, way.state, <size_t> PyByteArray_AS_STRING(old), way.state.address + 8 * word, 8, old)
        self.launch(way, way.state, ATOMIC, descriptor, operation, operand, compare)
        return old

    cdef int keep_order(self, int target) except -1:
        return 0 if (<Way> self.ways[target]).in_order else self.finish(target, True)

    cdef int look(self, int target, int count, bytearray words) except -1:
        self.begin_look(target, count, words)
        return self.finish(target, True)

    cdef int begin_look(self, int target, int count, bytearray words) except -1:
        cdef Way way = self.ways[target]
        if way.layer is None:
            memcpy(PyByteArray_AS_STRING(words), self.words, 8 * count)
            return 0
        return self.begin(way, way.state, True, <size_t> PyByteArray_AS_STRING(words), way.state.address, 8 * count, words)

    cdef int pause(self, int round, int target, int operation) except -1:
        cdef Pause pause
        if round >= ROUNDS and round < ROUNDS + RESTS:
            with nogil:
                rest_for(REST)
        if round < ROUNDS + RESTS:
            return progress() & 0
        pause = Pause()
        pause.operation = operation
        pause.communicator = self.window.communicator
        pause.peer = target
        pause.end = clock_now() + min(REST << min((round - ROUNDS - RESTS) // PAUSES, 11), LONGEST)
        return wait_until(is_time, <void *> pause, pause)

    cdef int require_alive(self, int rank, str doing) except -1:
        return require_living(self.ways[rank], doing)

    cdef int wake_peer(self, int target) except -1:
        cdef Way way = self.ways[target]
        if way.layer is None or way.proc.failure is not None:
            return 0
        enter()
        try:
            way.layer.greet(way.waking)
        finally:
            leave()
        return 0
