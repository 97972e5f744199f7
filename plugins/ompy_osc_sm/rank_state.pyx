# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The words that the ranks of a window share.  See `rank_state.pxd`."""
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport acquire, acquire32, exchange_if32, release, release32
from ompy.core.reach cimport Reach, has_gone
from ompy.core.window cimport LOCK_EXCLUSIVE

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    LOOKS = 64                                   # at a guard before the core is offered to its holder
    PATIENCE = 1 << 15                           # before it is asked whether the holder lives


cdef size_t bytes_needed(int ranks) noexcept nogil:
    return sizeof(Header) + ranks * stride_of(ranks)


cdef size_t lines(size_t nbytes) noexcept nogil:
    return (nbytes + LINE - 1) & ~<size_t> (LINE - 1)


cdef size_t where_posted(int ranks) noexcept nogil:
    return lines(sizeof(RankState) + ranks * sizeof(uint64_t))


cdef size_t completion_of(int ranks) noexcept nogil:
    return sizeof(Completion) - (0 if ranks <= MOST_WITH_DATA else <size_t> DATA)


cdef size_t stride_of(int ranks) noexcept nogil:
    return where_posted(ranks) + 2 * lines(ranks * sizeof(uint32_t)) + lines(2 * ranks * completion_of(ranks))


cdef void lay_out(Room *room, char *memory, int rank, int ranks, Reach **reaches) noexcept nogil:
    room.header = <Header *> memory
    room.states = memory + sizeof(Header)
    room.stride = stride_of(ranks)
    room.posted = where_posted(ranks)
    room.row = lines(ranks * sizeof(uint32_t))
    room.completion = completion_of(ranks)
    room.capacity = DATA if ranks <= MOST_WITH_DATA else 0
    room.rank = rank
    room.ranks = ranks
    room.reaches = reaches


cdef void hold_guard(const Room *room, int target) noexcept nogil:
    cdef uint32_t *guard = &state_of(room, target).guard
    cdef unsigned int looks = 0
    while acquire32(guard) or not exchange_if32(guard, 0, room.rank + 1):
        looks += 1
        if looks % LOOKS == 0:
            sched_yield()
        if looks % PATIENCE == 0 and inherit_guard(room, target):
            return


cdef bint inherit_guard(const Room *room, int target) noexcept nogil:
    """Whether its holder was killed: then it is ours, and the counts are what the turns say."""
    cdef uint32_t *guard = &state_of(room, target).guard
    cdef uint32_t me = room.rank + 1, holder = acquire32(guard)
    if holder == 0 or holder == me or not has_gone(room.reaches[holder - 1]) or not exchange_if32(guard, holder, me):
        return False
    count_again(room, target)
    return True


cdef bint mend(const Room *room, int target) noexcept nogil:
    if not inherit_guard(room, target):
        return False
    release32(&state_of(room, target).guard, 0)
    return True


cdef void count_again(const Room *room, int target) noexcept nogil:
    """The last holder of the guard was killed: the counts may not be what the turns say."""
    cdef RankState *state = state_of(room, target)
    cdef uint64_t *turns = turns_of(room, target)
    cdef int rank
    state.exclusive = state.sharing = state.waiting = 0
    for rank in range(room.ranks):
        if turns[rank] == 0:
            continue
        if not turns[rank] & HELD:
            state.waiting += 1
        elif turns[rank] & KIND == LOCK_EXCLUSIVE:
            state.exclusive = rank + 1
        else:
            state.sharing += 1
    hand_over(room, state, turns)


cdef bint ask(const Room *room, int target, uint32_t kind) noexcept nogil:
    cdef RankState *state = state_of(room, target)
    cdef uint64_t *turn = &turns_of(room, target)[room.rank]
    cdef bint granted
    hold_guard(room, target)
    granted = state.waiting == 0 and state.exclusive == 0 and (kind != LOCK_EXCLUSIVE or state.sharing == 0)
    if not granted:
        state.tickets += 1
        state.waiting += 1
        release(turn, state.tickets * TICKET | kind)
    else:
        grant(state, turn, room.rank, kind)
    release32(&state.guard, 0)
    return granted


cdef void grant(RankState *state, uint64_t *turn, int rank, uint64_t kind) noexcept nogil:
    if kind == LOCK_EXCLUSIVE:
        state.exclusive = rank + 1
    else:
        state.sharing += 1
    release(turn, HELD | kind)


cdef void give_up(const Room *room, int target) noexcept nogil:
    cdef RankState *state = state_of(room, target)
    cdef uint64_t *turns = turns_of(room, target)
    cdef uint64_t turn
    hold_guard(room, target)
    turn = turns[room.rank]
    release(&turns[room.rank], 0)
    if not turn & HELD:
        state.waiting -= 1
    elif turn & KIND == LOCK_EXCLUSIVE:
        state.exclusive = 0
    else:
        state.sharing -= 1
    if state.waiting:
        hand_over(room, state, turns)
    release32(&state.guard, 0)


cdef void hand_over(const Room *room, RankState *state, uint64_t *turns) noexcept nogil:
    """To those who are next, as far as the lock is free for them; who has died while waiting has no turn."""
    cdef int rank, next_one
    cdef uint64_t kind
    while state.waiting and not state.exclusive:
        next_one = -1
        for rank in range(room.ranks):
            if turns[rank] and not turns[rank] & HELD and (next_one < 0 or turns[rank] < turns[next_one]):
                next_one = rank
        if next_one != room.rank and has_gone(room.reaches[next_one]):
            state.waiting -= 1
            release(&turns[next_one], 0)
            continue
        kind = turns[next_one] & KIND
        if kind == LOCK_EXCLUSIVE and state.sharing:
            break
        state.waiting -= 1
        grant(state, &turns[next_one], next_one, kind)


cdef int dead_holder(const Room *room, int target) noexcept nogil:
    cdef uint64_t *turns = turns_of(room, target)
    cdef int rank
    for rank in range(room.ranks):
        if rank != room.rank and acquire(&turns[rank]) & HELD and has_gone(room.reaches[rank]):
            return rank
    return -1
