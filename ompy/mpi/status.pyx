# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""The status of a receive (MPI-4.1, 3.2.5)."""

from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo

from ompy.core.constants cimport UNDEFINED
from ompy.core.status cimport set_empty
from ompy.mpi.datatype cimport Datatype

from ompy.core.errors import ERR_COUNT, ERR_TYPE
from ompy.mpi.exceptions import Exception as MPIException

# Where the fields are in the list of integers that stands for a status in Fortran (MPI-4.1, 3.2.5).
F_SOURCE = 0
F_TAG = 1
F_ERROR = 2
F_STATUS_SIZE = 6

# That a status can tell of.
MOST_BYTES = 2**63 - 1


cdef class Status:
    """
    Source, tag, error class, size and cancellation of a finished operation (MPI-4.1, 3.2.5).

    A new one is empty: ANY_SOURCE, ANY_TAG, SUCCESS, no bytes.
    """

    def __cinit__(self, Status status=None):
        if status is None:
            set_empty(&self.record)
        else:
            self.record = status.record

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return fields(self) == fields(<Status> other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return fields(self) != fields(<Status> other)

    def __reduce__(self):
        from copyreg import __newobj__
        return __newobj__, (type(self),), self.__getstate__()

    def __getstate__(self) -> dict[str, int]:
        return dict(zip(("source", "tag", "error", "cancelled", "count"), fields(self), strict=True))

    def __setstate__(self, state: dict[str, int]) -> None:
        self.record.source = state["source"]
        self.record.tag = state["tag"]
        self.record.error = state["error"]
        self.record.cancelled = state.get("cancelled", False)
        self.record.nbytes = state.get("count", 0)

    def Get_source(self) -> int:
        """Rank of the sender in the communicator; PROC_NULL or ANY_SOURCE where there was none (MPI-4.1, 3.2.5)."""
        return self.record.source

    def Set_source(self, source: int) -> None:
        """Set the source (MPI-4.1, 3.2.5)."""
        self.record.source = source

    @property
    def source(self) -> int:
        """Rank of the sender (MPI-4.1, 3.2.5)."""
        return self.record.source

    @source.setter
    def source(self, value: int) -> None:
        self.record.source = value

    def Get_tag(self) -> int:
        """Tag of the message (MPI-4.1, 3.2.5)."""
        return self.record.tag

    def Set_tag(self, tag: int) -> None:
        """Set the tag (MPI-4.1, 3.2.5)."""
        self.record.tag = tag

    @property
    def tag(self) -> int:
        """Tag of the message (MPI-4.1, 3.2.5)."""
        return self.record.tag

    @tag.setter
    def tag(self, value: int) -> None:
        self.record.tag = value

    def Get_error(self) -> int:
        """Error class of the operation; set by calls that return ERR_IN_STATUS (MPI-4.1, 3.2.5)."""
        return self.record.error

    def Set_error(self, error: int) -> None:
        """Set the error class (MPI-4.1, 3.2.5)."""
        self.record.error = error

    @property
    def error(self) -> int:
        """Error class of the operation (MPI-4.1, 3.2.5)."""
        return self.record.error

    @error.setter
    def error(self, value: int) -> None:
        self.record.error = value

    def Get_count(self, Datatype datatype=None) -> int:
        """Whole elements of `datatype` (default BYTE) that arrived; UNDEFINED when they end within one (MPI-4.1, 3.2.5).

        Raises:
            Exception: ERR_TYPE for DATATYPE_NULL.
        """
        cdef Py_ssize_t size
        if datatype is None:
            return self.record.nbytes
        check_type(datatype)
        size = datatype.typemap.size
        if size == 0:
            return 0 if self.record.nbytes == 0 else UNDEFINED
        return self.record.nbytes // size if self.record.nbytes % size == 0 else UNDEFINED

    @property
    def count(self) -> int:
        """Bytes that arrived (MPI-4.1, 3.2.5)."""
        return self.record.nbytes

    @count.setter
    def count(self, value: int) -> None:
        self.record.nbytes = value

    def Get_elements(self, Datatype datatype) -> int:
        """Basic elements of `datatype` that arrived; UNDEFINED when they end within one (MPI-4.1, 5.1.11)."""
        check_type(datatype)
        cdef Py_ssize_t elements = datatype.typemap.elements_in(self.record.nbytes)
        return UNDEFINED if elements < 0 else elements

    def Set_elements(self, Datatype datatype, count: int) -> None:
        """Say that `count` basic elements of `datatype` arrived: for a generalised request's query (MPI-4.1, 13.3).

        Raises:
            Exception: ERR_COUNT for a negative count, or more bytes than a status can tell of.
        """
        check_type(datatype)
        most = MOST_BYTES // max(<object> datatype.typemap.size, 1)
        if not 0 <= count <= most:
            raise MPIException(ERR_COUNT, f"count: 0 to {most} expected, got {count}")
        self.record.nbytes = datatype.typemap.bytes_of(count)

    def Is_cancelled(self) -> bool:
        """Whether the operation was cancelled (MPI-4.1, 3.8.4)."""
        return bool(self.record.cancelled)

    def Set_cancelled(self, flag: bool) -> None:
        """Say whether the operation was cancelled: for a generalised request's query (MPI-4.1, 13.3)."""
        self.record.cancelled = bool(flag)

    @property
    def cancelled(self) -> bool:
        """Whether the operation was cancelled (MPI-4.1, 3.8.4)."""
        return bool(self.record.cancelled)

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        self.record.cancelled = bool(value)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, &self.record, sizeof(StatusRecord), 0, flags)

    def tomemory(self) -> memoryview:
        """The status as the integers that it is made of, to be read and written (MPI-4.1, 3.2.5)."""
        return memoryview(self).cast("i")

    def py2f(self) -> list[int]:
        """The status as the integers of Fortran (MPI-4.1, 19.3.5)."""
        cdef size_t nbytes = <size_t> self.record.nbytes
        return [self.record.source, self.record.tag, self.record.error, int(self.record.cancelled),
                <int> (nbytes & 0x7fffffff), <int> (nbytes >> 31)]

    @classmethod
    def f2py(cls, arg: list[int]) -> Status:
        """A status from the integers of Fortran (MPI-4.1, 19.3.5)."""
        cdef Status status = cls.__new__(cls)
        if len(arg) != 6:
            raise ValueError(f"arg: {F_STATUS_SIZE} integers expected, not {len(arg)}")
        status.record.source, status.record.tag, status.record.error = arg[0], arg[1], arg[2]
        status.record.cancelled = arg[3]
        status.record.nbytes = (<Py_ssize_t> arg[5] << 31) | <Py_ssize_t> arg[4]
        return status


cdef tuple fields(Status status):
    cdef StatusRecord *record = &status.record
    return record.source, record.tag, record.error, bool(record.cancelled), record.nbytes


cdef int check_type(Datatype datatype) except -1:
    if datatype is None or datatype.typemap is None:
        raise MPIException(ERR_TYPE, "datatype: a datatype expected, not DATATYPE_NULL")
    return 0
