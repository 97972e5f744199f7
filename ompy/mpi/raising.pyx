# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The one place where the core's errors become the program's (MPI-4.1, 9.3).

No signal handler comes between the end of an operation and its error: what one raises would take the error's place, and the
operation, which is over, would tell nobody.  It runs when the error has reached the program.
"""

from ompy.core.signals cimport defer_handlers, resume_handlers

from ompy.core.errors import MPIError
from ompy.mpi.exceptions import Exception as MPIException


def hand_over(error, subject):
    """Give an error to the error handler of what it happened on, then raise it (MPI-4.1, 9.3).

    The handler is `subject.attributes["errhandler"]`, a callable that takes the core object and the exception; it is
    absent for MPI_ERRORS_RETURN.  MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT do not return from it.

    Parameters:
        error: what a lower layer raised, or a function of the program's that it called: that goes on as it is.
        subject: core Communicator, window or file; None for the errors that belong to no object.
    """
    cdef bint deferred
    if not isinstance(error, MPIError):
        raise error
    deferred = defer_handlers()
    try:
        exception = error if isinstance(error, MPIException) else MPIException(error.code, error.detail)
        attributes = getattr(subject, "attributes", None)
        handler = attributes.get("errhandler") if attributes else None
        if handler is not None:
            handler(subject, exception)
    finally:
        if deferred:
            resume_handlers()
    raise exception from (error.__cause__ if exception is not error else None)
