# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Error handlers (MPI-4.1, 9.3)."""

from ompy.mpi.handle cimport Handle, forget, predefine

from ompy.core.errors import ERR_ARG, ERR_ERRHANDLER
from ompy.mpi.exceptions import Exception as MPIException

__all__ = ["ERRHANDLER_NULL", "ERRORS_ABORT", "ERRORS_ARE_FATAL", "ERRORS_RETURN", "Errhandler"]

# mpi4py bounds the handlers that a program may hold at a time, and its programs count on the refusal.
cdef int MOST_OF_A_KIND = 32
cdef dict in_use = {"Comm": 0, "Win": 0, "File": 0, "Session": 0}

handle_makers = {}


cdef class ErrorHandler:
    """What a handle of class Errhandler stands for."""

    def __init__(self, str name, str kind="", object function=None):
        self.name = name
        self.kind = kind
        self.function = function

    def __call__(self, object subject, object exception):
        """Deal with an error on a core object; the caller raises the exception afterwards."""
        if self.function is not None:
            self.consult(handle_makers[type(subject)](subject), exception.code)
        elif self is not RETURN:
            abort(exception.code, f"{exception} (on {subject!r}, which has {self.name})")

    cdef int consult(self, object handle, int code) except -1:
        # The program relies on its handler to decide what an error means, so one that fails leaves nothing to go by.
        try:
            self.function(handle, code)
        except BaseException:
            import traceback
            abort(code, f"the error handler {self.name} failed:\n{traceback.format_exc()}")
        return 0


cdef ErrorHandler FATAL = ErrorHandler("ERRORS_ARE_FATAL")
cdef ErrorHandler RETURN = ErrorHandler("ERRORS_RETURN")
cdef ErrorHandler ABORT = ErrorHandler("ERRORS_ABORT")


cdef class Errhandler(Handle):
    """
    What happens when a call on a communicator, window, file or session fails (MPI-4.1, 9.3).

    ERRORS_RETURN, the default as in mpi4py, raises `MPI.Exception`; ERRORS_ARE_FATAL and ERRORS_ABORT end the job.
    """

    def __cinit__(self, Errhandler errhandler=None):
        if errhandler is not None:
            self.errhandler = errhandler.errhandler

    cdef type family(self):
        return Errhandler

    cdef object core(self):
        return self.errhandler

    cdef int become(self, object core) except -1:
        self.errhandler = core
        return 0

    def Free(self) -> None:
        """Let go of the handler; the handle becomes ERRHANDLER_NULL (MPI-4.1, 9.3.4), but for the predefined constants.

        Objects that it is set on keep using it.
        """
        cdef ErrorHandler errhandler = self.errhandler
        if errhandler is None:
            raise MPIException(ERR_ERRHANDLER, "a handler expected, not ERRHANDLER_NULL")
        if errhandler.counted:
            errhandler.counted = False
            in_use[errhandler.kind] -= 1
            forget(self)
        if not self.constant:
            self.errhandler = None


cdef Errhandler new_errhandler(ErrorHandler core):
    cdef Errhandler errhandler = Errhandler.__new__(Errhandler)
    errhandler.errhandler = core
    return errhandler


cdef Errhandler create_errhandler(str kind, object function):
    if not callable(function):
        raise TypeError(f"errhandler_fn: a function of ({kind}, error code) expected, not {type(function).__name__}")
    if in_use[kind] >= MOST_OF_A_KIND:
        raise RuntimeError(f"at most {MOST_OF_A_KIND} error handlers for {kind} objects: Free some first")
    in_use[kind] += 1
    cdef ErrorHandler errhandler = ErrorHandler(getattr(function, "__name__", "errhandler"), kind, function)
    errhandler.counted = True
    return new_errhandler(errhandler)


cdef Errhandler get_errhandler(dict attributes):
    return new_errhandler(attributes.get("errhandler", RETURN))


cdef int set_errhandler(dict attributes, str kind, Errhandler errhandler) except -1:
    if errhandler is None or errhandler.errhandler is None:
        raise MPIException(ERR_ERRHANDLER, "errhandler: a handler expected, not ERRHANDLER_NULL")
    if errhandler.errhandler.kind not in ("", kind):
        raise MPIException(ERR_ARG, f"errhandler: made for a {errhandler.errhandler.kind}, not a {kind}")
    attributes["errhandler"] = errhandler.errhandler
    return 0


cdef int call_errhandler(object subject, int code) except -1:
    cdef ErrorHandler errhandler = subject.attributes.get("errhandler", RETURN)
    if code != 0 or errhandler.function is not None:
        errhandler(subject, MPIException(code))
    return 0


cdef int abort(int code, str message) except -1:
    from ompy.mpi.environment import abort as end_job
    end_job(code, message)
    return 0


ERRHANDLER_NULL = predefine(Errhandler(), "ERRHANDLER_NULL")
ERRORS_ARE_FATAL = predefine(new_errhandler(FATAL), "ERRORS_ARE_FATAL")
ERRORS_RETURN = predefine(new_errhandler(RETURN), "ERRORS_RETURN")
ERRORS_ABORT = predefine(new_errhandler(ABORT), "ERRORS_ABORT")
