# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Memory of another process on this host.  See `reach.pxd`."""
import os

from libc.errno cimport ESRCH
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from ompy.core.atomic cimport exchange_if32, release32
from ompy.core.clock cimport clock_now, rest_for
from ompy.core.copying cimport copy_bytes, string_is_slow

cdef extern from *:
    """
    #include <errno.h>
    #include <poll.h>
    #include <signal.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/uio.h>
    #include <time.h>

    #ifndef PR_SET_PTRACER
    #define PR_SET_PTRACER 0x59616d61
    #endif
    #ifndef PR_SET_PTRACER_ANY
    #define PR_SET_PTRACER_ANY ((unsigned long) -1)
    #endif

    static int ompy_allow_peers(void) { return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

    /* A transfer may stop half-way: go on behind it. */
    static int ompy_transfer(int pid, size_t local, size_t remote, size_t size, int writing) {
        while (size) {
            struct iovec here = {(void *) local, size}, there = {(void *) remote, size};
            ssize_t moved = writing ? process_vm_writev(pid, &here, 1, &there, 1, 0)
                                    : process_vm_readv(pid, &here, 1, &there, 1, 0);
            if (moved < 0 && errno == EINTR)
                continue;
            if (moved <= 0)
                return moved ? errno : EFAULT;
            local += moved;
            remote += moved;
            size -= moved;
        }
        return 0;
    }

    /* Long ones from the end every second time, as `ompy_copy_long` does: the kernel copies piece after piece, as they are
       named.  Of a transfer that stops half-way what is left lies before the pieces that have been moved whole. */
    #define OMPY_TURNING_SMALLEST (256 << 10)
    #define OMPY_TURNING_PIECE ((size_t) 64 << 10)
    #define OMPY_TURNING_PIECES 64

    static int ompy_transfer_turning(int pid, size_t local, size_t remote, size_t size, int writing) {
        struct iovec here[OMPY_TURNING_PIECES], there[OMPY_TURNING_PIECES];
        if (size < OMPY_TURNING_SMALLEST || !ompy_turn_around())
            return ompy_transfer(pid, local, remote, size, writing);
        while (size) {
            size_t count, at = size;
            ssize_t moved;
            for (count = 0; at && count < OMPY_TURNING_PIECES; count++) {
                size_t piece = at < OMPY_TURNING_PIECE ? at : OMPY_TURNING_PIECE;
                at -= piece;
                here[count].iov_base = (void *) (local + at);
                there[count].iov_base = (void *) (remote + at);
                here[count].iov_len = there[count].iov_len = piece;
            }
            moved = writing ? process_vm_writev(pid, here, count, there, count, 0)
                            : process_vm_readv(pid, here, count, there, count, 0);
            if (moved < (ssize_t) OMPY_TURNING_PIECE && moved < (ssize_t) size)
                return ompy_transfer(pid, local, remote, size, writing);
            size -= (size_t) moved < size ? moved - moved % OMPY_TURNING_PIECE : size;
        }
        return 0;
    }

    /* To or from several places there; what has been moved is taken off the first of them. */
    static int ompy_transfer_pieces(int pid, size_t local, struct iovec *pieces, size_t count, size_t size, int writing) {
        while (count) {
            struct iovec here = {(void *) local, size};
            ssize_t moved = writing ? process_vm_writev(pid, &here, 1, pieces, count, 0)
                                    : process_vm_readv(pid, &here, 1, pieces, count, 0);
            if (moved < 0 && errno == EINTR)
                continue;
            if (moved <= 0)
                return moved ? errno : EFAULT;
            local += moved;
            size -= moved;
            for (; count && (size_t) moved >= pieces->iov_len; pieces++, count--)
                moved -= pieces->iov_len;
            if (count) {
                pieces->iov_base = (char *) pieces->iov_base + moved;
                pieces->iov_len -= moved;
            }
        }
        return 0;
    }

    static int ompy_is_readable(int descriptor) {
        struct pollfd one = {descriptor, POLLIN, 0};
        return poll(&one, 1, 0) > 0;
    }
    static int ompy_is_alive(int pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

    static int64_t ompy_time(int pid, char *to, char *from, size_t size, int by_kernel) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (by_kernel)
            ompy_transfer(pid, (size_t) to, (size_t) from, size, 0);
        else
            memcpy(to, from, size);
        clock_gettime(CLOCK_MONOTONIC, &end);
        return (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
    }
    """
    int64_t time_of "ompy_time"(int pid, char *to, char *origin, size_t size, bint by_kernel) noexcept nogil
    int set_ptracer_any "ompy_allow_peers"() noexcept nogil
    int transfer "ompy_transfer"(int pid, size_t local, size_t remote, size_t size, bint writing) noexcept nogil
    int transfer_turning "ompy_transfer_turning"(int pid, size_t local, size_t remote, size_t size, bint writing) noexcept nogil
    int transfer_pieces "ompy_transfer_pieces"(int pid, size_t local, void *pieces, size_t count, size_t size,
                                               bint writing) noexcept nogil
    bint is_alive "ompy_is_alive"(int pid) noexcept nogil
    bint is_readable "ompy_is_readable"(int descriptor) noexcept nogil

cdef enum:
    PAGE = 4096
    DETOUR = 65536                               # bytes of one piece
    LONGEST_ENDING = 1000000000                  # nanoseconds
    PAUSE = 100000                               # nanoseconds between two looks whether it has gone
cdef char detour[DETOUR + PAGE]
cdef uint32_t detour_taken = 0                   # one thread at a time; another one does without

YAMA = "/proc/sys/kernel/yama/ptrace_scope"

cdef size_t PROBE_SIZE = 65536
cdef int PROBES = 4
# Through the ring two processes copy at the same time, each at about the speed of memcpy, and hand over a fragment now
# and then: one copy that is slower than this many memcpys is not worth having.
cdef double RING_COST = 1.5
# Where they have to take turns on a core, they do each time that the ring is full.
cdef double CROWDED_RING_COST = 6


cpdef str refusal():
    """Why this process can't use it, or None."""
    probe = b"8 bytes."
    cdef size_t address = <size_t> <char *> probe
    cdef char copy[8]
    cdef int error = transfer(os.getpid(), <size_t> copy, address, 8, False)
    if error:
        return f"process_vm_readv: {os.strerror(error)}"
    try:
        with open(YAMA) as scope:
            level = int(scope.read())
    except (OSError, ValueError):
        return None                              # no Yama: peers of the same user may
    if level >= 2 and os.geteuid() != 0:
        return f"{YAMA} is {level}: only administrators may read another process's memory"
    return None


cpdef bint pays(bint crowded=False) except -1:
    """Whether the kernel copies quickly enough: what it does for each page may cost more than a second copy.

    Parameters:
        crowded: ranks outnumber cores on this host.

    Takes some 100 us, reading this process's own memory; the cost of the call itself is left out.
    """
    # Pages on both sides: how memory lies may count for more than who copies it (`copying.pxd`).
    cdef bytearray memory = bytearray(2 * PROBE_SIZE + PAGE)
    cdef char *origin = <char *> memory + (PAGE - <size_t> <char *> memory % PAGE)
    cdef char *copy = origin + PROBE_SIZE
    cdef int pid = os.getpid()
    cdef int64_t call, kernel, user
    for attempt in range(PROBES):
        here = time_of(pid, copy, origin, 8, True), time_of(pid, copy, origin, PROBE_SIZE, True), \
            time_of(pid, copy, origin, PROBE_SIZE, False)
        best = here if attempt == 0 else tuple(map(min, best, here))
    call, kernel, user = best
    return kernel - call < (CROWDED_RING_COST if crowded else RING_COST) * user


cpdef int allow_peers() except -1:
    """Consents to being read by processes of the same user; without Yama there is nothing to consent to."""
    set_ptracer_any()
    return 0


cpdef bint can_read(int pid, size_t address, bytes expected) except -1:
    """Whether the memory of `pid` at `address` can be read and is `expected`, eight bytes; so it is of one that has gone."""
    cdef char found[8]
    cdef int error = transfer(pid, <size_t> found, address, 8, False)
    if error:
        return error == ESRCH
    return memcmp(found, <char *> expected, 8) == 0


def host_identity() -> str:
    """Equal for processes that can map each other's memory: same boot, process name space and user."""
    with open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{boot.read().strip()}/{os.readlink('/proc/self/ns/pid')}/{os.geteuid()}"


cdef int move(void *reach, size_t here, uint64_t there, size_t size, bint inward) noexcept nogil:
    cdef char *place = seen(<Reach *> reach, there, size)
    if place == NULL:
        return move_by_kernel((<Reach *> reach).pid, here, there, size, inward)
    if inward:
        copy_bytes(<char *> here, place, size)
    else:
        copy_bytes(place, <char *> here, size)
    return 0


cdef int move_by_kernel(int pid, size_t here, uint64_t there, size_t size, bint inward) noexcept nogil:
    """Where the kernel's way of copying is slow from one address to the other, by a copy that lies well to both."""
    cdef int error = 0
    cdef size_t between, piece
    if not string_is_slow(here if inward else there, there if inward else here, size) or not exchange_if32(&detour_taken, 0, 1):
        return transfer_turning(pid, here, there, size, not inward)
    between = <size_t> detour + (there - <size_t> detour) % PAGE
    while size and error == 0:
        piece = min(size, <size_t> DETOUR)
        if inward:
            error = transfer(pid, between, there, piece, False)
            if error == 0:
                copy_bytes(<char *> here, <char *> between, piece)
        else:
            copy_bytes(<char *> between, <char *> here, piece)
            error = transfer(pid, between, there, piece, True)
        here += piece
        there += piece
        size -= piece
    release32(&detour_taken, 0)
    return error


cdef int move_pieces(void *reach, size_t here, Piece *pieces, size_t count, bint inward) noexcept nogil:
    cdef size_t piece, size = 0
    for piece in range(count):
        size += pieces[piece].size
    return transfer_pieces((<Reach *> reach).pid, here, pieces, count, size, not inward)


cdef bint has_gone(void *reach) noexcept nogil:
    return is_readable((<Reach *> reach).pidfd) if (<Reach *> reach).pidfd >= 0 else not is_alive((<Reach *> reach).pid)


cdef bint is_ending(void *reach) noexcept nogil:
    cdef int64_t begun = clock_now()
    while not has_gone(reach):
        if clock_now() - begun >= LONGEST_ENDING:
            return False
        rest_for(PAUSE)
    return True
