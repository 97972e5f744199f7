# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The dynamic block's heap.  Pictured in `heap.pxd`."""
from libc.string cimport memmove, memset

from ompy_puma.match_list cimport matches

cdef enum:
    UNIT = 16                                    # blocks begin and end at multiples of it


cdef inline FreeBlock *free_block(char *start, uint64_t place) noexcept nogil:
    return <FreeBlock *> (start + place)


cdef inline Letter *letter_at(char *start, uint64_t place) noexcept nogil:
    return <Letter *> (start + place) if place else NULL


cdef inline uint64_t place_of(char *start, const void *block) noexcept nogil:
    return <uint64_t> (<const char *> block - start)


cdef int format_heap(char *start, uint64_t length) except -1:
    cdef Heap *heap = <Heap *> start
    cdef uint64_t space
    if <size_t> start % UNIT:
        raise ValueError(f"a heap begins at a multiple of {UNIT} bytes, not at {<size_t> start:#x}")
    if length < sizeof(Heap) + sizeof(Letter):
        raise ValueError(f"a heap of {length} bytes holds no letter: {sizeof(Heap) + sizeof(Letter)} are the least")
    space = (length - sizeof(Heap)) // UNIT * UNIT
    memset(heap, 0, sizeof(Heap))
    heap.length = length
    heap.free = sizeof(Heap)
    free_block(start, heap.free).next = 0
    free_block(start, heap.free).size = space
    return 0


# -- the owner's side

cdef Letter *oldest_letter(char *start) noexcept nogil:
    return letter_at(start, (<Heap *> start).oldest)


cdef Letter *newer_letter(char *start, Letter *letter) noexcept nogil:
    return letter_at(start, letter.newer)


cdef Letter *find_letter(char *start, const MatchEntry *entry) noexcept nogil:
    cdef Letter *letter = oldest_letter(start)
    while letter != NULL and not matches(entry, &letter.header):
        letter = letter_at(start, letter.newer)
    return letter


cdef void detach_letter(char *start, Letter *letter) noexcept nogil:
    cdef Heap *heap = <Heap *> start
    if not letter.listed:
        return
    if letter.older:
        letter_at(start, letter.older).newer = letter.newer
    else:
        heap.oldest = letter.newer
    if letter.newer:
        letter_at(start, letter.newer).older = letter.older
    else:
        heap.newest = letter.older
    heap.letters -= 1
    letter.listed = 0


cdef void release_letter(char *start, Letter *letter) noexcept nogil:
    cdef Heap *heap = <Heap *> start
    cdef uint64_t place = place_of(start, letter)
    cdef uint64_t size = letter.size
    cdef uint64_t before = 0
    cdef uint64_t after = heap.free
    detach_letter(start, letter)
    heap.used -= size
    while after and after < place:
        before = after
        after = free_block(start, after).next
    if after == place + size:
        size += free_block(start, after).size
        after = free_block(start, after).next
    if before and before + free_block(start, before).size == place:
        free_block(start, before).size += size
        free_block(start, before).next = after
        return
    free_block(start, place).size = size
    free_block(start, place).next = after
    if before:
        free_block(start, before).next = place
    else:
        heap.free = place


# -- the kernel's side

cdef inline bint is_block(uint64_t place, uint64_t size, uint64_t length) noexcept nogil:
    """Whether `size` bytes at `place` lie in the heap, behind its head."""
    return place % UNIT == 0 and place >= sizeof(Heap) and place <= length and size <= length - place


cdef Letter *allocate_letter(char *start, uint64_t length, uint64_t body, bint *broken) noexcept nogil:
    cdef Heap *heap = <Heap *> start
    cdef FreeBlock *block
    cdef Letter *letter
    cdef uint64_t needed, rest
    cdef uint64_t before = 0
    cdef uint64_t place = heap.free
    cdef uint64_t after
    broken[0] = heap.length != length or (heap.newest and not is_block(heap.newest, sizeof(Letter), length))
    if broken[0] or body > length:
        return NULL
    needed = letter_size(body)
    while place:
        broken[0] = place <= before or not is_block(place, sizeof(FreeBlock), length)
        if broken[0]:
            return NULL
        block = free_block(start, place)
        broken[0] = block.size % UNIT != 0 or block.size == 0 or not is_block(place, block.size, length)
        if broken[0]:
            return NULL
        if block.size >= needed:
            break
        before = place
        place = block.next
    if place == 0:
        return NULL
    after = block.next
    rest = block.size - needed
    if rest:
        after = place + needed
        free_block(start, after).next = block.next
        free_block(start, after).size = rest
    if before:
        free_block(start, before).next = after
    else:
        heap.free = after
    letter = letter_at(start, place)
    letter.size = needed
    letter.older = heap.newest
    letter.newer = 0
    letter.state = LETTER_ARRIVING
    letter.listed = 1
    letter.length = body
    if heap.newest:
        letter_at(start, heap.newest).newer = place
    else:
        heap.oldest = place
    heap.newest = place
    heap.letters += 1
    heap.used += needed
    if heap.used > heap.most_used:
        heap.most_used = heap.used
    return letter


cdef bint compact_heap(char *start, uint64_t length) noexcept nogil:
    """Blocks stand side by side from the head to the end: walk them by address, letters towards the front.

        | L1 |  free  | L2 | L3 (arriving) | free |  ->  | L1 | L2 |  free  | L3 | free |

    A letter whose body is still arriving stays where it is, since pieces are on their way to its address.
    """
    cdef Heap *heap = <Heap *> start
    cdef Letter *letter
    cdef uint64_t end = sizeof(Heap) + (length - sizeof(Heap)) // UNIT * UNIT
    cdef uint64_t place = sizeof(Heap)
    cdef uint64_t target = place
    cdef uint64_t free = heap.free
    cdef uint64_t last = 0                       # free block made last
    cdef uint64_t size
    if free == 0 or not whole_blocks(start, length, end):
        return False
    heap.free = 0
    while place < end:
        if place == free:
            size = free_block(start, place).size
            free = free_block(start, place).next
            place += size
            continue
        letter = letter_at(start, place)
        size = letter.size
        if letter.state == LETTER_ARRIVING or target == place:
            if target != place:
                last = put_free(start, heap, last, target, place - target)
            target = place + size
        else:
            if letter.listed:
                if letter.older:
                    letter_at(start, letter.older).newer = target
                else:
                    heap.oldest = target
                if letter.newer:
                    letter_at(start, letter.newer).older = target
                else:
                    heap.newest = target
            memmove(start + target, letter, size)
            target += size
        place += size
    if target != end:
        put_free(start, heap, last, target, end - target)
    return True


cdef uint64_t put_free(char *start, Heap *heap, uint64_t before, uint64_t place, uint64_t size) noexcept nogil:
    """Appends a free block behind `before`, the last one so far; returns it."""
    free_block(start, place).next = 0
    free_block(start, place).size = size
    if before:
        free_block(start, before).next = place
    else:
        heap.free = place
    return place


cdef bint whole_blocks(char *start, uint64_t length, uint64_t end) noexcept nogil:
    """Whether blocks stand side by side up to the end, and every link between letters stays in the heap."""
    cdef Heap *heap = <Heap *> start
    cdef Letter *letter
    cdef uint64_t place = sizeof(Heap)
    cdef uint64_t free = heap.free
    cdef uint64_t size
    while place < end:
        if place == free:
            size = free_block(start, place).size
            free = free_block(start, place).next
            if free and free <= place:
                return False
        else:
            if not is_block(place, sizeof(Letter), length):
                return False
            letter = letter_at(start, place)
            size = letter.size
            if size < sizeof(Letter):
                return False
            if letter.older and not is_block(letter.older, sizeof(Letter), length):
                return False
            if letter.newer and not is_block(letter.newer, sizeof(Letter), length):
                return False
        if size == 0 or size % UNIT or size > end - place:
            return False
        place += size
    return free == 0
