# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""New windows: what their members tell one another, and memory that they share (MPI-4.1, 12.2)."""
from ompy.core.communicator cimport Communicator
from ompy.core.segment cimport Segment, page_size
from ompy.core.window cimport FLAVOR_SHARED, Window
from ompy.mca.agreement cimport shared_memory
from ompy.runtime.communicators cimport allgather

from ompy.core.errors import ERR_COMM, ERR_DISP, ERR_RMA_SHARED, ERR_SIZE, MPIError
from ompy.mca import selection
from ompy.runtime import communicators


def create(Communicator comm not None, int flavor, size_t address, Py_ssize_t size, Py_ssize_t unit, memory, dict hints):
    """A window on `size` bytes at `address`; collective (MPI-4.1, 12.2.1, 12.2.2 and 12.2.4).

    Parameters:
        unit: bytes of one displacement at this rank.
        memory: what keeps the bytes alive.
        hints: the program's, by key.

    Errors: ERR_COMM for an inter-communicator, ERR_SIZE and ERR_DISP for numbers that make no sense, on every rank.
    """
    rows = gathered(comm, size, unit)
    addresses = [address if rank == comm.rank else 0 for rank in range(comm.size)]
    return opened(comm, flavor, rows, addresses, memory, hints)


def create_shared(Communicator comm not None, Py_ssize_t size, Py_ssize_t unit, dict hints):
    """A window on new memory that all members see; collective (MPI-4.1, 12.2.3).

    Parameters:
        size: bytes of this rank's part.
        hints: with "alloc_shared_noncontig" true, each part begins on a page of its own; else where that of the rank before
            ends.

    Errors: those of `create`, and ERR_RMA_SHARED when the members are not all on one host.
    """
    cdef Segment segment = None
    cdef Py_ssize_t total = 0
    cdef bint contiguous = hints.get("alloc_shared_noncontig", "false").lower() not in ("true", "1", "yes")
    rows = gathered(comm, size, unit)
    hosts = {row[2] for row in rows}
    if len(hosts) > 1:
        raise MPIError(ERR_RMA_SHARED, f"the communicator's processes are on {len(hosts)} hosts: split it with "
                                       "Split_type(COMM_TYPE_SHARED) first")
    starts = []
    for nbytes, _, _ in rows:
        starts.append(total)
        total += nbytes if contiguous else (nbytes + page_size - 1) // page_size * page_size
    segment = shared_memory(comm, "ompy-window", max(total, 1))
    addresses = [<size_t> segment.address + <size_t> start for start in starts]
    return opened(comm, FLAVOR_SHARED, rows, addresses, segment, hints)


def free_window(Window window not None) -> None:
    """All members meet, then what the window held is given back (MPI-4.1, 12.2.5)."""
    window.module.free()
    window.mark_freed()
    communicators.free_communicator(window.communicator)
    # Memory of the library's lives on while the program has views of it.
    window.module = window.memory = None


cdef object opened(Communicator comm, int flavor, list rows, list addresses, object memory, dict hints):
    cdef Communicator own = communicators.duplicate(comm)
    cdef Window window = Window(own, flavor, [row[0] for row in rows], [row[1] for row in rows], addresses, memory)
    own.name = "MPI_WIN"
    if hints:
        window.attributes["info"] = hints
    window.parent = comm
    window.module = selection.select_onesided(window)
    window.parent = None
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
