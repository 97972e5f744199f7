# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Opening, closing and deleting files (MPI-4.1, 14.2)."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.board cimport FILE_CLOSE, FILE_OPEN, OPERATION_NONE
from ompy.core.communicator cimport Communicator
from ompy.core.file cimport (
    MODE_CREATE, MODE_EXCL, MODE_RDONLY, MODE_RDWR, MODE_SEQUENTIAL, MODE_WRONLY, File,
)
from ompy.core.signals cimport exception_kept, keep_exceptions, raise_kept
from ompy.core.typemap cimport predefined
from ompy.core.view cimport View
from ompy.mca.agreement cimport agree
from ompy.runtime.communicator_lifecycle cimport give_up
from ompy.runtime.communicators cimport duplicate

from ompy.core.errors import ERR_AMODE, ERR_BAD_FILE, ERR_COMM, ERR_FILE, ERR_NOT_SAME, MPIError
from ompy.mca import selection
from ompy.mca.agreement import gathered
from ompy.mca.hints import Hints
from ompy.runtime import identity


def open_file(Communicator comm not None, str path not None, int mode, dict hints not None, problem=None):
    """Open a file together (MPI-4.1, 14.2.1); on every rank, or on none.

    Parameters:
        mode: MODE_*, or'ed together; the same on all ranks.
        hints: of the info argument.
        problem: what is wrong with the arguments on this rank, or None.

    Errors: ERR_COMM for an inter-communicator, ERR_NOT_SAME, and what the components find (14.7).
    """
    if comm.is_inter:
        raise MPIError(ERR_COMM, "comm: an intra-communicator expected for a file")
    # The others wait for this rank, whatever a signal handler raises.
    keep_exceptions()
    try:
        return opened(comm, path, mode, hints, problem)
    finally:
        raise_kept()


cdef File opened(Communicator comm, str path, int mode, dict hints, problem):
    cdef Communicator own
    cdef File file
    try:
        if problem is None:
            check_mode(mode)
            check_path(path)
    except MPIError as error:
        problem = error
    agree(comm, problem, f"{path}: can't be opened")
    for rank, (theirs,) in enumerate(gathered(comm, [mode])):
        if theirs != mode:
            raise MPIError(ERR_NOT_SAME, f"{path}: amode: {mode} here, {theirs} on rank {rank} of the communicator")
    own = duplicate(comm)
    own.name = path
    own.purpose = FILE_OPEN
    file = made(own, path, mode)
    try:
        file.hints.agree(own, hints, "info of Open")
        try:
            file.module = selection.select_for_file("io", file)
        except BaseException as error:
            problem = error
        agree(own, problem, f"{path}: can't be served")
        file.module.open()
        try:
            agree(own, exception_kept(), f"{path}: can't be opened")
        except BaseException:
            file.module.close()
            raise
    except BaseException:
        give_up(own)
        raise
    own.purpose = OPERATION_NONE
    return file


def close_file(File file not None) -> None:
    """Close it together (MPI-4.1, 14.2.2); what a signal handler raises meanwhile comes at the end.

    Errors: ERR_FILE while a call on it is under way in this process; otherwise it is closed, whatever else goes wrong.
    """
    if file.in_use():
        raise MPIError(ERR_FILE, f"{file.path}: a call on it is under way in this process: close it when that has returned")
    file.mark_freed()
    file.communicator.purpose = FILE_CLOSE
    keep_exceptions()
    try:
        file.module.close()
    finally:
        file.module = None
        file.parts.clear()
        try:
            give_up(file.communicator)
        finally:
            raise_kept()


def delete_file(str path not None, dict hints not None) -> None:
    """Remove a file; this process alone (MPI-4.1, 14.2.3)."""
    check_path(path)
    file = made(identity.own, path, MODE_RDWR)
    file.hints.update(hints, "info of Delete")
    selection.select_for_file("fs", file).delete(path)


cdef File made(Communicator own, str path, int mode):
    view = View(0, predefined(BASIC_BYTE), predefined(BASIC_BYTE))
    return File(own, path, mode, Hints(), view)


cdef int check_path(str path) except -1:
    if not path or "\0" in path:
        raise MPIError(ERR_BAD_FILE, f"filename: {path!r} is the name of no file")
    return 0


cdef int check_mode(int mode) except -1:
    cdef int ways = mode & (MODE_RDONLY | MODE_WRONLY | MODE_RDWR)
    if ways not in (MODE_RDONLY, MODE_WRONLY, MODE_RDWR):
        raise MPIError(ERR_AMODE, f"amode: exactly one of MODE_RDONLY, MODE_WRONLY and MODE_RDWR expected in {mode}")
    if mode & MODE_RDONLY and mode & (MODE_CREATE | MODE_EXCL):
        raise MPIError(ERR_AMODE, "amode: MODE_RDONLY makes no file: leave MODE_CREATE and MODE_EXCL out")
    if mode & MODE_RDWR and mode & MODE_SEQUENTIAL:
        raise MPIError(ERR_AMODE, "amode: a MODE_SEQUENTIAL file is read or written: leave MODE_RDWR out")
    if mode < 0 or mode >= 2 * MODE_SEQUENTIAL:
        raise MPIError(ERR_AMODE, f"amode: {mode} holds what is no mode")
    return 0
