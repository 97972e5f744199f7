# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
# distutils: extra_compile_args=-Os
"""Requests that the program carries out itself (MPI-4.1, 13.2)."""

from ompy.core.status cimport set_empty
from ompy.mpi.status cimport Status

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mpi.exceptions import Exception as MPIException


cdef class GeneralizedRequest(Request):
    """What a Grequest stands for: three functions of the program's and the arguments that they share."""

    def __init__(self, query, free, cancel, args, kwargs):
        self.query_function = query
        self.free_function = free
        self.cancel_function = cancel
        self.arguments = () if args is None else tuple(args)
        self.keywords = {} if kwargs is None else dict(kwargs)
        self.begin()

    cdef int query(self) except -1:
        cdef Status status = Status.__new__(Status)
        set_empty(&self.status)
        if self.query_function is not None:
            call(self.query_function, (status, *self.arguments), self.keywords)
            self.status = status.record
            if self.cancel_function is None:
                self.status.cancelled = False
        return 0

    cdef int free(self) except -1:
        if not self.complete:
            self.unwanted = True
            return 0
        function, self.free_function = self.free_function, None
        if function is not None:
            call(function, self.arguments, self.keywords)
        return 0

    cpdef int cancel(self) except -1:
        if self.cancel_function is not None:
            call(self.cancel_function, (bool(self.complete), *self.arguments), self.keywords)
        return 0

    def complete_now(self):
        """The program says that the operation is over."""
        self.finish()
        if self.unwanted:
            self.free()


cdef int call(object function, tuple arguments, dict keywords) except -1:
    # The program may never look at the wait that this runs in, so its traceback is printed here; the wait gets a class.
    try:
        function(*arguments, **keywords)
    except BaseException as error:
        import traceback
        traceback.print_exc()
        if isinstance(error, MPIError):
            raise MPIException(error.code, error.detail) from error
        raise MPIException(ERR_OTHER, f"{function!r} failed: {error}") from error
    return 0
