# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""What is ready of a process's sockets; see `poller.pxd`."""
from _collections import deque
from select import EPOLL_CLOEXEC, epoll

from ompy.core.errors import ERR_PROC_FAILED
from ompy.core.constants cimport OK
from ompy.core.progress cimport asleep
from ompy.core.progress_source cimport goal
from ompy.core.request cimport Departure, Request
from ompy.mca.btl cimport Btl, Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.wire cimport (
    Ready, Wire, arrived, end_of_sending, forget, lock, look_around, pull, send_gathered, try_lock, unlock, watch,
)

cdef enum:
    MOST_READY = 64                              # descriptors dealt with at one look
# Looks, and turns of `progress`, between two at epoll.
cdef enum:
    LOOKS = 16
# Looks at hot connections, after which nothing is hot any more.
cdef enum:
    LONGEST_HEAT = 4000
# Times that something came over a hot connection, with nobody asleep, before epoll need not tell of it.
cdef enum:
    STEADY = 64


cdef void take_back(Watch *watched) noexcept nogil:
    """Epoll is to tell of all that was set aside."""
    cdef int index
    for index in range(watched.hot_count):
        if watched.hot[index].aside:
            watched.hot[index].aside = False
            if watched.hot[index].over == 0:
                watch(watched.epoll, watched.hot[index].number, False, True)


cdef bint pull_hot(Watch *watched) noexcept nogil:
    """Take what has come at hot connections; whether there is anything to look at."""
    cdef Wire *asked[HOT]
    cdef int numbers[HOT]
    cdef Wire *wire
    cdef bint found = False, pulled = False
    cdef unsigned int ready
    cdef int index, count = 0
    for index in range(watched.hot_count):
        wire = watched.hot[index]
        if wire.fresh:
            found = True
        elif wire.left:                          # of a put more is on its way
            pulled |= pull(wire)
        else:
            asked[count], numbers[count] = wire, wire.number
            count += 1
    ready = arrived(numbers, count) if count else 0
    for index in range(count):
        if ready >> index & 1:
            pulled |= pull(asked[index])
    if pulled:
        watched.in_vain = 0
        for index in range(watched.hot_count):
            found |= watched.hot[index].fresh
    return found


cdef bint look(Watch *watched) noexcept nogil:
    cdef Ready one
    cdef bint found = False
    watched.looks += 1
    if watched.in_vain < LONGEST_HEAT:
        watched.in_vain += 1
        found = pull_hot(watched)
        if watched.in_vain == LONGEST_HEAT:
            take_back(watched)
    if not found and (watched.writers or watched.looks % LOOKS == 0):
        found = look_around(watched.epoll, &one, 1) > 0
    return found


cdef bint has_something(void *context) noexcept nogil:
    cdef Watch *watched = <Watch *> context
    cdef bint found
    if watched.work:
        return True
    if not try_lock(&watched.busy):
        return False
    found = look(watched)
    unlock(&watched.busy)
    return found


cdef class Poller(Btl):
    """The sockets of one process.  Errors: OSError when the system gives no epoll."""

    def __init__(self):
        self.by_number = {}
        self.hot, self.unread, self.gathering = [], [], []
        self.done = deque()
        self.poller = epoll(flags=EPOLL_CLOEXEC)
        self.watched.epoll = self.poller.fileno()
        self.ready = has_something
        self.ready_context = &self.watched

    def watch_reading(self, int number):
        watch(self.watched.epoll, number, False, True)

    def forget_number(self, int number):
        forget(self.watched.epoll, number)

    # -- progress

    cpdef int progress(self) except -1:
        if self.closed:
            return 0
        lock(&self.watched.busy)
        self.inside = True
        try:
            return self.work()
        finally:
            self.inside = False
            unlock(&self.watched.busy)

    cdef int work(self) except -1:
        cdef int events = 0
        self.turns += 1
        self.watched.work = False
        if self.departure is not None:
            events += self.depart()
        if self.done:
            self.watched.work = True             # should a callback raise
            events += self.finish_done()
            self.watched.work = len(self.done) > 0 or self.departure is not None
        if self.unread:
            self.heat_unread()
        events += self.look_at_hot()
        if events == 0 or self.turns % LOOKS == 0:
            events += self.attend()
        return events

    cdef int look_at_hot(self) except -1:
        cdef Connection connection
        cdef int events = 0
        cdef bint is_long = False
        cdef int index, count = self.watched.hot_count
        for index in range(count):
            is_long |= self.watched.hot[index].left > 0
        if is_long:
            with nogil:
                pull_hot(&self.watched)
        else:
            pull_hot(&self.watched)
        for index in range(count):
            if index >= self.watched.hot_count:
                break
            connection = <Connection> self.hot[(self.turns + index) % self.watched.hot_count]
            if connection.wire.fresh:
                self.watched.in_vain = 0
                events += self.consume(connection)
                if not connection.wire.aside:
                    self.set_aside(connection)
                if goal[0]:
                    break
        return events

    cdef int set_aside(self, Connection connection) except -1:
        """If its traffic is steady."""
        connection.steady += 1
        if connection.steady >= STEADY and asleep == 0 and connection.is_hot and not connection.is_link \
                and connection.queued == 0 and connection.wire.over == 0:
            connection.wire.aside = True
            forget(self.watched.epoll, connection.wire.number)
        return 0

    cdef int finish_done(self) except -1:
        """Run the callbacks of what is over."""
        cdef Descriptor descriptor
        cdef int events = 0
        cdef int count = len(self.done)
        while self.done and events < count:
            descriptor, status = self.done.popleft()
            events += 1
            descriptor.in_flight = True
            descriptor.complete(status)
        return events

    cdef int refuse(self, Descriptor descriptor) except -1:
        """It is taken, and has failed."""
        self.done.append((descriptor, ERR_PROC_FAILED))
        self.watched.work = True
        return OK

    # -- hot connections

    cdef int poll_directly(self, Connection connection) except -1:
        """It is looked at each time from now on, in the place of the one that has been for longest."""
        cdef Connection coldest
        if not self.inside:
            lock(&self.watched.busy)
        if self.watched.hot_count == HOT:
            coldest = <Connection> self.hot[0]
            self.leave_to_epoll(coldest)
            if coldest.wire.fresh:               # neither epoll nor a look at what is hot would tell of it
                self.unread.append(coldest)
                self.watched.work = True
        self.watched.hot[self.watched.hot_count] = &connection.wire
        self.watched.hot_count += 1
        self.hot.append(connection)
        connection.is_hot = True
        if not self.inside:
            unlock(&self.watched.busy)
        return 0

    cdef int heat_unread(self) except -1:
        """Those that were cooled too early have their turn again."""
        cdef Connection connection
        some, self.unread = self.unread, []
        for connection in some:
            if self.by_number.get(connection.wire.number) is connection and not connection.is_hot:
                self.poll_directly(connection)
        return 0

    cdef int leave_to_epoll(self, Connection connection) except -1:
        cdef int index
        if connection.is_hot:
            take_back(&self.watched)
            connection.is_hot = False
            connection.steady = 0
            self.hot.remove(connection)
            self.watched.hot_count = len(self.hot)
            for index in range(self.watched.hot_count):
                self.watched.hot[index] = &(<Connection> self.hot[index]).wire
        return 0

    # -- what epoll tells

    cpdef int descriptor(self) except -2:
        return self.watched.epoll

    cpdef bint may_sleep(self) except -1:
        cdef Connection connection
        for connection in self.hot:
            connection.steady = 0
        if not self.inside:
            lock(&self.watched.busy)
        take_back(&self.watched)
        if not self.inside:
            unlock(&self.watched.busy)
        if self.watched.work:
            return False
        for connection in self.hot:
            if connection.wire.fresh:
                return False
        return True

    cdef int attend(self) except -1:
        """See to whatever is ready; the number of events."""
        cdef Ready found[MOST_READY]
        cdef int events = 0
        cdef int index
        cdef int count = look_around(self.watched.epoll, found, MOST_READY)
        for index in range(count):
            events += self.attend_one(found[index].number, found[index].readable, found[index].writable)
        return events + self.attend_waiting()

    # -- what is not, or not all, with the system yet

    cdef int queue_begun(self, Connection connection) except -1:
        """Room for what waits is to be told of."""
        self.watched.writers += 1
        watch(self.watched.epoll, connection.wire.number, True, connection.wire.aside)
        connection.wire.aside = False
        return 0

    cdef int flush_queue(self, Connection connection) except -1:
        """Send what waits; the number of events."""
        cdef int events
        if connection.queued == 0:
            return 0
        events = connection.flush()
        if connection.queued == 0 or connection.is_broken:
            self.watched.writers -= 1
            watch(self.watched.epoll, connection.wire.number, False, False)
            if connection.is_over:
                end_of_sending(connection.wire.number)
        if connection.held_back and connection.queued <= connection.limit // 2:
            connection.held_back = False
            events += 1
        if self.done:
            self.watched.work = True
        return events

    cdef int defer(self, Connection connection) except -1:
        """The system has something that leaves with what follows, or with the next `progress`."""
        if not connection.gathers:
            connection.gathers = True
            self.gathering.append(connection)
        if self.departure is None:
            self.departure = Departure.__new__(Departure)
            self.watched.work = True
        return OK

    cdef int depart(self) except -1:
        """Let go of what was deferred; the number of events."""
        cdef Connection connection
        cdef Request departure = self.departure
        self.departure = None
        for connection in self.gathering:
            connection.gathers = False
            send_gathered(connection.wire.number)
        self.gathering.clear()
        departure.finish()
        return 1

    # -- of whoever has the connections

    cdef int consume(self, Connection connection) except -1:
        """Deal with what has come; the number of events."""
        raise NotImplementedError

    cdef int attend_one(self, int number, bint readable, bint writable) except -1:
        """Deal with a descriptor that is ready; the number of events."""
        raise NotImplementedError

    cdef int attend_waiting(self) except -1:
        """Deal with what the clock tells of; the number of events."""
        raise NotImplementedError
