# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Data access in files: by offset, by a process's own pointer, by the pointer that all share (MPI-4.1, 14.4)."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport INT64_MAX

from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.file cimport (
    EXPLICIT, INDIVIDUAL, MODE_RDONLY, MODE_SEQUENTIAL, MODE_WRONLY, SHARED, Access, File as CoreFile,
)
from ompy.core.request cimport Request as CoreRequest
from ompy.core.signals cimport keep_exceptions, raise_kept
from ompy.core.status cimport StatusRecord, set_empty
from ompy.core.typemap cimport Typemap, predefined
from ompy.core.view cimport View
from ompy.mca.agreement cimport agree, same
from ompy.mca.io cimport IoModule
from ompy.mpi.buffers cimport Spec, keep, parse_recv, parse_send, release
from ompy.mpi.datarep cimport Datarep
from ompy.mpi.request cimport Request, new_request
from ompy.mpi.status cimport Status, record_of

from ompy.core.errors import (
    ERR_ACCESS, ERR_ARG, ERR_FILE, ERR_IO, ERR_OTHER, ERR_READ_ONLY, ERR_UNSUPPORTED_OPERATION, MPIError,
)
from ompy.mpi.raising import hand_over

__all__ = ["SEEK_CUR", "SEEK_END", "SEEK_SET"]

# Where a pointer's offset counts from (MPI-4.1, 14.4.3), numbered as in Open MPI's mpi.h.
SEEK_SET = 600
SEEK_CUR = 602
SEEK_END = 604


class NullFile:
    """See `null_file`."""

    def __init__(self):
        self.attributes = {}


null_file = NullFile()


cdef class Decoding:
    """What a read with a data representation has to do with what came."""
    cdef Datarep datarep
    cdef bytearray data
    cdef size_t address
    cdef Py_ssize_t count
    cdef Typemap typemap
    cdef object owner

    def __call__(self, Py_ssize_t moved) -> int:
        return self.datarep.decode(self.data, moved, self.address, self.count, self.typemap)


cdef class Call:
    """See `file_access.pxd`."""

    def __enter__(self):
        self.file.calls += 1
        if self.collective:
            keep_exceptions()
        return self.file

    def __exit__(self, *raised):
        self.file.calls -= 1
        if self.collective:
            raise_kept()


cdef class FileAccess(Handle):
    """What an open file is used for: data between memory and the view.

    Buffer arguments are message specifications.  Offsets are in etypes of the view, from its start.  Every access moves whole
    etypes; a read gets less where the file ends, and `status` counts what it got.  Collective methods are called by all
    processes of the file, in the same order.

    Errors of all methods: ERR_FILE for FILE_NULL, ERR_ACCESS and ERR_READ_ONLY for what the access mode does not allow,
    ERR_UNSUPPORTED_OPERATION for anything but the shared pointer in a file opened with MODE_SEQUENTIAL, ERR_ARG for an offset
    that no file has, ERR_IO for part of an etype; ERR_NO_SPACE, ERR_QUOTA and ERR_IO as the file system says, with
    the file's name.
    """

    cdef CoreFile live(self):
        if self.file is None:
            raise MPIError(ERR_FILE, "a file expected, not FILE_NULL")
        if self.file.freed:
            raise MPIError(ERR_FILE, f"{self.file.path}: closed through another handle, or by a call that is not over yet")
        return self.file

    cdef Call call(self, bint collective):
        cdef Call call = Call.__new__(Call)
        call.file, call.collective = self.live(), collective
        return call

    cdef int carry_out(self, int how, object offset, object buf, Status status) except -1:
        cdef StatusRecord *record = record_of(status)
        cdef CoreFile file
        cdef Access access
        cdef Spec spec
        cdef Py_ssize_t moved
        try:
            file = self.live()
            file.calls += 1
            try:
                access = prepare(file, how, offset, buf, &spec)
                try:
                    moved = move(file, access)
                    if access.problem is not None:
                        raise access.problem
                    if access.settle is not None:
                        moved = access.settle(moved)
                finally:
                    release(&spec)
            finally:
                file.calls -= 1
            if record != NULL:
                set_empty(record)
                record.nbytes = moved
        except MPIError as error:
            hand_over(error, null_file if self.file is None else self.file)
        return 0

    cdef Request begin(self, int how, object offset, object buf):
        cdef CoreFile file
        cdef Access access
        cdef CoreRequest request
        cdef Spec spec
        try:
            file = self.live()
            file.calls += 1
            try:
                access = prepare(file, how, offset, buf, &spec)
                if access.problem is None:
                    access.owner = (access.owner, keep(&spec))
                request = started(file, access)
                if access.problem is not None:
                    raise access.problem
            finally:
                file.calls -= 1
        except MPIError as error:
            hand_over(error, null_file if self.file is None else self.file)
        return new_request(request, access)

    cdef int begin_split(self, int how, object offset, object buf) except -1:
        cdef CoreFile file
        try:
            file = self.live()
            if file.split is not None:
                raise MPIError(ERR_OTHER, f"{file.path}: a split collective access is under way already")
        except MPIError as error:
            hand_over(error, null_file if self.file is None else self.file)
        file.split = how, self.begin(how, offset, buf)
        return 0

    cdef int end_split(self, int how, Status status) except -1:
        cdef CoreFile file
        try:
            file = self.live()
            if file.split is None or file.split[0] != how:
                raise MPIError(ERR_OTHER, f"{file.path}: no split collective access of this kind is under way")
        except MPIError as error:
            hand_over(error, null_file if self.file is None else self.file)
        finish_split(file, <Request> file.split[1], status)
        return 0

    # -- explicit offsets

    def Read_at(self, offset: int, buf, Status status=None) -> None:
        """Read from an offset on (MPI-4.1, 14.4.2)."""
        self.carry_out(AT, offset, buf, status)

    def Read_at_all(self, offset: int, buf, Status status=None) -> None:
        """The same, collective (MPI-4.1, 14.4.2)."""
        self.carry_out(AT | COLLECTIVE, offset, buf, status)

    def Write_at(self, offset: int, buf, Status status=None) -> None:
        """Write from an offset on (MPI-4.1, 14.4.2)."""
        self.carry_out(AT | WRITING, offset, buf, status)

    def Write_at_all(self, offset: int, buf, Status status=None) -> None:
        """The same, collective (MPI-4.1, 14.4.2)."""
        self.carry_out(AT | WRITING | COLLECTIVE, offset, buf, status)

    def Iread_at(self, offset: int, buf) -> Request:
        """`Read_at` that goes on by itself (MPI-4.1, 14.4.2)."""
        return self.begin(AT, offset, buf)

    def Iread_at_all(self, offset: int, buf) -> Request:
        """`Read_at_all` that goes on by itself (MPI-4.1, 14.4.2)."""
        return self.begin(AT | COLLECTIVE, offset, buf)

    def Iwrite_at(self, offset: int, buf) -> Request:
        """`Write_at` that goes on by itself (MPI-4.1, 14.4.2)."""
        return self.begin(AT | WRITING, offset, buf)

    def Iwrite_at_all(self, offset: int, buf) -> Request:
        """`Write_at_all` that goes on by itself (MPI-4.1, 14.4.2)."""
        return self.begin(AT | WRITING | COLLECTIVE, offset, buf)

    # -- this process's pointer, which moves by what is asked for

    def Read(self, buf, Status status=None) -> None:
        """Read from this process's pointer on (MPI-4.1, 14.4.3)."""
        self.carry_out(OWN, 0, buf, status)

    def Read_all(self, buf, Status status=None) -> None:
        """The same, collective (MPI-4.1, 14.4.3)."""
        self.carry_out(OWN | COLLECTIVE, 0, buf, status)

    def Write(self, buf, Status status=None) -> None:
        """Write from this process's pointer on (MPI-4.1, 14.4.3)."""
        self.carry_out(OWN | WRITING, 0, buf, status)

    def Write_all(self, buf, Status status=None) -> None:
        """The same, collective (MPI-4.1, 14.4.3)."""
        self.carry_out(OWN | WRITING | COLLECTIVE, 0, buf, status)

    def Iread(self, buf) -> Request:
        """`Read` that goes on by itself (MPI-4.1, 14.4.3)."""
        return self.begin(OWN, 0, buf)

    def Iread_all(self, buf) -> Request:
        """`Read_all` that goes on by itself (MPI-4.1, 14.4.3)."""
        return self.begin(OWN | COLLECTIVE, 0, buf)

    def Iwrite(self, buf) -> Request:
        """`Write` that goes on by itself (MPI-4.1, 14.4.3)."""
        return self.begin(OWN | WRITING, 0, buf)

    def Iwrite_all(self, buf) -> Request:
        """`Write_all` that goes on by itself (MPI-4.1, 14.4.3)."""
        return self.begin(OWN | WRITING | COLLECTIVE, 0, buf)

    def Seek(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move this process's pointer (MPI-4.1, 14.4.3).

        Parameters:
            whence: SEEK_SET: from the start of the view, SEEK_CUR: from where it is, SEEK_END: from the end of the file.
        """
        seek(self, offset, whence, False)

    def Get_position(self) -> int:
        """Where this process's pointer is, in etypes (MPI-4.1, 14.4.3)."""
        return position(self, False)

    def Get_byte_offset(self, offset: int) -> int:
        """Where in the file an offset in the view is, in bytes (MPI-4.1, 14.4.3)."""
        cdef CoreFile file
        try:
            file = self.live()
            check(file, AT | WRITING if file.mode & MODE_WRONLY else AT, offset)
            if file.view.etype.size and offset > INT64_MAX // file.view.etype.size:
                raise MPIError(ERR_ARG, f"offset: {offset} etypes are more bytes than a file can have")
            return file.view.offset_of(offset * file.view.etype.size)
        except MPIError as error:
            hand_over(error, null_file if self.file is None else self.file)

    # -- the pointer that all processes share

    def Read_shared(self, buf, Status status=None) -> None:
        """Read from the shared pointer on (MPI-4.1, 14.4.4)."""
        self.carry_out(COMMON, 0, buf, status)

    def Write_shared(self, buf, Status status=None) -> None:
        """Write from the shared pointer on (MPI-4.1, 14.4.4)."""
        self.carry_out(COMMON | WRITING, 0, buf, status)

    def Iread_shared(self, buf) -> Request:
        """`Read_shared` that goes on by itself (MPI-4.1, 14.4.4)."""
        return self.begin(COMMON, 0, buf)

    def Iwrite_shared(self, buf) -> Request:
        """`Write_shared` that goes on by itself (MPI-4.1, 14.4.4)."""
        return self.begin(COMMON | WRITING, 0, buf)

    def Read_ordered(self, buf, Status status=None) -> None:
        """Read from the shared pointer on, one rank's part behind the other's; collective (MPI-4.1, 14.4.4)."""
        self.carry_out(COMMON | COLLECTIVE, 0, buf, status)

    def Write_ordered(self, buf, Status status=None) -> None:
        """Write from the shared pointer on, one rank's part behind the other's; collective (MPI-4.1, 14.4.4)."""
        self.carry_out(COMMON | WRITING | COLLECTIVE, 0, buf, status)

    def Seek_shared(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move the shared pointer, as `Seek`; collective, with the same arguments (MPI-4.1, 14.4.4)."""
        seek(self, offset, whence, True)

    def Get_position_shared(self) -> int:
        """Where the shared pointer is, in etypes (MPI-4.1, 14.4.4)."""
        return position(self, True)

    # -- collective accesses in two calls, at most one of a file at a time

    def Read_at_all_begin(self, offset: int, buf) -> None:
        """Begin `Read_at_all` (MPI-4.1, 14.4.5)."""
        self.begin_split(AT | COLLECTIVE, offset, buf)

    def Read_at_all_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(AT | COLLECTIVE, status)

    def Write_at_all_begin(self, offset: int, buf) -> None:
        """Begin `Write_at_all` (MPI-4.1, 14.4.5)."""
        self.begin_split(AT | WRITING | COLLECTIVE, offset, buf)

    def Write_at_all_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(AT | WRITING | COLLECTIVE, status)

    def Read_all_begin(self, buf) -> None:
        """Begin `Read_all` (MPI-4.1, 14.4.5)."""
        self.begin_split(OWN | COLLECTIVE, 0, buf)

    def Read_all_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(OWN | COLLECTIVE, status)

    def Write_all_begin(self, buf) -> None:
        """Begin `Write_all` (MPI-4.1, 14.4.5)."""
        self.begin_split(OWN | WRITING | COLLECTIVE, 0, buf)

    def Write_all_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(OWN | WRITING | COLLECTIVE, status)

    def Read_ordered_begin(self, buf) -> None:
        """Begin `Read_ordered` (MPI-4.1, 14.4.5)."""
        self.begin_split(COMMON | COLLECTIVE, 0, buf)

    def Read_ordered_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(COMMON | COLLECTIVE, status)

    def Write_ordered_begin(self, buf) -> None:
        """Begin `Write_ordered` (MPI-4.1, 14.4.5)."""
        self.begin_split(COMMON | WRITING | COLLECTIVE, 0, buf)

    def Write_ordered_end(self, buf, Status status=None) -> None:
        """End it; `buf` is that of its begin (MPI-4.1, 14.4.5)."""
        self.end_split(COMMON | WRITING | COLLECTIVE, status)


cdef int check(CoreFile file, int how, Py_ssize_t offset) except -1:
    if how & WRITING:
        if file.mode & MODE_RDONLY:
            raise MPIError(ERR_READ_ONLY, f"{file.path}: opened with MODE_RDONLY")
    elif file.mode & MODE_WRONLY:
        raise MPIError(ERR_ACCESS, f"{file.path}: opened with MODE_WRONLY, so it can't be read")
    if file.mode & MODE_SEQUENTIAL and not how & COMMON:
        raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{file.path}: opened with MODE_SEQUENTIAL, which leaves the shared "
                                                  "pointer alone to go by")
    if offset < 0:
        raise MPIError(ERR_ARG, f"offset: {offset} is before the start of the view")
    return 0


cdef Access prepare(CoreFile file, int how, object offset, object buf, Spec *spec):
    """What the arguments ask for, and `buf` parsed.  Where they are wrong, a collective access has this for its problem."""
    cdef Access access
    cdef Py_ssize_t start
    cdef bint parsed = False
    try:
        start = offset
        check(file, how, start)
        if how & WRITING:
            parse_send(buf, spec)
        else:
            parse_recv(buf, spec)
        parsed = True
        return access_of(file, how, start, spec)
    except BaseException as error:
        if parsed:
            release(spec)
        if not how & COLLECTIVE:
            raise
        memset(spec, 0, sizeof(Spec))
        access = access_like(file, how)
        access.refuse(error)
        return access


cdef Py_ssize_t move(CoreFile file, Access access) except -1:
    """Carry it out; returns bytes of data."""
    cdef IoModule module = file.module
    if not access.collective:
        return module.write(access) if access.writing else module.read(access)
    keep_exceptions()
    try:
        return module.write(access) if access.writing else module.read(access)
    finally:
        raise_kept()


cdef CoreRequest started(CoreFile file, Access access):
    """The same, going on by itself."""
    cdef IoModule module = file.module
    if not access.collective:
        return module.iwrite(access) if access.writing else module.iread(access)
    keep_exceptions()
    try:
        return module.iwrite(access) if access.writing else module.iread(access)
    finally:
        raise_kept()


cdef int finish_split(CoreFile file, Request request, Status status) except -1:
    """What a signal handler's exception leaves under way is ended by the next call."""
    try:
        request.Wait(status)
    finally:
        if request.request is None and file.split is not None and file.split[1] is request:
            file.split = None
    return 0


cdef Access access_like(CoreFile file, int how):
    """An access of that kind, to nothing yet."""
    cdef Access access = Access.__new__(Access)
    access.typemap = predefined(BASIC_BYTE)
    access.writing, access.collective = how & WRITING != 0, how & COLLECTIVE != 0
    access.pointer = SHARED if how & COMMON else INDIVIDUAL if how & OWN else EXPLICIT
    access.view = file.view
    return access


cdef Access access_of(CoreFile file, int how, Py_ssize_t offset, Spec *spec):
    """The access that arguments ask for; with a data representation its memory is what the file has."""
    cdef Access access = access_like(file, how)
    cdef View view = file.view
    cdef Typemap typemap = <Typemap> spec.typemap
    access.address, access.count, access.typemap = spec.address, spec.count, typemap
    access.offset = offset
    access.nbytes = spec.count * typemap.size
    if view.representation is not None:
        represent(access, <Datarep> view.representation)
    if access.nbytes % view.etype.size:
        raise MPIError(ERR_IO, f"{file.path}: buf: {access.nbytes} bytes of data are no whole etypes of {view.etype.size}")
    return access


cdef int represent(Access access, Datarep datarep) except -1:
    cdef Decoding decoding = Decoding.__new__(Decoding)
    decoding.datarep = datarep
    decoding.address, decoding.count, decoding.typemap = access.address, access.count, access.typemap
    if access.writing:
        decoding.data = datarep.encode(access.address, access.count, access.typemap)
        access.settle = Native(access.nbytes)
    else:
        decoding.data = bytearray(access.count * datarep.size_of(access.typemap))
        access.settle = decoding
    access.address = <size_t> PyByteArray_AS_STRING(decoding.data)
    access.count = access.nbytes = len(decoding.data)
    access.typemap = predefined(BASIC_BYTE)
    access.owner = decoding
    return 0


cdef class Native:
    """What a write with a data representation has moved, in bytes of the program's."""
    cdef Py_ssize_t nbytes

    def __init__(self, Py_ssize_t nbytes):
        self.nbytes = nbytes

    def __call__(self, Py_ssize_t moved) -> int:
        return self.nbytes


cdef int seek(FileAccess handle, offset, whence, bint shared) except -1:
    cdef CoreFile file
    cdef Py_ssize_t distance = 0
    problem = None
    try:
        with handle.call(shared) as file:
            try:
                distance = offset
                if file.mode & MODE_SEQUENTIAL:
                    raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{file.path}: opened with MODE_SEQUENTIAL: no pointer moves")
                if whence not in (SEEK_SET, SEEK_CUR, SEEK_END):
                    raise MPIError(ERR_ARG, f"whence: SEEK_SET, SEEK_CUR or SEEK_END expected, not {whence}")
            except BaseException as error:
                problem = error
            if shared:
                file.settle()
                agree(file.communicator, problem, f"{file.path}: the shared pointer can't be moved")
                same(file.communicator, file.path, f"offset {distance}, whence {whence}")
            elif problem is not None:
                raise problem
            (<IoModule> file.module).seek(distance, whence, shared)
    except MPIError as error:
        hand_over(error, null_file if handle.file is None else handle.file)
    return 0


cdef Py_ssize_t position(FileAccess handle, bint shared) except -1:
    cdef CoreFile file
    try:
        with handle.call(False) as file:
            if file.mode & MODE_SEQUENTIAL and not shared:
                raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{file.path}: opened with MODE_SEQUENTIAL, which leaves the "
                                                          "shared pointer alone to go by")
            return (<IoModule> file.module).tell(shared)
    except MPIError as error:
        hand_over(error, null_file if handle.file is None else handle.file)
