# The job board: one record a rank in memory that the launcher made, from which it says who waits for whom.
#
# A rank writes its record only when a wait has left its spin, so that the board costs nothing while messages flow.
# Each record has one writer, its rank (with the GIL), and readers in other processes; a sequence number, odd while the
# record is being written, tells readers to look again.
#
#     rank 2, asleep in Recv:   sequence 8 | pid 4711 | WAITING | RECV | peer 0 | tag 7 | context 1 "MPI_COMM_WORLD" | ...
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from ompy.core.request cimport Request

# What `Request.operation` holds; names as in MPI-4.1, without prefix, are `OPERATIONS` in the module.
cdef enum Operation:
    OPERATION_NONE = 0
    SEND, BSEND, SSEND, RSEND, RECV
    ISEND, IBSEND, ISSEND, IRSEND, IRECV
    PROBE, MPROBE, MRECV, IMRECV, SENDRECV
    WAIT, WAITALL, WAITANY, WAITSOME
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV
    ALLTOALL, ALLTOALLV, ALLTOALLW, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN
    NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW
    COMM_CREATE, COMM_DUP, COMM_SPLIT, COMM_FREE, INTERCOMM_CREATE, INTERCOMM_MERGE
    COMM_SPAWN, COMM_ACCEPT, COMM_CONNECT, COMM_DISCONNECT
    WIN_CREATE, WIN_FENCE, WIN_LOCK, WIN_FLUSH, WIN_START, WIN_WAIT, WIN_FREE
    FILE_OPEN, FILE_READ, FILE_WRITE, FILE_CLOSE
    INIT, FINALIZE
    OPERATION_COUNT

cdef enum State:
    STATE_ABSENT = 0                             # no MPI process yet
    STATE_RUNNING = 1
    STATE_WAITING = 2
    STATE_FINALIZED = 3
    STATE_BROKEN_OFF = 4                         # running, and a process has failed in its last wait

cdef struct Record:
    uint32_t sequence
    int32_t pid
    int32_t state
    int32_t operation
    int32_t peer                                 # rank in the world of its job, or ANY_SOURCE
    int32_t tag
    uint64_t context
    int64_t nbytes
    int64_t since                                # CLOCK_MONOTONIC, nanoseconds
    uint64_t waits                               # ended so far: two looks that differ show progress
    char communicator[64]                        # name, cut, UTF-8
    uint32_t peer_job                            # `job_number` of the peer's job, where that is another one; else 0
    char reserved[4]

# The wait has left its spin and is going to sleep; None when no request tells what for.
cdef int note_wait(Request request) except -1
# It is over; `broken_off`: a process has failed meanwhile, and the record goes on to say what for this rank waited.
cdef int clear_wait(bint broken_off) noexcept
