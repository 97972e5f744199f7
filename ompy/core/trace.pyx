# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The recorder of what becomes of each message; see `trace.pxd`."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strncpy

import os
import stat

from ompy.core.errors import ERR_ARG, MPIError
from ompy.core.memory cimport address_of

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static int64_t ompy_trace_epoch(void) {
        struct timespec wall, steady;
        clock_gettime(CLOCK_REALTIME, &wall);
        clock_gettime(CLOCK_MONOTONIC, &steady);
        return (wall.tv_sec - steady.tv_sec) * INT64_C(1000000000) + wall.tv_nsec - steady.tv_nsec;
    }
    """
    int64_t trace_epoch "ompy_trace_epoch"()

# How a reader unpacks a ring and its events; the structs are those of `trace.pxd`.
MAGIC = b"ompytrc1"
RING_FORMAT = "<8sqQQII64s"
EVENT_FORMAT = "<qqQQQiiiIBB6x"
KINDS = ("", "sent", "started", "announced", "fragment", "completed", "posted", "matched", "kept", "waited")
WAYS = ("", "eager", "rendezvous", "read", "written", "sent")

cdef Ring *ring = NULL
cdef Event *events = NULL
cdef uint64_t mask = 0
mapped = None


cdef void record(int kind, int detail, void *request, uint64_t context, int source, int destination, int tag,
                 uint32_t sequence, uint64_t nbytes, int64_t begun) noexcept nogil:
    cdef Event *event = events + (ring.written & mask)
    event.time = trace_clock()
    event.begun = begun
    event.request = <uint64_t> request
    event.context = context
    event.nbytes = nbytes
    event.source = source
    event.destination = destination
    event.tag = tag
    event.sequence = sequence
    event.kind = kind
    event.detail = detail
    ring.written += 1


def create(str path not None) -> int:
    """A new file under a name that others can foresee, for reading and writing: a file or link there goes, none is followed.

    Errors: FileExistsError for a device, a pipe, a socket or a folder of that name.
    """
    try:
        kind = os.lstat(path).st_mode
        if stat.S_ISREG(kind) or stat.S_ISLNK(kind):
            os.unlink(path)
    except FileNotFoundError:
        pass
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def start(str path not None, int rank, str host not None, uint64_t capacity):
    """Record from now on into the file `path`, which is made.

    Parameters:
        rank, host: of this process, for the reader.
        capacity: events kept; a power of two.

    Errors: ERR_ARG for another capacity, OSError where the file can't be made.
    """
    global ring, events, mask, mapped, tracing
    if capacity == 0 or capacity & (capacity - 1):
        raise MPIError(ERR_ARG, f"trace_events must be a power of two, not {capacity}")
    from mmap import mmap

    stop()
    cdef size_t size = sizeof(Ring) + capacity * sizeof(Event)
    descriptor = create(path)
    try:
        os.posix_fallocate(descriptor, 0, size)
        mapped = mmap(descriptor, size)
    finally:
        os.close(descriptor)
    ring = <Ring *> <size_t> address_of(mapped)
    events = <Event *> (ring + 1)
    mask = capacity - 1
    # Every page is touched now rather than in the middle of a message.
    memset(ring, 0, size)
    memcpy(ring.magic, <const char *> MAGIC, 8)
    ring.epoch = trace_epoch()
    ring.capacity = capacity
    ring.rank = rank
    ring.pid = os.getpid()
    name = host.encode()
    strncpy(ring.host, name, sizeof(ring.host) - 1)
    tracing = True


def stop():
    """Record no more; the file stays."""
    global ring, events, mapped, tracing
    tracing = False
    ring = NULL
    events = NULL
    mapped = None


def is_recording() -> bool:
    """Whether events are recorded."""
    return tracing
