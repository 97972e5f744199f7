# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""Matching queues of one communicator; see `matching.pxd` for how they work."""
cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free, malloc

from ompy.core.board cimport RECV
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG
from ompy.core.copying cimport copy_bytes

cdef size_t FIRST_BUCKETS = 64


cdef inline size_t bucket_of(QueueTable *table, int source, int tag) noexcept nogil:
    cdef uint64_t key = (<uint64_t> <unsigned int> source) * 0x9E3779B97F4A7C15u
    key += (<uint64_t> <unsigned int> tag) * 0xC2B2AE3D27D4EB4Fu
    return <size_t> (key >> 32) & (table.bucket_count - 1)


cdef inline Queue *look_up(QueueTable *table, int source, int tag) noexcept nogil:
    cdef Queue *queue
    if table.buckets == NULL:
        return NULL
    queue = table.buckets[bucket_of(table, source, tag)]
    while queue != NULL:
        if queue.source == source and queue.tag == tag:
            return queue
        queue = queue.chain
    return NULL


cdef int grow(QueueTable *table) except -1:
    cdef size_t old_count = table.bucket_count, bucket, count = old_count * 2 if old_count else FIRST_BUCKETS
    cdef Queue **old = table.buckets
    cdef Queue **buckets = <Queue **> calloc(count, sizeof(Queue *))
    cdef Queue *queue
    cdef Queue *chain
    if buckets == NULL:
        raise MemoryError("no memory for matching queues")
    table.buckets = buckets
    table.bucket_count = count
    for bucket in range(old_count):
        queue = old[bucket]
        while queue != NULL:
            chain = queue.chain
            queue.chain = buckets[bucket_of(table, queue.source, queue.tag)]
            buckets[bucket_of(table, queue.source, queue.tag)] = queue
            queue = chain
    free(old)
    return 0


cdef Queue *look_up_or_make(QueueTable *table, int source, int tag) except NULL:
    cdef Queue *queue = look_up(table, source, tag)
    return queue if queue != NULL else make_queue(table, source, tag)


cdef Queue *make_queue(QueueTable *table, int source, int tag) except NULL:
    cdef Queue *queue
    cdef size_t bucket
    if table.used >= table.bucket_count:
        sweep(table)
        if table.used >= table.bucket_count // 2:
            grow(table)
    if table.spare != NULL:
        queue = table.spare
        table.spare = queue.chain
    else:
        queue = <Queue *> malloc(sizeof(Queue))
        if queue == NULL:
            raise MemoryError("no memory for a matching queue")
    queue.source = source
    queue.tag = tag
    queue.head = NULL
    queue.tail = NULL
    bucket = bucket_of(table, source, tag)
    queue.chain = table.buckets[bucket]
    table.buckets[bucket] = queue
    table.used += 1
    return queue


cdef void sweep(QueueTable *table) noexcept:
    """Take the empty queues out of the table; they are spares then."""
    cdef size_t bucket
    cdef Queue **place
    cdef Queue *queue
    for bucket in range(table.bucket_count):
        place = &table.buckets[bucket]
        while place[0] != NULL:
            queue = place[0]
            if queue.head == NULL:
                place[0] = queue.chain
                queue.chain = table.spare
                table.spare = queue
                table.used -= 1
            else:
                place = &queue.chain


cdef void close_table(QueueTable *table) noexcept:
    cdef size_t bucket
    cdef Queue *queue
    cdef Queue *chain
    if table.buckets == NULL:
        return
    for bucket in range(table.bucket_count):
        queue = table.buckets[bucket]
        while queue != NULL:
            chain = queue.chain
            free(queue)
            queue = chain
    queue = table.spare
    while queue != NULL:
        chain = queue.chain
        free(queue)
        queue = chain
    free(table.buckets)
    table.buckets = NULL


cdef void append_link(Queue *queue, Link *link) noexcept nogil:
    link.queue = queue
    link.next = NULL
    link.previous = <Link *> queue.tail
    if link.previous != NULL:
        link.previous.next = link
    else:
        queue.head = link
    queue.tail = link


# Of long messages the memory is kept for the next ones: what malloc gives back to the system costs a fault for each page,
# every time, which takes longer than the copy.  One list for each power of two from 4 KiB to 64 KiB, and a header.
cdef enum:
    SHORTEST_SPARE = 12                          # its power
    SPARES = 5
    HEADERS = 128
    MOST_SPARE = 8 << 20                         # bytes, of all

cdef Unexpected *spares[SPARES]
cdef size_t spared = 0


cdef inline size_t room_of(int spare) noexcept:
    return (<size_t> 1 << (SHORTEST_SPARE + spare)) + HEADERS


cdef inline int spare_for(size_t length) noexcept:
    """Which list has messages with room for so many bytes, and not for twice as many; SPARES: none."""
    cdef int spare = 0
    if length <= room_of(0) // 2:
        return SPARES
    while spare < SPARES and length > room_of(spare):
        spare += 1
    return spare


cdef Unexpected *make_message(size_t length) except NULL:
    global spared
    cdef int spare = spare_for(length)
    cdef size_t room = room_of(spare) if spare < SPARES else length
    cdef Unexpected *message = spares[spare] if spare < SPARES else NULL
    if message != NULL:
        spares[spare] = message.links[0].message
        spared -= room
        return message
    message = <Unexpected *> malloc(sizeof(Unexpected) + room)
    if message == NULL:
        raise MemoryError(f"no memory for an unexpected message of {length} bytes")
    message.room = room
    return message


cdef void free_message(Unexpected *message) noexcept:
    global spared
    cdef int spare = spare_for(message.room)
    if spare == SPARES or spared + message.room > MOST_SPARE:
        free(message)
        return
    message.links[0].message = spares[spare]
    spares[spare] = message
    spared += message.room


@cython.freelist(16)
cdef class Matching:
    """The queues of one communicator."""

    def __cinit__(self, Communicator communicator not None):
        self.communicator = communicator
        self.peers = <Peer *> calloc(max(communicator.remote_size, 1), sizeof(Peer))
        if self.peers == NULL:
            raise MemoryError("no memory for a communicator's peers")

    def __dealloc__(self):
        if self.unexpected.buckets != NULL:
            self.free_unexpected()
        close_table(&self.posted)
        close_table(&self.unexpected)
        free(self.peers)

    cdef void free_unexpected(self) noexcept:
        cdef size_t bucket
        cdef Queue *queue
        cdef Unexpected *message
        for bucket in range(self.unexpected.bucket_count):
            queue = self.unexpected.buckets[bucket]
            while queue != NULL:
                while queue.head != NULL:
                    message = (<Link *> queue.head).message
                    self.remove(message)
                    free_message(message)
                queue = queue.chain

    cdef Request waiting(self):
        if self.shown is None:
            self.shown = Request.__new__(Request)
            self.shown.operation = RECV
            self.shown.communicator = self.communicator
        return self.shown

    cdef int close(self) except -1:
        # Each refers to this object: without this, neither would ever go.
        self.closed = True
        while self.unused_count:
            self.unused_count -= 1
            Py_DECREF(<object> self.unused[self.unused_count])
        return 0

    cdef PeerRoutes routes(self, int rank):
        return <PeerRoutes> self.peers[rank].routes

    cdef int post(self, Posted *posted, Request request, int source, int tag) except -1:
        cdef Queue *queue = look_up_or_make(&self.posted, source, tag)
        posted.request = <void *> request
        Py_INCREF(request)
        posted.queue = queue
        posted.serial = self.serial
        self.serial += 1
        posted.next = NULL
        posted.previous = <Posted *> queue.tail
        if posted.previous != NULL:
            posted.previous.next = posted
        else:
            queue.head = posted
        queue.tail = posted
        self.posted_count += 1
        if source < 0 or tag < 0:
            self.count_wild(source, tag, 1)
        return 0

    cdef void count_wild(self, int source, int tag, int change) noexcept:
        if source == ANY_SOURCE:
            if tag == ANY_TAG:
                self.wild_both_count += change
            else:
                self.wild_source_count += change
        elif tag == ANY_TAG:
            self.wild_tag_count += change

    cdef void unpost(self, Posted *posted) noexcept:
        cdef Queue *queue = posted.queue
        if posted.previous != NULL:
            posted.previous.next = posted.next
        else:
            queue.head = posted.next
        if posted.next != NULL:
            posted.next.previous = posted.previous
        else:
            queue.tail = posted.previous
        posted.queue = NULL
        self.posted_count -= 1
        if queue.source < 0 or queue.tag < 0:
            self.count_wild(queue.source, queue.tag, -1)

    cdef int withdraw(self, Posted *posted) except -1:
        """Take a receive back that was not matched."""
        if posted.queue != NULL:
            self.unpost(posted)
            Py_DECREF(<Request> posted.request)
        return 0

    cdef Posted *find_posted(self, int source, int tag) noexcept:
        cdef Posted *best = NULL
        cdef Queue *queue
        if self.posted_count == 0:
            return NULL
        queue = look_up(&self.posted, source, tag)
        if queue != NULL:
            best = <Posted *> queue.head
        if self.wild_source_count:
            queue = look_up(&self.posted, ANY_SOURCE, tag)
            best = older(best, queue)
        if tag >= 0:
            if self.wild_tag_count:
                best = older(best, look_up(&self.posted, source, ANY_TAG))
            if self.wild_both_count:
                best = older(best, look_up(&self.posted, ANY_SOURCE, ANY_TAG))
        return best

    cdef int store(self, const char *data, size_t length) except -1:
        cdef Unexpected *message = make_message(length)
        cdef Envelope *envelope
        cdef int index
        copy_bytes(message_bytes(message), data, length)
        message.length = length
        envelope = message_envelope(message)
        for index in range(4):
            message.links[index].message = message
            message.links[index].queue = NULL
        append_link(look_up_or_make(&self.unexpected, envelope.source, envelope.tag), &message.links[0])
        append_link(look_up_or_make(&self.unexpected, ANY_SOURCE, envelope.tag), &message.links[1])
        if envelope.tag >= 0:
            append_link(look_up_or_make(&self.unexpected, envelope.source, ANY_TAG), &message.links[2])
            append_link(look_up_or_make(&self.unexpected, ANY_SOURCE, ANY_TAG), &message.links[3])
        self.unexpected_count += 1
        return 0

    cdef Unexpected *find(self, int source, int tag) noexcept:
        cdef Queue *queue
        if self.unexpected_count == 0:
            return NULL
        queue = look_up(&self.unexpected, source, tag)
        return NULL if queue == NULL or queue.head == NULL else (<Link *> queue.head).message

    cdef void remove(self, Unexpected *message) noexcept:
        cdef Link *link
        cdef Queue *queue
        cdef int index
        for index in range(4):
            link = &message.links[index]
            queue = link.queue
            if queue == NULL:
                continue
            if link.previous != NULL:
                link.previous.next = link.next
            else:
                queue.head = link.next
            if link.next != NULL:
                link.next.previous = link.previous
            else:
                queue.tail = link.previous
            link.queue = NULL
        self.unexpected_count -= 1

    cdef bint is_alone(self) noexcept:
        cdef Communicator communicator = self.communicator
        cdef int rank
        for rank in range(communicator.remote_size):
            own = communicator.remote_group is communicator.group and rank == communicator.rank
            if not own and not self.peers[rank].failed:
                return False
        return True

    cdef int fail_source(self, int source, object error, bint ambiguous) except -1:
        cdef Request request
        cdef list sources
        self.peers[source].failed = True
        sources = [source, ANY_SOURCE] if ambiguous or self.is_alone() else [source]
        self.failures = self.failures or {}
        for wanted in sources:
            self.failures[wanted] = error
            for request in self.posted_from(wanted):
                request.fail(error)
        return 0

    cdef int check_source(self, int source) except -1:
        if self.failures is not None and source in self.failures:
            raise self.failures[source]
        return 0

    def posted_from(self, int source):
        """Requests posted for this source by name, oldest first within a tag."""
        cdef size_t bucket
        cdef Queue *queue
        cdef Posted *posted
        found = []
        for bucket in range(self.posted.bucket_count):
            queue = self.posted.buckets[bucket]
            while queue != NULL:
                posted = <Posted *> queue.head if queue.source == source else NULL
                while posted != NULL:
                    found.append(<Request> posted.request)
                    posted = posted.next
                queue = queue.chain
        return found

    def dump(self):
        """{"posted": [(source, tag)], "unexpected": [(source, tag, bytes)]}, oldest first within a pair."""
        cdef size_t bucket
        cdef Queue *queue
        cdef Posted *posted
        cdef Link *link
        waiting = []
        messages = []
        if self.direct != NULL:
            waiting.append((self.direct.serial, self.direct.source, self.direct.tag))
        for bucket in range(self.posted.bucket_count):
            queue = self.posted.buckets[bucket]
            while queue != NULL:
                posted = <Posted *> queue.head
                while posted != NULL:
                    waiting.append((posted.serial, queue.source, queue.tag))
                    posted = posted.next
                queue = queue.chain
        for bucket in range(self.unexpected.bucket_count):
            queue = self.unexpected.buckets[bucket]
            while queue != NULL:
                if queue.source != ANY_SOURCE and queue.tag != ANY_TAG:
                    link = <Link *> queue.head
                    while link != NULL:
                        messages.append((queue.source, queue.tag, link.message.length))
                        link = link.next
                queue = queue.chain
        return {"posted": [entry[1:] for entry in sorted(waiting)], "unexpected": messages}


cdef inline Posted *older(Posted *best, Queue *queue) noexcept:
    cdef Posted *other
    if queue == NULL or queue.head == NULL:
        return best
    other = <Posted *> queue.head
    return other if best == NULL or other.serial < best.serial else best
