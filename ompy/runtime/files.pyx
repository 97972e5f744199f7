# cython: language_level=3, binding=False
"""Opening, closing and deleting files (MPI-4.1, 14.2)."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.file cimport MODE_RDWR, File
from ompy.core.typemap cimport predefined
from ompy.core.view cimport View
from ompy.runtime.communicators cimport allgather

from ompy.core.errors import ERR_BAD_FILE, ERR_COMM, ERR_NOT_SAME, MPIError
from ompy.mca.hints import Hints
from ompy.mca import selection
from ompy.runtime import communicators


def open_file(Communicator comm not None, str path not None, int mode, dict hints not None):
    """Open a file together (MPI-4.1, 14.2.1); on every rank, or on none.

    Parameters:
        mode: MODE_*, or'ed together; the same on all ranks.
        hints: of the info argument.

    Errors: ERR_COMM for an inter-communicator, ERR_NOT_SAME, and what the components find (14.7).
    """
    cdef File file
    if comm.is_inter:
        raise MPIError(ERR_COMM, "comm: an intra-communicator expected for a file")
    check_path(path)
    for rank, (theirs,) in enumerate(allgather(comm, [mode])):
        if theirs != mode:
            raise MPIError(ERR_NOT_SAME, f"{path}: amode: {mode} here, {theirs} on rank {rank} of the communicator")
    own = communicators.duplicate(comm)
    own.name = path
    file = made(own, path, mode, hints)
    try:
        file.module = selection.select_for_file("io", file)
        file.module.open()
    except BaseException:
        communicators.free_communicator(own)
        raise
    return file


def close_file(File file not None) -> None:
    """Close it together (MPI-4.1, 14.2.2)."""
    try:
        file.module.close()
    finally:
        file.mark_freed()
        file.module = None
        file.parts.clear()
        communicators.free_communicator(file.communicator)


def delete_file(str path not None, dict hints not None) -> None:
    """Remove a file; this process alone (MPI-4.1, 14.2.3)."""
    check_path(path)
    selection.select_for_file("fs", made(communicators.own, path, MODE_RDWR, hints)).delete(path)


cdef File made(Communicator own, str path, int mode, dict hints):
    view = View(0, predefined(BASIC_BYTE), predefined(BASIC_BYTE))
    return File(own, path, mode, Hints(hints, "info of Open"), view)


cdef int check_path(str path) except -1:
    if not path or "\0" in path:
        raise MPIError(ERR_BAD_FILE, f"filename: {path!r} is the name of no file")
    return 0
