# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""New windows: what their members tell one another, and memory that they share (MPI-4.1, 12.2)."""
from array import array

from ompy.core.communicator cimport Communicator
from ompy.core.segment cimport Segment, attach, create as create_segment, page_size
from ompy.core.window cimport FLAVOR_SHARED, Window
from ompy.runtime.communicators cimport allgather

from ompy.core.errors import ERR_COMM, ERR_DISP, ERR_RMA_SHARED, ERR_SIZE, MPIError
from ompy.mca import selection
from ompy.runtime import communicators

# A segment's location travels as so many 64-bit numbers.
cdef int LOCATION_WORDS = 32


def create(Communicator comm not None, int flavor, size_t address, Py_ssize_t size, Py_ssize_t unit, memory=None):
    """A window on `size` bytes at `address`; collective (MPI-4.1, 12.2.1, 12.2.2 and 12.2.4).

    Parameters:
        unit: bytes of one displacement at this rank.
        memory: what keeps the bytes alive.

    Errors: ERR_COMM for an inter-communicator, ERR_SIZE and ERR_DISP for numbers that make no sense, on every rank.
    """
    rows = gathered(comm, size, unit)
    own = communicators.duplicate(comm)
    addresses = [address if rank == comm.rank else 0 for rank in range(comm.size)]
    return opened(own, flavor, rows, addresses, memory)


def create_shared(Communicator comm not None, Py_ssize_t size, Py_ssize_t unit, bint contiguous):
    """A window on new memory that all members see; collective (MPI-4.1, 12.2.3).

    Parameters:
        size: bytes of this rank's part.
        contiguous: each part begins where that of the rank before ends; else on a page of its own.

    Errors: those of `create`, and ERR_RMA_SHARED when the members are not all on one host.
    """
    cdef Segment segment = None
    cdef Py_ssize_t total = 0
    rows = gathered(comm, size, unit)
    hosts = {row[2] for row in rows}
    if len(hosts) > 1:
        raise MPIError(ERR_RMA_SHARED, f"the communicator's processes are on {len(hosts)} hosts: split it with "
                                       "Split_type(COMM_TYPE_SHARED) first")
    starts = []
    for nbytes, _, _ in rows:
        starts.append(total)
        total += nbytes if contiguous else (nbytes + page_size - 1) // page_size * page_size
    segment = shared_segment(comm, max(total, 1))
    own = communicators.duplicate(comm)
    addresses = [<size_t> segment.address + <size_t> start for start in starts]
    return opened(own, FLAVOR_SHARED, rows, addresses, segment)


def free_window(Window window not None) -> None:
    """All members meet, then what the window held is given back (MPI-4.1, 12.2.5)."""
    window.module.free()
    window.mark_freed()
    communicators.free_communicator(window.communicator)
    # Memory of the library's lives on while the program has views of it.
    window.module = window.memory = None


cdef object opened(Communicator own, int flavor, list rows, list addresses, object memory):
    cdef Window window = Window(own, flavor, [row[0] for row in rows], [row[1] for row in rows], addresses, memory)
    own.name = "MPI_WIN"
    window.module = selection.select_onesided(window)
    return window


cdef list gathered(Communicator comm, Py_ssize_t size, Py_ssize_t unit):
    """Each rank's (size, unit, host); a number that makes no sense is an error on every rank."""
    if comm.is_inter:
        raise MPIError(ERR_COMM, "comm: an intra-communicator expected for a window")
    rows = allgather(comm, [size, unit, communicators.host_number()])
    for rank, (nbytes, displacement, _) in enumerate(rows):
        if nbytes < 0:
            raise MPIError(ERR_SIZE, f"size: rank {rank} gave {nbytes} bytes for its part of the window")
        if displacement <= 0:
            raise MPIError(ERR_DISP, f"disp_unit: rank {rank} gave {displacement}, a number of bytes above 0 is expected")
    return rows


cdef Segment shared_segment(Communicator comm, Py_ssize_t total):
    """Memory that rank 0 makes and the others attach to; it is sealed once all have."""
    cdef Segment segment = None
    cdef bytes location = b""
    failure = None
    if comm.rank == 0:
        try:
            segment = create_segment("ompy-window", total)
            location = segment.location()
        except MPIError as error:
            failure = error
    words = array("q", location.ljust(8 * LOCATION_WORDS, b"\0"))
    location = array("q", allgather(comm, words.tolist())[0]).tobytes().rstrip(b"\0")
    if comm.rank > 0 and location:
        try:
            segment = attach(location, total)
        except MPIError as error:
            failure = error
    attached = allgather(comm, [segment is not None])
    if comm.rank == 0 and segment is not None:
        segment.seal()
    if failure is not None:
        raise failure
    absent = [rank for rank, (there,) in enumerate(attached) if not there]
    if absent:
        segment.close()
        raise MPIError(ERR_RMA_SHARED, f"rank {absent[0]} could not attach to the {total} bytes of the shared window")
    return segment
