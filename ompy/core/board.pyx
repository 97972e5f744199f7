# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The job board: what each rank of a job is blocked in.  See `board.pxd`."""
import os

from libc.string cimport memcpy, memset
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from ompy.core cimport proc as procs
from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport ANY_SOURCE

cdef extern from * nogil:
    """
    #define ompy_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
    """
    void ompy_fence()

# Index = value of the `Operation` enumeration.
OPERATIONS = (
    "",
    "Send", "Bsend", "Ssend", "Rsend", "Recv",
    "Isend", "Ibsend", "Issend", "Irsend", "Irecv",
    "Probe", "Mprobe", "Mrecv", "Imrecv", "Sendrecv",
    "Wait", "Waitall", "Waitany", "Waitsome",
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan",
    "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
    "Comm_create", "Comm_dup", "Comm_split", "Comm_free", "Intercomm_create", "Intercomm_merge",
    "Comm_spawn", "Comm_accept", "Comm_connect", "Comm_disconnect",
    "Win_create", "Win_fence", "Win_lock", "Win_flush", "Win_start", "Win_wait", "Win_free",
    "File_open", "File_read", "File_write", "File_close",
    "Init", "Finalize",
)
STATES = ("absent", "running", "waiting", "finalized", "broken off")
RECORD_BYTES = sizeof(Record)

assert len(OPERATIONS) == OPERATION_COUNT
# Whole pairs of cache lines, so that two ranks never write to the same one; the launcher makes boards without this module.
assert sizeof(Record) == 128

# This process's record, NULL when no launcher made a board.
cdef Record *mine = NULL


cdef inline int64_t now() noexcept nogil:
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return <int64_t> moment.tv_sec * 1000000000 + moment.tv_nsec


cdef inline void begin_write() noexcept:
    mine.sequence += 1
    ompy_fence()


cdef inline void end_write() noexcept:
    ompy_fence()
    mine.sequence += 1


cdef int world_rank(Communicator communicator, int peer) except -3:
    """Rank in its world of a rank of the communicator's (remote) group; wildcards and null ranks stay what they are."""
    if peer < 0 or communicator is None or peer >= communicator.remote_size:
        return peer
    return procs.table.at(communicator.remote_group.members[peer]).rank


def job_number(str job not None) -> int:
    """A job's name as a board has it."""
    cdef bytes text = job.encode()
    return crc32c(0, <const char *> text, len(text)) or 1


cdef uint32_t foreign_job(Communicator communicator, int peer) except? 0:
    """Number of the job of a rank of the communicator's (remote) group, where it is not this process's; else 0."""
    if peer < 0 or communicator is None or not communicator.spans_jobs or peer >= communicator.remote_size:
        return 0
    proc = procs.table.at(communicator.remote_group.members[peer])
    return 0 if proc.circle is None else job_number(proc.job)


cdef void write_wait(int operation, int peer, int tag, int64_t nbytes, uint64_t context, bytes name,
                     uint32_t peer_job=0) noexcept:
    begin_write()
    mine.state = STATE_WAITING
    mine.since = now()
    mine.operation = operation
    mine.peer = peer
    mine.peer_job = peer_job
    mine.tag = tag
    mine.nbytes = nbytes
    mine.context = context
    memset(mine.communicator, 0, sizeof(mine.communicator))
    memcpy(mine.communicator, <const char *> name, len(name))
    end_write()


cdef bytes shortened(bytes name):
    """A name that fits into a record: of a longer one, such as a path, the beginning and the end."""
    cdef int room = sizeof(mine.communicator) - 1
    return name if len(name) <= room else name[: room // 3] + b"..." + name[len(name) - (room - room // 3 - 3) :]


cdef int note_wait(Request request) except -1:
    cdef Communicator communicator = None
    cdef uint64_t context = 0
    cdef bytes name = b""
    cdef int operation
    if mine == NULL:
        return 0
    if request is None:
        write_wait(OPERATION_NONE, ANY_SOURCE, -1, 0, 0, name)
        return 0
    operation = request.operation
    if isinstance(request.communicator, Communicator):
        communicator = request.communicator
        operation = communicator.purpose or operation
        context = communicator.context
        if communicator.name is not None:
            name = shortened(communicator.name.encode("utf-8", "replace"))
    write_wait(operation, world_rank(communicator, request.peer), request.tag, request.nbytes, context, name,
               foreign_job(communicator, request.peer))
    return 0


cdef int clear_wait(bint broken_off) noexcept:
    if mine != NULL:
        begin_write()
        mine.state = STATE_BROKEN_OFF if broken_off else STATE_RUNNING
        mine.operation = mine.operation if broken_off else OPERATION_NONE
        mine.waits += 1
        end_write()
    return 0


def printable(bytes text) -> str:
    """Text from another process, fit for a terminal."""
    return "".join([sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text.decode("utf-8", "replace")])


class Row:
    """One rank's record, as it was when it was read.

    Attributes:
        rank, pid, tag, context, nbytes, waits, communicator: as in the record.
        state: one of `STATES`, or "unknown".
        operation: one of `OPERATIONS`, "" when it is not known.
        peer: rank in the world of its job, or -1 for any.
        peer_job: `job_number` of the peer's job where that is another one, else 0.
        seconds: since the wait began.
    """

    __slots__ = (
        "communicator", "context", "nbytes", "operation", "peer", "peer_job", "pid", "rank", "seconds", "state", "tag", "waits",
    )

    def __repr__(self):
        return "<board row " + ", ".join(f"{name} {getattr(self, name)!r}" for name in self.__slots__) + ">"


cdef class Board:
    """The records of all ranks of a job.

    Parameters:
        descriptor: of the shared memory, `RECORD_BYTES` a rank, zero at first.

    What is in it was written by others: nothing is taken for granted but the memory's size, against whose change the
    launcher seals it.

    Errors: ValueError when it is not a board, OSError when it can't be mapped.
    """
    cdef Record *records
    cdef readonly int size

    def __init__(self, int descriptor, bint writable=False):
        cdef Py_ssize_t length = os.fstat(descriptor).st_size
        if length == 0 or length % sizeof(Record):
            raise ValueError(f"descriptor {descriptor} is no job board: {length} bytes, not a multiple of {sizeof(Record)}")
        cdef void *memory = mmap(NULL, length, PROT_READ | (PROT_WRITE if writable else 0), MAP_SHARED, descriptor, 0)
        if memory == MAP_FAILED:
            raise OSError(f"the job board of {length} bytes can't be mapped")
        self.records = <Record *> memory
        self.size = length // sizeof(Record)

    def __dealloc__(self):
        if self.records != NULL and not (self.records <= mine < self.records + self.size):
            munmap(self.records, self.size * sizeof(Record))

    @staticmethod
    def attach(int descriptor, int rank):
        """Map the board and take the record of this rank, which `note_wait` then writes."""
        global mine
        cdef Board board = Board(descriptor, True)
        if not 0 <= rank < board.size:
            raise ValueError(f"rank {rank} is not on a job board of {board.size} ranks")
        mine = &board.records[rank]
        begin_write()
        mine.pid = os.getpid()
        mine.state = STATE_RUNNING
        mine.peer = ANY_SOURCE
        end_write()
        return board

    def meet(self, bint finalizing):
        """This rank waits until all ranks of the job are in Init, or in Finalize."""
        if mine != NULL:
            write_wait(FINALIZE if finalizing else INIT, ANY_SOURCE, -1, 0, 0, b"")

    def met(self):
        """All were there."""
        clear_wait(False)

    def leave(self):
        """This rank has finalised."""
        if mine != NULL:
            begin_write()
            mine.state = STATE_FINALIZED
            end_write()

    cdef Record record(self, int rank) except *:
        """Whole: read again while its writer is at it."""
        cdef Record copy
        cdef uint32_t before
        if not 0 <= rank < self.size:
            raise IndexError(f"rank {rank} is not on a job board of {self.size} ranks")
        # A writer that was killed half-way leaves an odd number for ever: after many looks, show what is there.
        for _ in range(1000):
            before = self.records[rank].sequence
            ompy_fence()
            copy = self.records[rank]
            ompy_fence()
            if before % 2 == 0 and before == self.records[rank].sequence:
                break
        return copy

    def copy(self, int rank):
        """The record of a rank as it is here, for a board elsewhere."""
        cdef Record copy = self.record(rank)
        return (<char *> &copy)[: sizeof(Record)]

    def row(self, int rank):
        """The record of a rank, for people."""
        cdef Record copy = self.record(rank)
        row = Row()
        row.rank = rank
        row.pid = copy.pid
        row.state = STATES[copy.state] if 0 <= copy.state <= STATE_BROKEN_OFF else "unknown"
        row.operation = OPERATIONS[copy.operation] if 0 <= copy.operation < OPERATION_COUNT else ""
        row.peer = copy.peer
        row.peer_job = copy.peer_job
        row.tag = copy.tag
        row.context = copy.context
        row.nbytes = copy.nbytes
        row.communicator = printable((<bytes> copy.communicator[: sizeof(copy.communicator)]).partition(b"\0")[0])
        row.waits = copy.waits
        row.seconds = (now() - copy.since) / 1e9 if copy.state == STATE_WAITING else 0.0
        return row

    def rows(self):
        """Every rank's record, in order."""
        return [self.row(rank) for rank in range(self.size)]


def show_call(str operation not None, str name not None):
    """Write the record of this rank as one that waits for processes that it does not know yet (`Comm_accept`)."""
    if mine != NULL:
        write_wait(OPERATIONS.index(operation), ANY_SOURCE, -1, 0, 0, shortened(name.encode("utf-8", "replace")))


def show_running():
    """The wait is over."""
    clear_wait(False)
