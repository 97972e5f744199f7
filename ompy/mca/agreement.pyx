# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Agreement among the members of a communicator.  See `agreement.pxd`."""
from array import array

from libc.stdint cimport int64_t

from ompy.core.basic cimport BASIC_INT64_T
from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport Communicator
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.core.segment cimport Segment, attach, create
from ompy.core.typemap cimport predefined
from ompy.mca.coll cimport ALLGATHER, BARRIER, BCAST, CollectiveCall, CollModule, CollTable
from ompy.mca.pml cimport closed

from ompy.core.errors import ERR_NOT_SAME, ERR_OTHER, MPIError, code_of, error_string

# A segment's location travels as so many numbers.
cdef int LOCATION_WORDS = 32


cdef int require_part() except -1:
    """A child made by fork is no rank: collectives through shared memory would take it for its parent."""
    if closed is not None:
        raise MPIError(ERR_OTHER, closed)
    return 0


cdef int gather(Communicator comm, const int64_t *mine, int64_t *all, int count) except -1:
    cdef CollectiveCall call
    cdef int i
    if comm.size == 1:
        for i in range(count):
            all[i] = mine[i]
        return 0
    require_part()
    call = CollectiveCall.__new__(CollectiveCall)
    call.send_address, call.recv_address = <size_t> mine, <size_t> all
    call.send_count = call.recv_count = count
    call.send_type = call.recv_type = predefined(BASIC_INT64_T)
    return (<CollTable> comm.coll).of(ALLGATHER).run(ALLGATHER, call, comm)


cdef int share(Communicator comm, int64_t *numbers, int count) except -1:
    cdef CollectiveCall call
    if comm.size == 1:
        return 0
    require_part()
    call = CollectiveCall.__new__(CollectiveCall)
    call.send_address = <size_t> numbers
    call.send_count = count
    call.send_type = predefined(BASIC_INT64_T)
    call.root = 0
    return (<CollTable> comm.coll).of(BCAST).run(BCAST, call, comm)


def gathered(Communicator comm not None, numbers) -> list[list[int]]:
    """Each rank's numbers, in rank order, for components in plain Python; as many from every rank."""
    sent = array("q", numbers)
    received = array("q", bytes(8 * len(sent) * comm.size))
    cdef size_t mine = sent.buffer_info()[0], all = received.buffer_info()[0]
    gather(comm, <const int64_t *> mine, <int64_t *> all, len(sent))
    width = len(sent)
    return [received[rank * width:(rank + 1) * width].tolist() for rank in range(comm.size)]


cdef list sums(Communicator comm, bytes mine):
    """Each rank's length and checksum of its bytes, or None where those are the same on all."""
    rows = gathered(comm, [len(mine), crc32c(0, <const char *> mine, len(mine))])
    return None if rows.count(rows[0]) == len(rows) else rows


def common(Communicator comm not None, str text not None) -> str:
    """Rank 0's text, for all."""
    cdef bytes mine = text.encode(errors="surrogatepass")
    rows = sums(comm, mine)
    if rows is None:
        return text
    words = array("q", bytes(8 * (rows[0][0] // 8 + 1)) if comm.rank else mine.ljust(8 * (len(mine) // 8 + 1), b"\0"))
    cdef size_t address = words.buffer_info()[0]
    share(comm, <int64_t *> address, len(words))
    return words.tobytes()[:rows[0][0]].decode(errors="surrogatepass")


cpdef int meet(Communicator comm, int operation) except -1:
    """All members are here; `operation` is what the job board calls it."""
    cdef Request request = begin_meeting(comm, operation)
    if not request.complete:
        wait(request)
    if request.error is not None:
        raise request.error
    return 0


cdef Request begin_meeting(Communicator comm, int operation):
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    require_part()
    cdef Request request = (<CollModule> (<CollTable> comm.coll).nonblocking[<int> BARRIER]).start(BARRIER, call, comm)
    request.operation = operation
    return request


cpdef Segment shared_memory(Communicator comm, str name, size_t size):
    cdef Segment segment = None
    cdef bytes location = b""
    cdef object problem = None
    if comm.rank == 0:
        try:
            segment = create(name, size)
            location = segment.location()
        except BaseException as error:
            problem = error
    words = array("q", location.ljust(8 * LOCATION_WORDS, b"\0"))
    cdef size_t address = words.buffer_info()[0]
    share(comm, <int64_t *> address, LOCATION_WORDS)
    location = words.tobytes().rstrip(b"\0")
    if comm.rank > 0 and location:
        try:
            segment = attach(location, size)
        except BaseException as error:
            problem = error
    try:
        agree(comm, problem, f"{size} bytes of memory for all ranks: not to be had")
    except BaseException:
        if segment is not None:
            segment.close()
        raise
    segment.seal()
    return segment


cpdef int agree(Communicator comm, object error, str what) except -1:
    cdef int64_t code = 0 if error is None else code_of(error)
    codes = gathered(comm, [code])
    if error is not None:
        raise error
    for rank, (failed,) in enumerate(codes):
        if failed:
            raise MPIError(failed, f"{what} on rank {rank}, which has the reason: {error_string(failed)}")
    return 0


cpdef int same(Communicator comm, str what, str words) except -1:
    cdef bytes mine = words.encode(errors="surrogatepass")
    rows = sums(comm, mine)
    if rows is None:
        return 0
    longest = max(rows)[0]
    told = gathered(comm, array("q", mine.ljust(longest + -longest % 8, b"\0")))
    for rank, (length, _) in enumerate(rows):
        theirs = array("q", told[rank]).tobytes()[:length]
        if theirs != mine:
            raise MPIError(ERR_NOT_SAME, f"{what}: {words} here, {theirs.decode(errors='surrogatepass')} on rank {rank}")
