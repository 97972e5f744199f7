# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Memory of targets that is not seen here.  See `remote.pxd`."""
import os

from libc.errno cimport EFAULT, ESRCH
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ompy.core.convertor cimport Convertor, Run, pack_all, unpack_all
from ompy.core.copying cimport copy_bytes, turn_around
from ompy.core.operation cimport Operation
from ompy.core.pace cimport Pace, note_pace, quickest
from ompy.core.clock cimport clock_now
from ompy.core.reach cimport MOST_PIECES, Piece, Reach, has_gone, is_ending, move, move_pieces
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.accumulate cimport NO_OP, REPLACE
from ompy.mca.osc cimport Access
from ompy_osc_sm.attached cimport Attached
from ompy_osc_sm.mailbox cimport (
    ABSORB, BOTH_SIDES, CARRIED_OUT, COMBINE, COMBINED, COPY_WAYS, FETCH, GATHER, GET, HALF, INWARD, KERNEL, LEAVING,
    LONGEST_FAR, LOST, MAILBOX, OUTWARD, PIECE, PULL, PUSH, PUT, REFUSED, REPLACING, ROOM, SCATTER, SHORT_HALF, SWAP, Far, Kind,
    Outbox, Outcome, Slot, balance, data_of, number_of, post, settle, share_of, size_number, slot_for,
)
from ompy_osc_sm.neighbours cimport Neighbour

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError

cdef enum:
    IMAGE = 65536                                # bytes read at once of what does not lie together
    NARROW = 1024                                # bytes that the kernel reads no later than it would begin another piece
    WAIT_FOR_BLOCK = 100                         # nanoseconds, for each that the kernel would write: it takes some 300 for it
    SHORTEST_TURNED = 262144                     # bytes that are copied from the end every second time
    JOINT = 16384                                # bytes from which on both sides copy


cdef inline void name_operation(Slot *slot, int number, Access access) noexcept:
    """Before each order that combines: another may have been in the slot since."""
    slot.operation = number
    slot.basic = access.target_type.basic


cdef class Remote(Attached):
    """Memory of targets that is not seen here."""

    # -- by the target ------------------------------------------------------------------------------------------------

    cdef bint is_done(self, Access access, Outbox *outbox, int64_t patience) except -1:
        """Whether the order that was posted has been carried out."""
        cdef Outcome outcome = settle(outbox, self.room.reaches[access.target], patience)
        if outcome == LOST:
            raise MPIError(ERR_PROC_FAILED, self.death_of(access.target))
        return outcome == CARRIED_OUT

    cdef int owe(self, Access access) except -1:
        cdef int target = access.target
        if not self.owed[target]:
            self.owed[target] = True
            self.owed_count += 1
        self.outbox_of(target).outstanding = True
        (<Neighbour> self.neighbours[target]).origin = access.origin_owner
        if access.requested:
            self.complete_order(target)
        return 0

    cdef int complete_order(self, int target) except -1:
        cdef Outbox *outbox = self.outbox_of(target)
        cdef Slot *slot = outbox.slot
        cdef Outcome outcome = settle(outbox, self.room.reaches[target], self.patience)
        cdef char *data
        try:
            outbox.outstanding = False
            if outcome == LOST:
                raise MPIError(ERR_PROC_FAILED, self.death_of(target))
            data = data_of(outbox.mailbox, slot, slot.size)
            if outcome == REFUSED:
                self.transfer(target, <size_t> (data if slot.kind == PUT else outbox.here), slot.address, slot.size,
                              slot.kind == GET)
            elif slot.kind == GET:
                copy_bytes(outbox.here, data, slot.size)
        finally:
            (<Neighbour> self.neighbours[target]).origin = None
        # What has gone with that may have made accesses, too.
        return self.settle_order(target)

    cdef int complete_orders(self, int target) except -1:
        cdef int owed
        for owed in range(max(target, 0), self.ranks if target < 0 else target + 1):
            if self.owed[owed]:
                self.owed[owed] = False
                self.owed_count -= 1
                self.settle_order(owed)
        return 0

    cdef size_t order_copy(self, Access access, Kind kind, char *here, size_t nbytes, bint turned) except? 0:
        """A put, get or accumulate piece by piece, the last one first if turned; how many bytes the target has done."""
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef Slot *slot = slot_for(outbox) if self.patience else NULL
        cdef uint64_t there = self.address_of(access)
        cdef size_t half = HALF if nbytes > 2 * SHORT_HALF else SHORT_HALF
        cdef size_t done = 0, piece = min(nbytes, half), following, at, next_at
        cdef bint second = False
        if slot == NULL:
            return 0
        at = nbytes - piece if turned else 0
        if kind != GET:
            copy_bytes(data_of(outbox.mailbox, slot, piece), here + at, piece)
        post(outbox, kind, there + at, piece)
        if piece == nbytes:
            outbox.here = here
            self.owe(access)
            return piece
        while piece:
            following = min(nbytes - done - piece, half)
            next_at = at - following if turned else at + piece
            if kind != GET:
                copy_bytes(data_of(outbox.mailbox, slot, following, not second), here + next_at, following)
            if not self.is_done(access, outbox, self.patience):
                break
            if following:
                post(outbox, kind, there + next_at, following, not second)
            if kind == GET:
                copy_bytes(here + at, data_of(outbox.mailbox, slot, piece, second), piece)
            done += piece
            piece = following
            at = next_at
            second = not second
        return done

    cdef bint order_update(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1:
        cdef size_t nbytes = access.target_count * access.target_type.size, total = 2 * nbytes if fetch else nbytes
        cdef Operation operation = access.operation if modify else NO_OP
        cdef uint64_t there = self.address_of(access)
        cdef int number = REPLACING if compare != NULL else number_of(operation, access.target_type, there)
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef const char *operand = packed if packed != NULL else <const char *> access.origin_address
        cdef Slot *slot
        cdef char *data
        if not self.patience or number < 0 or not access.target_type.contiguous:
            return False
        if total > SHORT_HALF and not fetch and compare == NULL and number != LEAVING:
            self.accumulate_run(access, number, operand, nbytes)
            return True
        if total > ROOM:
            return False
        slot = slot_for(outbox) if not fetch or access.result_type.contiguous else NULL
        if slot == NULL:
            return False
        name_operation(slot, number, access)
        data = data_of(outbox.mailbox, slot, total)
        if compare != NULL:
            copy_bytes(data, compare, nbytes)
            copy_bytes(data + nbytes, packed, nbytes)
        elif modify:
            copy_bytes(data, operand, nbytes)
        post(outbox, SWAP if compare != NULL else FETCH if fetch else COMBINE, there, nbytes)
        if not self.is_done(access, outbox, self.patience):
            return False
        if fetch:
            copy_bytes(<char *> access.result_address, data if compare != NULL else data + nbytes, nbytes)
        return True

    cdef int accumulate_run(self, Access access, int number, const char *operand, size_t nbytes) except -1:
        """A long one, the way that took the least time of late."""
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef Pace *pace = &outbox.paces[COMBINED][size_number(nbytes)]
        cdef int64_t begun = clock_now()
        cdef bint turned = nbytes >= SHORTEST_TURNED and turn_around()
        cdef size_t done = 0, absorbed = 0
        cdef Slot *slot = slot_for(outbox)
        if slot != NULL and quickest(pace, KERNEL) == MAILBOX:
            name_operation(slot, number, access)
            done = self.order_copy(access, COMBINE, <char *> operand, nbytes, turned)
        if done < nbytes:
            absorbed = self.combine_jointly(access, number, operand, 0 if turned else done, nbytes - done if turned else nbytes)
        if done == nbytes or done == 0 and absorbed:
            note_pace(pace, MAILBOX if done else BOTH_SIDES, nbytes, clock_now() - begun)
        return 0

    cdef size_t combine_jointly(self, Access access, int number, const char *operand, size_t done, size_t end) except? 0:
        """Each side makes a share; what the target, which reads the operand itself, does not do is done here."""
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef uint64_t there = self.address_of(access)
        cdef size_t piece, theirs, absorbed = 0
        cdef Slot *slot
        cdef bint carried_out
        while done < end:
            slot = slot_for(outbox)
            if slot == NULL:
                break
            piece = min(end - done, <size_t> LONGEST_FAR)
            theirs = piece if piece < JOINT else share_of(outbox, COMBINED, piece)
            name_operation(slot, number, access)
            self.name_memory(slot, <size_t> operand + done)
            post(outbox, ABSORB, there + done, theirs)
            try:
                self.combine_pieces(access, operand, done + theirs, done + piece)
                if theirs < piece:
                    balance(outbox, COMBINED, piece)
            finally:
                carried_out = self.is_done(access, outbox, self.patience)
            self.combine_pieces(access, operand, done + (slot.done if carried_out else 0), done + theirs)
            done += piece
            if not carried_out:
                break
            absorbed += slot.done
        self.combine_pieces(access, operand, done, end)
        return absorbed

    cdef void name_memory(self, Slot *slot, size_t here) noexcept:
        cdef Far *far = <Far *> &slot.data[0]
        far.here = here
        far.posted = clock_now()

    # -- by the kernel ------------------------------------------------------------------------------------------------

    cdef int copy_run(self, Access access, Kind kind, size_t here, size_t nbytes) except -1:
        """Bytes that lie together on both sides.  Many of them go the way that took the least time of late: that depends on
        how far the cores are from each other."""
        cdef Pace *pace = &self.outbox_of(access.target).paces[INWARD if kind == GET else OUTWARD][size_number(nbytes)]
        cdef bint long_one = nbytes > SHORT_HALF and self.patience
        cdef int64_t begun = clock_now() if long_one else 0
        cdef int way = quickest(pace, COPY_WAYS) if long_one else MAILBOX
        cdef bint turned = nbytes >= SHORTEST_TURNED and turn_around()
        cdef size_t done = self.order_copy(access, kind, <char *> here, nbytes, turned) if way == MAILBOX else 0
        cdef size_t helped = 0
        if done < nbytes:
            helped = self.copy_jointly(access, here, 0 if turned else done, nbytes - done, kind == GET, way != KERNEL)
        if long_one and done in (0, nbytes):
            note_pace(pace, MAILBOX if done else BOTH_SIDES if helped else KERNEL, nbytes, clock_now() - begun)
        return 0

    cdef size_t copy_jointly(self, Access access, size_t here, size_t begin, size_t nbytes, bint inward,
                             bint jointly) except? 0:
        """So many bytes from one on.  Where they are many and the target is there, each side copies a share, if so wished; how
        many of them the target has copied."""
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef Reach *reach = self.room.reaches[access.target]
        cdef uint64_t there = self.address_of(access) + begin
        cdef int transfer = INWARD if inward else OUTWARD
        cdef size_t piece, own, helped = 0
        cdef int error
        cdef Slot *slot
        cdef bint carried_out
        here += begin
        while jointly and nbytes >= JOINT and self.patience:
            slot = slot_for(outbox)
            if slot == NULL:
                break
            piece = min(nbytes, <size_t> LONGEST_FAR)
            own = piece - share_of(outbox, transfer, piece)
            self.name_memory(slot, here + own)
            post(outbox, PUSH if inward else PULL, there + own, piece - own)
            error = move(reach, here, there, own, inward)
            balance(outbox, transfer, piece)
            carried_out = self.is_done(access, outbox, 0) and slot.done
            if error or not carried_out and move(reach, here + own, there + own, piece - own, inward):
                break
            helped += piece - own if carried_out else 0
            here += piece
            there += piece
            nbytes -= piece
        if nbytes:
            self.transfer(access.target, here, there, nbytes, inward)
        return helped

    cdef int combine_pieces(self, Access access, const char *operand, size_t done, size_t end) except -1:
        """From byte `done` to byte `end`, all contiguous, read, combined and written back by this process.

        A part begins and ends at a basic element, which need not be one of the target's datatype.
        """
        cdef uint64_t there = self.address_of(access)
        cdef Typemap typemap = access.target_type if access.target_type.basic < 0 else predefined(access.target_type.basic)
        cdef size_t each = max(PIECE // typemap.size, <Py_ssize_t> 1) * typemap.size, piece
        cdef char *image
        if done >= end:
            return 0
        if access.operation is REPLACE:
            return self.transfer(access.target, <size_t> operand + done, there + done, end - done, False)
        image = room_for(min(each, end - done), access.target)
        try:
            while done < end:
                piece = min(each, end - done)
                self.transfer(access.target, <size_t> image, there + done, piece, True)
                access.operation.reduce(<char *> operand + done, image, piece // typemap.size, typemap)
                self.transfer(access.target, <size_t> image, there + done, piece, False)
                done += piece
        finally:
            free(image)
        return 0

    cdef int transfer(self, int target, size_t here, uint64_t there, size_t size, bint inward) except -1:
        return self.check_moved(move(self.room.reaches[target], here, there, size, inward), target, there, size, inward)

    cdef int check_moved(self, int error, int target, uint64_t there, size_t size, bint inward) except -1:
        cdef bint has_died
        if error == 0:
            return 0
        with nogil:
            has_died = error == ESRCH or has_gone(self.room.reaches[target]) or \
                error == EFAULT and is_ending(self.room.reaches[target])
        if has_died:
            raise MPIError(ERR_PROC_FAILED, self.death_of(target))
        way = "read" if inward else "written"
        raise MPIError(ERR_OTHER, f"{size} bytes at {there:#x} of rank {target} (process "
                                  f"{self.room.reaches[target].pid}) can't be {way}: {os.strerror(error)}")

    cdef int put_remote(self, Access access) except -1:
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        cdef char *packed
        self.settle_order(access.target)
        if access.origin_type.contiguous:
            return self.put_packed(access, <char *> access.origin_address, nbytes)
        packed = room_for(nbytes, access.target)
        try:
            pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, packed)
            self.put_packed(access, packed, nbytes)
        finally:
            free(packed)
        return 0

    cdef int put_packed(self, Access access, char *packed, Py_ssize_t nbytes) except -1:
        if access.target_type.contiguous:
            return self.copy_run(access, PUT, <size_t> packed, nbytes)
        return self.move_blocks(access, False, packed)

    cdef int get_remote(self, Access access, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        cdef Py_ssize_t nbytes = count * typemap.size
        cdef char *packed
        self.settle_order(access.target)
        if typemap.contiguous:
            return self.get_packed(access, <char *> address, nbytes)
        packed = room_for(nbytes, access.target)
        try:
            self.get_packed(access, packed, nbytes)
            self.settle_order(access.target)
            unpack_all(packed, nbytes, <char *> address, count, typemap)
        finally:
            free(packed)
        return 0

    cdef int get_packed(self, Access access, char *packed, Py_ssize_t nbytes) except -1:
        if access.target_type.contiguous:
            return self.copy_run(access, GET, <size_t> packed, nbytes)
        return self.move_blocks(access, True, packed)

    # -- blocks -------------------------------------------------------------------------------------------------------

    cdef int move_blocks(self, Access access, bint inward, char *packed) except -1:
        cdef Convertor convertor = Convertor()
        convertor.prepare(<char *> self.address_of(access), access.target_count, access.target_type)
        if self.patience:
            self.order_blocks(access, convertor, inward, packed)
        if inward:
            self.read_blocks(access, convertor, packed)
        return self.transfer_blocks(access.target, convertor, inward, packed)

    cdef int order_blocks(self, Access access, Convertor convertor, bint inward, char *packed) except -1:
        cdef Outbox *outbox = self.outbox_of(access.target)
        cdef Py_ssize_t begun, nbytes, left
        cdef size_t count
        cdef int64_t patience
        cdef char *blocks
        cdef Run *runs
        cdef Slot *slot
        while convertor.position < convertor.total:
            slot = slot_for(outbox)
            if slot == NULL:
                break
            begun = convertor.position
            runs = <Run *> data_of(outbox.mailbox, slot, ROOM)
            count = 0
            patience = self.patience
            left = ROOM
            while left > <Py_ssize_t> sizeof(Run):
                nbytes = convertor.next_run(left - sizeof(Run), &runs[count])
                if nbytes == 0:
                    break
                left -= sizeof(Run) + nbytes
                patience += 0 if inward else WAIT_FOR_BLOCK * runs[count].count
                count += 1
            blocks = <char *> (runs + count)
            nbytes = convertor.position - begun
            if not inward:
                copy_bytes(blocks, packed + begun, nbytes)
            post(outbox, GATHER if inward else SCATTER, count, count * sizeof(Run) + nbytes)
            if not self.is_done(access, outbox, patience):
                convertor.go_to(begun)
                break
            if inward:
                copy_bytes(packed + begun, blocks, nbytes)
        return 0

    cdef int read_blocks(self, Access access, Convertor convertor, char *packed) except -1:
        """Stretches with what lies between their blocks, as many as an image has room for in one call of the kernel's.

            there   | 1.2.3....  ...  4.5.6. |         .   up to NARROW bytes, in pages that hold blocks
            image   | 1.2.34.5.6 |

        It ends where a block can't be read.
        """
        cdef Piece pieces[MOST_PIECES]
        cdef Convertor behind = Convertor()
        cdef char *image = NULL
        cdef size_t count, filled
        cdef Py_ssize_t begun
        cdef Run run
        behind.prepare(<char *> self.address_of(access), access.target_count, access.target_type)
        try:
            while convertor.position < convertor.total:
                begun = convertor.position
                count = filled = 0
                while convertor.next_run(convertor.total, &run):
                    if not append_run(&run, pieces, &count, &filled):
                        convertor.go_to(convertor.position - run.count * run.length)
                        break
                if count == 0:                   # longer than an image is to be
                    convertor.next_run(run.length, &run)
                    self.transfer(access.target, <size_t> packed + begun, <uint64_t> run.place, run.length, True)
                    continue
                if image == NULL:
                    image = room_for(IMAGE, access.target)
                if move_pieces(self.room.reaches[access.target], <size_t> image, pieces, count, True):
                    convertor.go_to(begun)
                    break
                behind.go_to(begun)
                gather_image(behind, convertor.position, image, packed)
        finally:
            free(image)
        return 0

    cdef int transfer_blocks(self, int target, Convertor convertor, bint inward, char *packed) except -1:
        """Many of them in one call of the kernel's."""
        cdef Piece pieces[MOST_PIECES]
        cdef Run run
        cdef Py_ssize_t block, begun = convertor.position, end
        cdef size_t count = 0
        while True:
            end = convertor.position
            if convertor.next_run(convertor.total, &run) == 0:
                run.count = 0
            for block in range(run.count):
                if count == MOST_PIECES:
                    self.check_moved(move_pieces(self.room.reaches[target], <size_t> packed + begun, pieces, count, inward),
                                     target, pieces[0].address, end - begun, inward)
                    begun = end
                    count = 0
                pieces[count].address = <uint64_t> (run.place + block * run.stride)
                pieces[count].size = run.length
                count += 1
                end += run.length
            if run.count == 0:
                break
        if count:
            self.check_moved(move_pieces(self.room.reaches[target], <size_t> packed + begun, pieces, count, inward), target,
                             pieces[0].address, end - begun, inward)
        return 0


cdef inline bint joins(uint64_t place, uint64_t end) noexcept nogil:
    """Whether a block is read together with what ends there."""
    return end <= place <= end + NARROW


cdef bint append_run(Run *run, Piece *pieces, size_t *count, size_t *filled) noexcept nogil:
    """As many of its blocks as there is room for are named, the others taken off it; whether it was all of them."""
    cdef Py_ssize_t block
    cdef uint64_t place, end
    cdef size_t added
    cdef bint joined
    for block in range(run.count):
        place = <uint64_t> (run.place + block * run.stride)
        end = pieces[count[0] - 1].address + pieces[count[0] - 1].size if count[0] else 0
        joined = count[0] and joins(place, end)
        added = place - end + run.length if joined else run.length
        if run.length > IMAGE // 2 or filled[0] + added > IMAGE or not joined and count[0] == MOST_PIECES:
            run.count -= block
            return False
        if joined:
            pieces[count[0] - 1].size += added
        else:
            pieces[count[0]] = Piece(place, added)
            count[0] += 1
        filled[0] += added
    return True


cdef void gather_image(Convertor convertor, Py_ssize_t last, const char *image, char *packed) noexcept nogil:
    """The blocks up to a position, which was read in one call."""
    cdef uint64_t place, end = 0
    cdef Py_ssize_t block
    cdef Run run
    cdef char *target = packed + convertor.position
    while convertor.next_run(last - convertor.position, &run):
        for block in range(run.count):
            place = <uint64_t> (run.place + block * run.stride)
            image += place - end if end and joins(place, end) else 0
            memcpy(target, image, run.length)
            target += run.length
            image += run.length
            end = place + run.length


cdef char *room_for(Py_ssize_t nbytes, int target) except NULL:
    cdef char *memory = <char *> malloc(nbytes)
    if memory == NULL:
        raise MemoryError(f"no memory for {nbytes} bytes of rank {target}")
    return memory
