# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Put, get and accumulates by remote memory access.  See `accesses.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

from ompy.core.basic cimport basics
from ompy.core.board cimport WIN_FLUSH
from ompy.core.convertor cimport Convertor, Run, copy_typed, pack_all, unpack_all
from ompy.core.request cimport Request
from ompy.core.signals cimport keep_exceptions, raise_kept
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.accumulate cimport NO_OP, REPLACE, check_operation, combine_packed
from ompy.mca.osc cimport Access
from ompy.mca.pieces cimport Pieces, pieces_of
from ompy.mca.remote_window.attached cimport Attached
from ompy.mca.btl cimport Descriptor
from ompy.mca.remote_window.ways cimport (
    COMBINING, GATHER, HOLDER_BITS, HOLDERS, NUMBER_BITS, SCATTER, Key, Way, new_descriptor, number_in,
)

from ompy.core.errors import MPIError

cdef uint64_t ONE_DRAWN = <uint64_t> 1 << (HOLDER_BITS + NUMBER_BITS)
cdef uint64_t ONE_SERVED = <uint64_t> 1 << HOLDER_BITS
cdef uint64_t HOLDER = ONE_SERVED - 1
cdef uint64_t LAST_NUMBER = (<uint64_t> 1 << NUMBER_BITS) - 1
# Looks at whose turn it is, before one at all who have drawn a number.
cdef int ROUNDS_BETWEEN = 16
# Rounds of `pause` up to which it is for some microseconds.
cdef int SHORT_PAUSES = 60
# Tries to be quicker than the others, before a number is drawn: some milliseconds.  Where ranks outnumber cores whoever runs
# gets a hundred turns in the time that handing over takes.  Who had to draw draws for its next turns as well: a swap that
# was refused is tried again before the others have changed the word many times.
cdef int MOST_TRIES = 80
cdef int NUMBERS_AT_ONCE = 16
cdef enum:
    # Bytes at most that are read before it is known whose turn it is.
    AT_ONCE = 4096
    # Of a message about blocks.
    LONGEST_MESSAGE = 65536


cdef class Accesses(Attached):
    """How this rank reads and writes the others' memory."""

    cpdef Request put(self, Access access):
        """Write to the target's memory."""
        cdef Key key
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        key = self.key_for(access)
        if key is None:
            copy_typed(<char *> access.origin_address, access.origin_count, access.origin_type,
                       <char *> self.place_of(access), access.target_count, access.target_type)
            return None
        if key.parts is None and access.origin_type.contiguous and access.target_type.contiguous:
            self.begin(self.ways[access.target], key, False, access.origin_address, self.place_of(access), nbytes, access.owner)
            return self.ended(access)
        packed = bytearray(nbytes)
        pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        self.move_packed(access, key, False, PyByteArray_AS_STRING(packed), packed)
        return None

    cpdef Request get(self, Access access):
        """Read the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes:
            self.bring(access, access.origin_address, access.origin_count, access.origin_type)
        return self.ended(access)

    cdef Request ended(self, Access access):
        """Who wants a request waits here."""
        if access.requested:
            self.finish(access.target, True)
        return None

    cdef int bring(self, Access access, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        cdef Key key = self.key_for(access)
        cdef Py_ssize_t nbytes = count * typemap.size
        if key is None:
            return copy_typed(<char *> self.place_of(access), access.target_count, access.target_type, <char *> address, count,
                              typemap)
        if key.parts is None and typemap.contiguous and access.target_type.contiguous:
            return self.begin(self.ways[access.target], key, True, address, self.place_of(access), nbytes, access.owner)
        packed = bytearray(nbytes)
        self.move_packed(access, key, True, PyByteArray_AS_STRING(packed), packed)
        self.finish(access.target, True)
        return unpack_all(PyByteArray_AS_STRING(packed), nbytes, <char *> address, count, typemap)

    cdef uint64_t place_of(self, Access access):
        cdef Way way = self.ways[access.target]
        return way.base + access.displacement * self.window.units[access.target]

    cdef int move_packed(self, Access access, Key key, bint inward, char *packed, object owner) except -1:
        cdef Convertor convertor = Convertor()
        cdef char *stretch = NULL
        cdef Py_ssize_t length
        cdef Way way = self.ways[access.target]
        if key.parts is not None:
            return self.move_parts(access, key, inward, packed, owner)
        if access.target_type.contiguous:        # of which a stretch is one element
            return self.begin(way, key, inward, <size_t> packed, self.place_of(access),
                              access.target_count * access.target_type.size, owner)
        convertor.prepare(<char *> self.place_of(access), access.target_count, access.target_type)
        if key.btl is way.layer and key.put_limit > 2 * sizeof(Run):
            return self.move_runs(way, key, inward, convertor, packed, owner)
        while True:
            length = convertor.stretch(&stretch)
            if length == 0:
                return 0
            self.begin(way, key, inward, <size_t> (packed + convertor.position), <uint64_t> stretch, length, owner)
            convertor.seek(convertor.position + length)

    cdef int move_parts(self, Access access, Key key, bint inward, char *packed, object owner) except -1:
        cdef Pieces pieces = pieces_of(access.displacement, access.target_count, access.target_type)
        cdef Way way = self.ways[access.target]
        cdef Key part = None
        cdef size_t here
        cdef uint64_t there
        parts = iter(key.parts)
        while pieces.length:
            if part is None or pieces.address - part.address >= part.size:
                part = next(parts)
            here, there = <size_t> (packed + pieces.position), pieces.address
            self.begin(way, part, inward, here, there, pieces.leave(part.address, part.size), owner)
        return 0

    cdef int move_runs(self, Way way, Key key, bint inward, Convertor convertor, char *packed, object owner) except -1:
        cdef Py_ssize_t room = min(key.put_limit, <size_t> LONGEST_MESSAGE), left, nbytes, begun
        cdef bytearray body
        cdef Run *runs
        cdef size_t count
        cdef Descriptor descriptor
        while convertor.position < convertor.total:
            begun = convertor.position
            body = bytearray(room)
            runs = <Run *> PyByteArray_AS_STRING(body)
            count = 0
            left = room
            while left > <Py_ssize_t> sizeof(Run):
                nbytes = convertor.next_run(left - sizeof(Run), &runs[count])
                if nbytes == 0:
                    break
                left -= sizeof(Run) + nbytes
                count += 1
            nbytes = convertor.position - begun
            if inward:
                descriptor = new_descriptor(way, key, <size_t> (packed + begun), <uint64_t> runs, nbytes, (owner, body))
                self.launch(way, key, GATHER, descriptor, None, count, 0)
            else:
                memcpy(runs + count, packed + begun, nbytes)
                descriptor = new_descriptor(way, key, <size_t> runs, 0, count * sizeof(Run) + nbytes, body)
                self.launch(way, key, SCATTER, descriptor, None, count, 0)
        return 0

    # -- accumulates ------------------------------------------------------------------------------------------------------

    cpdef Request accumulate(self, Access access):
        """Combine the origin's data into the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        check_operation(access)
        packed = bytearray(nbytes)
        pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        self.update(access, False, PyByteArray_AS_STRING(packed), NULL)
        return None

    cpdef Request get_accumulate(self, Access access):
        """Combine, and fetch what was there before; with NO_OP the origin's side is not looked at."""
        cdef bint reads = access.operation is NO_OP
        cdef Py_ssize_t nbytes = access.result_count * access.result_type.size
        self.may_access(access, nbytes)
        if not reads:
            self.may_access(access, access.origin_count * access.origin_type.size)
        if nbytes == 0:
            return None
        packed = bytearray(0 if reads else nbytes)
        if not reads:
            check_operation(access)
            pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        self.update(access, True, NULL if reads else PyByteArray_AS_STRING(packed), NULL)
        return None

    cpdef Request compare_and_swap(self, Access access):
        """Replace one element if it equals another, and fetch what was there."""
        cdef Py_ssize_t nbytes = access.origin_type.size
        access.target_count = access.result_count = 1
        access.target_type = access.result_type = access.origin_type
        self.may_access(access, nbytes)
        pair = bytearray(2 * nbytes)
        pack_all(<char *> access.compare_address, 1, access.origin_type, PyByteArray_AS_STRING(pair))
        pack_all(<char *> access.origin_address, 1, access.origin_type, PyByteArray_AS_STRING(pair) + nbytes)
        self.update(access, True, PyByteArray_AS_STRING(pair) + nbytes, PyByteArray_AS_STRING(pair))
        return None

    cdef int update(self, Access access, bint fetch, const char *packed, const char *compare) except -1:
        """Fetch what there is; change it to `packed` where it is `compare`, or by the operation; NULL: leave it."""
        cdef uint64_t mine
        cdef Key key
        cdef bytearray elements = bytearray(access.target_count * access.target_type.size)
        keep_exceptions()
        try:
            key = self.key_for(access)
            if key is not None and (fetch or compare != NULL or access.operation is not REPLACE):
                mine = self.take_turn_and_read(access, key, elements)
            else:
                mine = self.take_turn(access.target)
            try:
                self.update_alone(access, key, elements, fetch, <size_t> packed, <size_t> compare)
            finally:
                self.give_turn(access.target, mine)
        finally:
            raise_kept()
        return 0

    cdef bint keeps_order(self, Access access, Key key, Py_ssize_t nbytes):
        cdef Way way = self.ways[access.target]
        return key.btl is way.state.btl and <size_t> nbytes <= min(way.in_order, <size_t> AT_ONCE)

    cdef uint64_t take_turn_and_read(self, Access access, Key key, bytearray elements) except? 0:
        cdef uint64_t mine = ONE_DRAWN | <uint64_t> (self.rank + 1)
        cdef bytearray before
        if self.keeps_order(access, key, len(elements)):
            before = self.begin_change(access.target, COMBINING, "cswap", <int64_t> mine, 0)
            try:
                self.read(access, key, elements)
            except BaseException:
                self.give_turn_if_taken(access.target, mine, before)
                raise
            if number_in(before) == 0:
                self.numbers_due = max(0, self.numbers_due - 1)
                return mine
        mine = self.take_turn(access.target)
        try:
            self.read(access, key, elements)
        except BaseException:
            self.give_turn(access.target, mine)
            raise
        return mine

    cdef int read(self, Access access, Key key, bytearray elements) except -1:
        self.move_packed(access, key, True, PyByteArray_AS_STRING(elements), elements)
        return self.finish(access.target, True)

    def give_turn_if_taken(self, int target, uint64_t mine, bytearray before):
        """Amid an error, when the swap may still be under way."""
        try:
            self.finish(target, True)
        except MPIError:
            pass                                 # told by the error that is there
        if number_in(before) == 0:
            self.give_turn(target, mine)

    cdef uint64_t take_turn(self, int target) except? 0:
        cdef uint64_t mine = ONE_DRAWN | <uint64_t> (self.rank + 1), number, served = 0
        cdef bytearray read = bytearray(8 * (<int> HOLDERS + 4 * self.ranks))
        cdef int64_t *words = <int64_t *> PyByteArray_AS_STRING(read)
        cdef int round = 0
        while True:
            words[<int> COMBINING] = self.change(target, COMBINING, "cswap", <int64_t> mine, 0)
            if words[<int> COMBINING] == 0:
                self.numbers_due = max(0, self.numbers_due - 1)
                return mine
            if round == MOST_TRIES:
                self.numbers_due = NUMBERS_AT_ONCE
            if self.numbers_due:
                break
            self.require_living_combiners(target, words)
            self.pause(round, target, WIN_FLUSH)
            round += 1
        self.numbers_due -= 1
        self.change(target, HOLDERS + 3 * self.ranks + self.rank, "add", 1, 0)
        number = <uint64_t> self.change(target, COMBINING, "add", <int64_t> ONE_DRAWN, 0) >> (HOLDER_BITS + NUMBER_BITS)
        round = 0
        while True:
            self.look(target, HOLDERS + 4 * self.ranks if round % ROUNDS_BETWEEN == ROUNDS_BETWEEN - 1 else 1, read)
            served = <uint64_t> words[<int> COMBINING] >> HOLDER_BITS & LAST_NUMBER
            if served == number:
                return (number + 1) << (HOLDER_BITS + NUMBER_BITS) | number << HOLDER_BITS
            self.require_living_combiners(target, words)
            # The next one keeps an eye on it, so that a turn does not wait for a sleeper.
            self.pause(min(round, SHORT_PAUSES) if number == served + 1 else round, target, WIN_FLUSH)
            round += 1

    cdef int require_living_combiners(self, int target, const int64_t *words) except -1:
        cdef int holder = <int> (<uint64_t> words[<int> COMBINING] & HOLDER), rank
        cdef str doing = f"in an accumulate into the memory of rank {target}"
        if holder:
            self.require_alive(holder - 1, doing)
        for rank in range(self.ranks):
            if words[<int> HOLDERS + 3 * self.ranks + rank] and rank != self.rank:
                self.require_alive(rank, doing)
        return 0

    cdef int give_turn(self, int target, uint64_t mine) except -1:
        cdef uint64_t served = ONE_SERVED
        cdef uint64_t holder = mine & HOLDER
        cdef bytearray before
        if holder == 0:
            self.begin_change(target, HOLDERS + 3 * self.ranks + self.rank, "add", -1, 0)
            self.keep_order(target)
        before = self.begin_change(target, COMBINING, "cswap", 0, <int64_t> mine)
        try:
            self.finish(target, True)
        finally:
            if <uint64_t> number_in(before) != mine:
                if mine >> HOLDER_BITS & LAST_NUMBER == LAST_NUMBER:
                    served -= ONE_DRAWN          # what is carried over into the field above
                self.change(target, COMBINING, "add", <int64_t> (served - holder), 0)
        return 0

    def update_alone(self, Access access, Key key, bytearray here, bint fetch, size_t packed, size_t compare):
        cdef Py_ssize_t nbytes = len(here)
        cdef char *place = <char *> self.place_of(access)
        cdef char *elements = PyByteArray_AS_STRING(here)
        if key is None:
            pack_all(place, access.target_count, access.target_type, elements)
        if fetch:
            unpack_all(elements, nbytes, <char *> access.result_address, access.result_count, access.result_type)
        if packed == 0 or (compare and memcmp(elements, <char *> compare, nbytes) != 0):
            return
        if compare or access.operation is REPLACE:
            memcpy(elements, <char *> packed, nbytes)
        elif access.operation is not NO_OP:
            combine_packed(access.operation, <char *> packed, elements, nbytes // basics[access.target_type.basic].size,
                           predefined(access.target_type.basic))
        if key is None:
            unpack_all(elements, nbytes, place, access.target_count, access.target_type)
        else:
            self.move_packed(access, key, False, elements, here)
            if not self.keeps_order(access, key, nbytes):
                self.finish(access.target, False)
