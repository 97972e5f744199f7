# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Files that processes open together (MPI-4.1, chapter 14)."""

import os

from ompy.core.file cimport File as CoreFile
from ompy.core.view cimport View
from ompy.mca.agreement cimport agree, same
from ompy.mca.io cimport IoModule
from ompy.mpi.buffers cimport require_committed
from ompy.mpi.comm cimport Comm
from ompy.mpi.datarep cimport Datarep, datarep_of
from ompy.mpi.datatype cimport Datatype, datatype_of
from ompy.mpi.errhandler cimport (
    Errhandler, call_errhandler, create_errhandler, get_errhandler, handle_makers, set_errhandler,
)
from ompy.mpi.file_access cimport FileAccess, null_file
from ompy.mpi.group cimport Group, new_group
from ompy.mpi.handle cimport forget, predefine
from ompy.mpi.info cimport Info, hints, new_info

from ompy.core.errors import ERR_ARG, ERR_READ_ONLY, ERR_TYPE, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.mca import memory_kinds
from ompy.core.file import (
    MODE_APPEND, MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_EXCL, MODE_RDONLY, MODE_RDWR, MODE_SEQUENTIAL, MODE_UNIQUE_OPEN,
    MODE_WRONLY,
)
from ompy.mpi.datatype import BYTE
from ompy.mpi.file_access import NullFile
from ompy.mpi.raising import hand_over

__all__ = [
    "DISPLACEMENT_CURRENT", "FILE_NULL", "File", "MODE_APPEND", "MODE_CREATE", "MODE_DELETE_ON_CLOSE", "MODE_EXCL",
    "MODE_RDONLY", "MODE_RDWR", "MODE_SEQUENTIAL", "MODE_UNIQUE_OPEN", "MODE_WRONLY",
]

# The displacement of `Set_view` that stands for where the shared pointer is (MPI-4.1, 14.3).
DISPLACEMENT_CURRENT = -54278278


cdef class File(FileAccess):
    """
    A file that the processes of a communicator opened together (MPI-4.1, chapter 14).

    `File(other)` is a second handle on the same file.  A null handle's methods raise ERR_FILE.
    """

    def __cinit__(self, File file=None):
        if file is not None:
            self.file = file.file

    cdef type family(self):
        return File

    cdef object core(self):
        return self.file

    cdef int become(self, object core) except -1:
        self.file = core
        return 0

    cdef int dispose(self) except -1:
        self.Close()
        return 0

    # -- open, close, delete

    @classmethod
    def Open(cls, Comm comm not None, filename, amode: int = MODE_RDONLY, info: Info = None):
        """Open a file; collective (MPI-4.1, 14.2.1).

        Parameters:
            comm: an intra-communicator.
            filename: a path: str, bytes or os.PathLike.
            amode: one of MODE_RDONLY, MODE_WRONLY, MODE_RDWR, with any of MODE_CREATE, MODE_EXCL (it must not be there yet),
                MODE_DELETE_ON_CLOSE, MODE_UNIQUE_OPEN (nobody else has it open), MODE_SEQUENTIAL and MODE_APPEND.
            info: hints; `Get_info` says which are in force.

        Raises:
            Exception: on every rank, if on one: ERR_AMODE, ERR_NO_SUCH_FILE, ERR_FILE_EXISTS, ERR_ACCESS, ERR_READ_ONLY,
                ERR_BAD_FILE, ERR_NO_SPACE, ERR_QUOTA, ERR_FILE_IN_USE, ERR_IO; ERR_NOT_SAME where amodes differ.
        """
        cdef File made = cls.__new__(cls)
        cdef int mode = 0
        path, wanted, problem = str(filename), {}, None
        try:
            from ompy.runtime import files

            comm.live()
            try:
                path, mode, wanted = os.fsdecode(filename), amode, hints(info)
            except Exception as error:
                problem = error
            made.file = files.open_file(comm.comm, path, mode, wanted, problem)
        except MPIError as error:
            hand_over(error, null_file)
        if "errhandler" in null_file.attributes:
            made.file.attributes["errhandler"] = null_file.attributes["errhandler"]
        made.file.communicator.attributes["errhandler"] = Forward(made.file)
        remember_view(made.file, 0, BYTE, BYTE, "native")
        return made

    def Close(self) -> None:
        """Close the file, when what is under way is over; collective; the handle becomes FILE_NULL (MPI-4.1, 14.2.2).

        Raises:
            Exception: ERR_FILE while another call on the file is under way in this process, as it is to a signal handler or
                a function of a data representation.  After any other the file is closed.
        """
        cdef CoreFile file = self.file
        try:
            from ompy.runtime import files

            self.live()
            try:
                files.close_file(file)
            finally:
                if file.freed:
                    forget(self)
                    self.file = None
        except MPIError as error:
            hand_over(error, null_file if file is None else file)

    @classmethod
    def Delete(cls, filename, Info info=None) -> None:
        """Delete a file; not collective (MPI-4.1, 14.2.3).

        Raises:
            Exception: ERR_NO_SUCH_FILE, ERR_ACCESS, ERR_BAD_FILE, ERR_IO.
        """
        try:
            from ompy.runtime import files

            files.delete_file(os.fsdecode(filename), hints(info))
        except MPIError as error:
            hand_over(error, null_file)

    # -- sizes

    def Set_size(self, size: int) -> None:
        """Cut the file off behind `size` bytes, or add zeros; collective (MPI-4.1, 14.2.4)."""
        cdef CoreFile file
        try:
            with self.call(True) as file:
                (<IoModule> file.module).set_size(agreed_size(file, size, "cut off"))
        except MPIError as error:
            hand_over(error, subject(self))

    def Preallocate(self, size: int) -> None:
        """Have the file system set `size` bytes aside; the file is never cut off; collective (MPI-4.1, 14.2.5)."""
        cdef CoreFile file
        try:
            with self.call(True) as file:
                (<IoModule> file.module).preallocate(agreed_size(file, size, "made longer"))
        except MPIError as error:
            hand_over(error, subject(self))

    def Get_size(self) -> int:
        """Bytes that the file has now (MPI-4.1, 14.2.6)."""
        cdef CoreFile file
        try:
            with self.call(False) as file:
                return (<IoModule> file.module).size()
        except MPIError as error:
            hand_over(error, subject(self))

    @property
    def size(self) -> int:
        """Bytes that the file has now (MPI-4.1, 14.2.6)."""
        return self.Get_size()

    # -- how it was opened

    def Get_amode(self) -> int:
        """The access mode that it was opened with (MPI-4.1, 14.2.7)."""
        try:
            return self.live().mode
        except MPIError as error:
            hand_over(error, subject(self))

    @property
    def amode(self) -> int:
        """The access mode that it was opened with (MPI-4.1, 14.2.7)."""
        return self.Get_amode()

    def Get_group(self) -> Group:
        """The processes that opened it (MPI-4.1, 14.2.7)."""
        try:
            return new_group(Group, self.live().communicator.group)
        except MPIError as error:
            hand_over(error, subject(self))

    @property
    def group(self) -> Group:
        """The processes that opened it (MPI-4.1, 14.2.7)."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """Number of processes that opened it (MPI-4.1, 14.2.7)."""
        return self.Get_group().size

    @property
    def group_rank(self) -> int:
        """Rank of this process among them (MPI-4.1, 14.2.7)."""
        return self.Get_group().rank

    # -- hints

    def Set_info(self, info: Info) -> None:
        """Ask for another service; hints that are not known are passed over; collective (MPI-4.1, 14.2.8)."""
        cdef CoreFile file
        wanted, problem = {}, None
        try:
            with self.call(True) as file:
                file.settle()
                try:
                    wanted = hints(info)
                except BaseException as error:
                    problem = error
                agree(file.communicator, problem, f"{file.path}: info can't be set")
                file.hints.agree(file.communicator, wanted, "Set_info")
        except MPIError as error:
            hand_over(error, subject(self))

    def Get_info(self) -> Info:
        """The hints in force, and for each, under `ompy_source_of_<hint>`, who said so (MPI-4.1, 14.2.8)."""
        try:
            return new_info({**self.live().hints.info(), memory_kinds.KEY: memory_kinds.supported()})
        except MPIError as error:
            hand_over(error, subject(self))

    @property
    def info(self) -> Info:
        """The hints in force (MPI-4.1, 14.2.8)."""
        return self.Get_info()

    @info.setter
    def info(self, Info value):
        self.Set_info(value)

    # -- view

    def Set_view(self, disp: int = 0, etype: Datatype = None, filetype: Datatype = None, datarep: str = "native",
                 info: Info = None) -> None:
        """What this process sees of the file from now on; both pointers go to its start; collective (MPI-4.1, 14.3).

        Parameters:
            disp: bytes of the file before the view; DISPLACEMENT_CURRENT in a file opened with MODE_SEQUENTIAL.
            etype: what offsets count; default BYTE.  The same size on all ranks.
            filetype: etypes and gaps, repeated as often as the file is long, at ascending displacements; default `etype`.
            datarep: "native", "internal", "external32", or a name given to `Register_datarep`.
            info: hints.

        Raises:
            Exception: ERR_ARG, ERR_TYPE, ERR_NOT_SAME, ERR_UNSUPPORTED_DATAREP.
        """
        cdef CoreFile file
        cdef View view = None
        wanted, problem = {}, None
        if etype is None:
            etype = BYTE
        if filetype is None:
            filetype = etype
        try:
            with self.call(True) as file:
                file.settle()
                if file.mode & MODE_SEQUENTIAL:
                    # What is before this call on any rank has moved the pointer at which the view is to begin.
                    agree(file.communicator, None, file.path)
                try:
                    view = seen(file, disp, etype, filetype, datarep)
                    wanted = hints(info)
                except BaseException as error:
                    problem = error
                agree(file.communicator, problem, f"{file.path}: the view can't be set")
                same(file.communicator, file.path, f"datarep {datarep!r}")
                (<IoModule> file.module).set_view(view)
                file.hints.agree(file.communicator, wanted, "info of Set_view")
                remember_view(file, view.displacement, etype, filetype, datarep)
        except MPIError as error:
            hand_over(error, subject(self))

    def Get_view(self) -> tuple:
        """What `Set_view` has set: displacement, etype, filetype, name of the data representation (MPI-4.1, 14.3)."""
        try:
            disp, etype, filetype, datarep = self.live().attributes["view"]
            return disp, datatype_of(etype), datatype_of(filetype), datarep
        except MPIError as error:
            hand_over(error, subject(self))

    def Get_type_extent(self, Datatype datatype not None) -> int:
        """Extent of a datatype in the file, in bytes, by its data representation (MPI-4.1, 14.5)."""
        cdef Datarep representation
        try:
            if datatype.typemap is None:
                raise MPIError(ERR_TYPE, "datatype: a datatype expected, not DATATYPE_NULL")
            representation = self.live().view.representation
            return datatype.typemap.extent if representation is None else representation.laid_out(datatype.typemap).extent
        except MPIError as error:
            hand_over(error, subject(self))

    # -- consistency

    def Set_atomicity(self, flag: bool) -> None:
        """Whether others see each access whole or not at all; collective (MPI-4.1, 14.6.1).

        Raises:
            Exception: ERR_UNSUPPORTED_OPERATION where the file system has no locks.
        """
        cdef CoreFile file
        try:
            with self.call(True) as file:
                (<IoModule> file.module).set_atomicity(flag)
        except MPIError as error:
            hand_over(error, subject(self))

    def Get_atomicity(self) -> bool:
        """Whether they do (MPI-4.1, 14.6.1)."""
        try:
            return self.live().atomic
        except MPIError as error:
            hand_over(error, subject(self))

    @property
    def atomicity(self) -> bool:
        """Whether others see each access whole or not at all (MPI-4.1, 14.6.1)."""
        return self.Get_atomicity()

    @atomicity.setter
    def atomicity(self, value: bool) -> None:
        self.Set_atomicity(value)

    def Sync(self) -> None:
        """Wait until what was written is on the device, and others' writes before their Sync can be read; collective.

        MPI-4.1, 14.6.1.
        """
        cdef CoreFile file
        try:
            with self.call(True) as file:
                (<IoModule> file.module).sync()
        except MPIError as error:
            hand_over(error, subject(self))

    # -- error handler

    @classmethod
    def Create_errhandler(cls, errhandler_fn) -> Errhandler:
        """An error handler from function(file, error code) (MPI-4.1, 9.3.3).

        The error is raised as MPI.Exception after the function has returned.
        """
        return create_errhandler("File", errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """The error handler; FILE_NULL's is that of `Open` and `Delete`, and of files opened from then on (MPI-4.1, 14.7)."""
        return get_errhandler(subject(self).attributes)

    def Set_errhandler(self, Errhandler errhandler not None) -> None:
        """Set the error handler of this process for the file (MPI-4.1, 9.3.3)."""
        try:
            set_errhandler(subject(self).attributes, "File", errhandler)
        except MPIError as error:
            hand_over(error, subject(self))

    def Call_errhandler(self, errorcode: int) -> None:
        """Call the error handler (MPI-4.1, 9.5.4)."""
        call_errhandler(subject(self), errorcode)


class Forward:
    """Errors of accesses that went on by themselves are found on the file's communicator; they are the file's."""

    def __init__(self, CoreFile file not None):
        self.file = file

    def __call__(self, communicator, exception):
        handler = self.file.attributes.get("errhandler")
        if handler is not None:
            handler(self.file, exception)


cdef object subject(File handle):
    """What an error of the handle's happens on."""
    return null_file if handle.file is None else handle.file


cdef Py_ssize_t agreed_size(CoreFile file, size, str what) except -1:
    """The size that the file may be set to: on all ranks, or on none."""
    cdef Py_ssize_t nbytes = 0
    problem = None
    file.settle()
    try:
        nbytes = size
        if file.mode & MODE_RDONLY:
            raise MPIError(ERR_READ_ONLY, f"{file.path}: opened with MODE_RDONLY")
        if file.mode & MODE_SEQUENTIAL:
            raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{file.path}: opened with MODE_SEQUENTIAL: its size can't be set")
        if nbytes < 0:
            raise MPIError(ERR_ARG, f"size: {size} is negative")
    except BaseException as error:
        problem = error
    agree(file.communicator, problem, f"{file.path}: can't be {what}")
    same(file.communicator, file.path, f"size {nbytes}")
    return nbytes


cdef View seen(CoreFile file, disp, Datatype etype, Datatype filetype, str datarep):
    """What `Set_view` asks for."""
    cdef Datarep representation
    cdef View view
    if etype.typemap is None or filetype.typemap is None:
        raise MPIError(ERR_TYPE, "etype, filetype: a datatype expected, not DATATYPE_NULL")
    require_committed("etype", etype.typemap)
    require_committed("filetype", filetype.typemap)
    if disp == DISPLACEMENT_CURRENT:
        if not file.mode & MODE_SEQUENTIAL:
            raise MPIError(ERR_ARG, f"{file.path}: disp: DISPLACEMENT_CURRENT is for files opened with MODE_SEQUENTIAL")
        disp = file.view.offset((<IoModule> file.module).tell(True) * file.view.etype.size)
    elif file.mode & MODE_SEQUENTIAL:
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{file.path}: opened with MODE_SEQUENTIAL: disp: not {disp}, but "
                                                  "DISPLACEMENT_CURRENT expected")
    representation = datarep_of(datarep)
    if representation is None:
        view = View(disp, etype.typemap, filetype.typemap)
    else:
        view = View(disp, representation.laid_out(etype.typemap), representation.laid_out(filetype.typemap), representation)
    if not view.ordered and not file.mode & MODE_RDONLY:
        raise MPIError(ERR_TYPE, f"{file.path}: filetype: pieces overlap or go back; that is for files opened with MODE_RDONLY")
    return view


cdef int remember_view(CoreFile file, Py_ssize_t disp, Datatype etype, Datatype filetype, str datarep) except -1:
    file.attributes["view"] = disp, etype.typemap, filetype.typemap, datarep
    return 0


def handle_of(core):
    """A handle on a core file, for the program's error handler."""
    cdef File file = File.__new__(File)
    file.file = core
    return file


def null_handle_of(core):
    """The handle for errors on no file."""
    return FILE_NULL


handle_makers[CoreFile] = handle_of
handle_makers[NullFile] = null_handle_of

FILE_NULL = predefine(File(), "FILE_NULL")
