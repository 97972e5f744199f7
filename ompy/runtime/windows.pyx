# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""New windows: what their members tell one another, and memory that they share (MPI-4.1, 12.2)."""
from cpython.ref cimport Py_XDECREF, Py_XINCREF, PyObject

from ompy.core.checksum cimport crc32c
from ompy.core.communicator cimport Communicator
from ompy.core.segment cimport Segment, page_size
from ompy.core.signals cimport exception_kept, keep_exceptions, raise_kept
from ompy.core.window cimport FLAVOR_ALLOCATE, FLAVOR_SHARED, Window
from ompy.mca.agreement cimport agree, shared_memory
from ompy.runtime.communicator_lifecycle cimport give_up
from ompy.runtime.communicators cimport duplicate
from ompy.runtime.internal_messages cimport allgather

from ompy.core.errors import ERR_COMM, ERR_DISP, ERR_NO_MEM, ERR_RMA_SHARED, ERR_SIZE, MPIError
from ompy.core.host import host_number
from ompy.mca.osc_selection import select_onesided
from ompy.mca.window_hints import WindowHints


def create(Communicator comm not None, int flavor, size_t address, Py_ssize_t size, Py_ssize_t unit, memory, dict info):
    """A window on `size` bytes at `address`; collective (MPI-4.1, 12.2.1, 12.2.2 and 12.2.4).

    Parameters:
        unit: bytes of one displacement at this rank.
        memory: what keeps the bytes alive; None for FLAVOR_ALLOCATE where there is no memory for them.
        info: the program's hints, by key (`ompy.mca.window_hints`).

    Errors: ERR_COMM for an inter-communicator, ERR_SIZE and ERR_DISP for numbers that make no sense, or that the hints say are
    the same and are not, ERR_NO_MEM where a rank has none, each on every rank.
    """
    # The others wait for this rank, whatever a signal handler raises.
    keep_exceptions()
    try:
        rows, hints = agreed(comm, size, unit, info, flavor == FLAVOR_ALLOCATE and memory is None)
        addresses = [address if rank == comm.rank else 0 for rank in range(comm.size)]
        return opened(comm, flavor, rows, addresses, memory, hints)
    finally:
        raise_kept()


def create_shared(Communicator comm not None, Py_ssize_t size, Py_ssize_t unit, dict info):
    """A window on new memory that all members see; collective (MPI-4.1, 12.2.3).

    Parameters:
        size: bytes of this rank's part.
        info: with "alloc_shared_noncontig" true, each part begins on a page of its own; else where that of the rank before
            ends.

    Errors: those of `create`, and ERR_RMA_SHARED when the members are not all on one host.
    """
    keep_exceptions()
    try:
        return opened_shared(comm, size, unit, info)
    finally:
        raise_kept()


cdef object opened_shared(Communicator comm, Py_ssize_t size, Py_ssize_t unit, dict info):
    cdef Segment segment = None
    cdef Py_ssize_t total = 0
    cdef bint contiguous
    rows, hints = agreed(comm, size, unit, info, False)
    contiguous = not hints.number("alloc_shared_noncontig")
    hosts = {row[2] for row in rows}
    if len(hosts) > 1:
        raise MPIError(ERR_RMA_SHARED, f"the communicator's processes are on {len(hosts)} hosts: split it with "
                                       "Split_type(COMM_TYPE_SHARED) first")
    starts = []
    for nbytes, *_ in rows:
        starts.append(total)
        total += nbytes if contiguous else (nbytes + page_size - 1) // page_size * page_size
    segment = shared_memory(comm, "ompy-window", max(total, 1))
    addresses = [<size_t> segment.address + <size_t> start for start in starts]
    return opened(comm, FLAVOR_SHARED, rows, addresses, segment, hints)


def free_window(Window window not None) -> None:
    """All members meet, then what the window held is given back (MPI-4.1, 12.2.5)."""
    window.module.free()
    window.mark_freed()
    keep_exceptions()
    try:
        give_up(window.communicator)
    finally:
        Py_XDECREF(<PyObject *> window.memory)
        # Memory of the library's lives on while the program has views of it.
        window.module = window.memory = None
        raise_kept()


cdef object opened(Communicator comm, int flavor, list rows, list addresses, object memory, hints):
    cdef Communicator own = duplicate(comm)
    cdef Window window = Window(own, flavor, [row[0] for row in rows], [row[1] for row in rows], addresses, memory)
    own.name = "MPI_WIN"
    window.attributes["hints"] = hints
    window.parent = comm
    window.module = select_onesided(window)
    window.parent = None
    # Peers reach it until the window is freed, also while the interpreter lets go of everything at its end.
    Py_XINCREF(<PyObject *> memory)
    try:
        agree(comm, exception_kept(), "the window can't be made")
    except BaseException:
        free_window(window)
        raise
    return window


cdef tuple agreed(Communicator comm, Py_ssize_t size, Py_ssize_t unit, dict info, bint lacks_memory):
    """Each rank's (size, unit, host, sum of its hints, whether it lacks memory), and the hints; what makes no sense, or can't
    be, is an error on every rank."""
    cdef bytes mine
    if comm.is_inter:
        raise MPIError(ERR_COMM, "comm: an intra-communicator expected for a window")
    hints = WindowHints()
    mine = hints.known(info).encode(errors="surrogatepass") if info else b""
    rows = allgather(comm, [size, unit, host_number(), crc32c(0, <const char *> mine, len(mine)), lacks_memory])
    for rank, (nbytes, displacement, _, _, lacks) in enumerate(rows):
        if nbytes < 0:
            raise MPIError(ERR_SIZE, f"size: rank {rank} gave {nbytes} bytes for its part of the window")
        if displacement <= 0:
            raise MPIError(ERR_DISP, f"disp_unit: rank {rank} gave {displacement}, a number of bytes above 0 is expected")
        if lacks:
            raise MPIError(ERR_NO_MEM, f"size: rank {rank} has no memory for its part of the window, {nbytes} bytes")
    if any(row[3] != rows[0][3] for row in rows):
        hints.agree(comm, info, "info")
    elif info:
        hints.update(info, "info")
    for name, error_class, column in (("same_size", ERR_SIZE, 0), ("same_disp_unit", ERR_DISP, 1)):
        if hints.number(name):
            for rank, row in enumerate(rows):
                if row[column] != rows[0][column]:
                    raise MPIError(error_class, f"rank {rank} gave {row[column]} and rank 0 {rows[0][column]}, although the "
                                                f"info key {name} says that all give the same")
    return rows, hints
