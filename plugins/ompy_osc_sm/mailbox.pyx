# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Orders of other processes to this one.  See `mailbox.pxd`."""
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from posix.unistd cimport getpid

from ompy.core.atomic cimport acquire32, exchange_if32, fetch_to_write, relax, release32
from ompy.core.basic cimport BASIC_TYPES, basics
from ompy.core.convertor cimport Run, gather_blocks, scatter_blocks
from ompy.core.clock cimport clock_now
from ompy.core.copying cimport copy_bytes, is_zen_4
from ompy.core.doorbell cimport Bell, ring_bell
from ompy.core.heap cimport take
from ompy.core.operation cimport Operation, Reduction, predefined
from ompy.core.progress_source cimport ProgressSource, register_source, unregister_source
from ompy.core.reach cimport Reach, has_gone, move, seen
from ompy.core.reduction_loops cimport Kernel
from ompy.core.typemap cimport Typemap

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    LOOKS = 16                                   # at a state between two at the clock
    YIELDS_AFTER = 10000                         # nanoseconds: from then on the core is offered to others
    SOON_DONE = 1 << 10                          # looks at a claimed order before the core is offered to others
    CLAIMED_LOOKS = 1 << 15                      # at a claimed order before it is asked whether its target lives
    # Nanoseconds for which a mailbox is left alone, at first and at last, and between calls of a sleeper.
    LEAST_IN_VAIN = 2000
    MOST_IN_VAIN = 256000
    LEAST_BETWEEN_CALLS = 50000
    MOST_BETWEEN_CALLS = 100000000
    FETCHED = 4096                               # bytes of data: more lines than a core asks for at once
    STRETCH = 2048                               # bytes of it that are answered at a time
    LINE = 64
    TOO_OLD = 100000000                          # nanoseconds, of orders about memory of a process that may be another by now

# By number: REPLACE and NO_OP, and then the reductions, whose kernels are the same in every process.
cdef tuple OPERATIONS = tuple(predefined(name) for name in (
    "REPLACE", "NO_OP", "SUM", "MAX", "MIN", "PROD", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR"))
cdef enum:
    OPERATIONS_KNOWN = 12
    OPERANDS = 4096                              # PIECE bytes
cdef PyObject *known[OPERATIONS_KNOWN]
cdef Kernel kernels[OPERATIONS_KNOWN][BASIC_TYPES]
cdef int number
for number in range(OPERATIONS_KNOWN):
    known[number] = <PyObject *> OPERATIONS[number]
    if number >= FIRST_REDUCTION:
        memcpy(kernels[number], (<Reduction> OPERATIONS[number]).kernels, sizeof(kernels[number]))

cdef Mailbox *mine = NULL
# What is read of more bytes than a stretch, a Zen 4 writes soonest into lines that nobody has fetched before.
cdef bint fetches_answers = not is_zen_4()
cdef long double operands[OPERANDS]              # read from origins; aligned for every type
cdef int windows = 0                             # that want it looked into
cdef uint64_t carried = 0                        # orders of others
cdef uint64_t ordered = 0                        # this process's that were carried out


# -- the target's side

cdef uint64_t own_mailbox() noexcept:
    global mine
    cdef bint fresh = False
    if mine == NULL:
        mine = <Mailbox *> take(sizeof(Mailbox) + SLOTS * ROOM, &fresh)
        if mine != NULL:
            memset(mine, 0, sizeof(Mailbox))
    return <uint64_t> mine


cdef inline bint is_posted() noexcept nogil:
    cdef uint32_t slot
    for slot in range(acquire32(&mine.used)):
        if acquire32(&mine.slots[slot].state) == POSTED:
            return True
    return False


cdef bint has_mail(void *_) noexcept nogil:
    return is_posted() or acquire32(&mine.called)


cdef int serve() noexcept nogil:
    global carried
    cdef uint32_t slot
    cdef int served = 0
    for slot in range(acquire32(&mine.used)):
        if acquire32(&mine.slots[slot].state) != POSTED:
            continue
        fetch_data(&mine.slots[slot])
        if exchange_if32(&mine.slots[slot].state, POSTED, CLAIMED):
            carry_out(&mine.slots[slot])
            release32(&mine.slots[slot].state, DONE)
            served += 1
    carried += served
    return served


cdef inline size_t length_of(const Slot *slot) noexcept nogil:
    """Bytes of its data."""
    if slot.kind >= PULL:
        return sizeof(Far)
    return 2 * <size_t> slot.size if slot.kind == FETCH or slot.kind == SWAP else slot.size


cdef inline void fetch_data(Slot *slot) noexcept nogil:
    """Have the lines come while the slot is claimed: the origin looks at the slot, and has it back where that takes longer."""
    cdef size_t total = length_of(slot), line
    if slot.kind == GET and total > STRETCH and not fetches_answers:
        return
    if total > INLINE:
        for line in range((min(total, <size_t> FETCHED) + LINE - 1) // LINE):
            fetch_to_write(data_of(mine, slot, total, slot.second) + LINE * line)


cdef inline void answer(char *data, const char *place, size_t size) noexcept nogil:
    """Lines that were fetched are written soonest by ordinary stores, which memcpy makes of short pieces only."""
    while fetches_answers and STRETCH < size <= FETCHED:
        memcpy(data, place, STRETCH)
        data += STRETCH
        place += STRETCH
        size -= STRETCH
    copy_bytes(data, place, size)


cdef void carry_out(Slot *slot) noexcept nogil:
    cdef char *place = <char *> slot.address
    cdef size_t size = slot.size, total = length_of(slot)
    cdef char *data = data_of(mine, slot, total, slot.second)
    if slot.kind >= PULL:
        carry_far(slot)
    elif slot.kind == PUT:
        copy_bytes(place, data, size)
    elif slot.kind == GET:
        answer(data, place, size)
    elif slot.kind == SCATTER or slot.kind == GATHER:
        carry_runs(data, slot.address, slot.kind == SCATTER)
    elif slot.kind == SWAP:
        if memcmp(place, data, size) == 0:
            memcpy(place, data + size, size)
        else:
            copy_bytes(data, place, size)
    else:
        if slot.kind == FETCH:
            copy_bytes(data + size, place, size)
        if slot.operation == REPLACING:
            copy_bytes(place, data, size)
        elif slot.operation != LEAVING:
            kernels[slot.operation][slot.basic](data, place, size // basics[slot.basic].extent)


cdef void carry_runs(char *data, size_t count, bint scatter) noexcept nogil:
    cdef const Run *run = <Run *> data
    cdef const Run *end = run + count
    cdef char *blocks = <char *> end
    while run < end:
        if scatter:
            scatter_blocks(blocks, run.place, run.length, run.count, run.stride)
        else:
            gather_blocks(blocks, run.place, run.length, run.count, run.stride)
        blocks += run.length * run.count
        run += 1


cdef void carry_far(Slot *slot) noexcept nogil:
    cdef const Far *far = <Far *> &slot.data[0]
    cdef Reach origin
    cdef uint32_t piece
    origin.pid = slot.owner
    origin.heap = NULL
    slot.done = 0
    if clock_now() - far.posted > TOO_OLD:
        return
    if slot.kind != ABSORB or slot.operation == REPLACING:
        if move(&origin, slot.address, far.here, slot.size, slot.kind != PUSH) == 0:
            slot.done = slot.size
        return
    while slot.done < slot.size:
        piece = min(slot.size - slot.done, <uint32_t> PIECE)
        if move(&origin, <size_t> operands, far.here + slot.done, piece, True):
            return
        kernels[slot.operation][slot.basic](operands, <char *> slot.address + slot.done, piece // basics[slot.basic].extent)
        slot.done += piece


cdef void refuse() noexcept nogil:
    cdef uint32_t slot
    if mine != NULL:
        for slot in range(acquire32(&mine.used)):
            exchange_if32(&mine.slots[slot].state, POSTED, WITHDRAWN)


cdef class MailboxSource(ProgressSource):
    """Has the engine look into the mailbox."""

    def __cinit__(self):
        self.ready = has_mail

    cpdef int progress(self) except -1:
        """Who is called is awake from here on, as after any event."""
        cdef int events = serve()
        if acquire32(&mine.called):
            release32(&mine.called, 0)
            events += 1
        return events


cdef MailboxSource attendance = MailboxSource()


cdef int start_serving() except -1:
    global windows
    register_source(attendance)
    windows += 1
    return 0


cdef int stop_serving() except -1:
    global windows
    windows -= 1
    if windows == 0:
        unregister_source(attendance)
    return 0


# -- the origin's

cdef void open_outbox(Outbox *outbox, uint64_t mailbox, const Reach *reach, Bell *bell, int writer) noexcept:
    if outbox.mailbox == NULL and mailbox:
        memset(outbox.shares, PARTS // 2, sizeof(outbox.shares))
        outbox.mailbox = <Mailbox *> seen(reach, mailbox, sizeof(Mailbox) + SLOTS * ROOM)
        outbox.bell = bell
        outbox.writer = writer


cdef inline void begin(Pause *pause, int64_t now, int64_t least, int64_t most) noexcept nogil:
    pause.length = min(max(2 * pause.length, least), most)
    pause.end = now + pause.length


cdef inline bint lasts(const Pause *pause, int64_t now) noexcept nogil:
    return pause.length and now < pause.end


cdef void call(Outbox *outbox, int64_t now) noexcept:
    """Wake the sleeper, who needs a while for it."""
    begin(&outbox.between_calls, now, LEAST_BETWEEN_CALLS, MOST_BETWEEN_CALLS)
    outbox.in_vain.length = LEAST_IN_VAIN
    outbox.in_vain.end = now + LEAST_BETWEEN_CALLS
    release32(&outbox.mailbox.called, 1)
    ring_bell(outbox.bell, outbox.writer)


cdef bint take_slot(Outbox *outbox) noexcept:
    """Whether one is free, or was of a process that has gone."""
    cdef Mailbox *mailbox = outbox.mailbox
    cdef Slot *slot
    cdef Reach owner
    cdef uint32_t number, used, me = getpid()
    for number in range(SLOTS):
        slot = &mailbox.slots[number]
        owner.pid = acquire32(&slot.owner)
        owner.pidfd = -1
        if owner.pid and not has_gone(&owner) or acquire32(&slot.state) == CLAIMED:
            continue
        if not exchange_if32(&slot.owner, owner.pid, me):
            continue
        exchange_if32(&slot.state, POSTED, WITHDRAWN)
        if acquire32(&slot.state) == CLAIMED:    # meanwhile: what says that it is done would be said of our order
            release32(&slot.owner, 0)
            continue
        used = acquire32(&mailbox.used)
        while used <= number and not exchange_if32(&mailbox.used, used, number + 1):
            used = acquire32(&mailbox.used)
        outbox.slot = slot
        return True
    return False


cdef Slot *slot_for(Outbox *outbox) noexcept:
    if outbox.mailbox == NULL or outbox.in_vain.length and lasts(&outbox.in_vain, clock_now()):
        return NULL
    if outbox.bell.armed:
        if not lasts(&outbox.between_calls, clock_now()):
            call(outbox, clock_now())
        return NULL
    if outbox.slot == NULL and not take_slot(outbox):
        begin(&outbox.in_vain, clock_now(), MOST_BETWEEN_CALLS, MOST_BETWEEN_CALLS)
    return outbox.slot


cdef Outcome settle(Outbox *outbox, Reach *reach, int64_t patience) noexcept:
    global ordered
    cdef uint32_t *state = &outbox.slot.state
    cdef int64_t now, begun = 0
    cdef unsigned int looks = 0
    cdef int _look
    while acquire32(state) == POSTED:
        for _look in range(LOOKS):
            if acquire32(state) != POSTED:
                break
            relax()
        if mine != NULL:
            serve()
        now = clock_now()
        begun = begun or now
        if now - begun >= patience and exchange_if32(state, POSTED, WITHDRAWN):
            begin(&outbox.in_vain, now, LEAST_IN_VAIN, MOST_IN_VAIN)
            return REFUSED
        if now - begun >= YIELDS_AFTER:
            sched_yield()
    while acquire32(state) == CLAIMED:
        looks += 1
        if looks > SOON_DONE and looks % LOOKS == 0:
            sched_yield()
        if looks % CLAIMED_LOOKS == 0 and has_gone(reach) and acquire32(state) == CLAIMED:
            outbox.mailbox = NULL
            return LOST
    if acquire32(state) != DONE:
        return REFUSED
    outbox.in_vain.length = outbox.between_calls.length = 0
    ordered += 1
    return CARRIED_OUT


cdef int number_of(Operation operation, Typemap typemap, uint64_t address) noexcept:
    cdef int number, basic = typemap.basic
    for number in range(OPERATIONS_KNOWN):
        if <PyObject *> operation == known[number]:
            break
    else:
        return -1
    if number < FIRST_REDUCTION:
        return number
    if basic < 0 or kernels[number][basic] == NULL or basics[basic].size != basics[basic].extent:
        return -1
    return -1 if address % <uint64_t> basics[basic].alignment else number


def counters() -> dict[str, int]:
    """Orders of others that this process has carried out, and its own that others have."""
    return {"carried out": carried, "ordered": ordered}


def address() -> int:
    """Where this process's mailbox is, for debuggers; 0: nowhere."""
    return <size_t> mine
