# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""The integers behind MPI objects, for code in other languages (mpi4py's `_sizeof`, `_addressof`, `_handleof`)."""

from ompy.core.status cimport StatusRecord
from ompy.mpi.handle cimport Handle, expose
from ompy.mpi.status cimport Status


def _sizeof(arg: object) -> int:
    """Bytes of what stands for an MPI object: of a handle's integer, or of a status; `arg` may be a class."""
    kind = arg if isinstance(arg, type) else type(arg)
    if issubclass(kind, Status):
        return sizeof(StatusRecord)
    if issubclass(kind, Handle):
        return sizeof(size_t)
    raise TypeError(f"arg: an MPI object or class expected, not {kind.__name__}")


def _addressof(arg: object) -> int:
    """Address of a handle's integer, or of a status.  An integer that is written there is taken over by the handle."""
    if isinstance(arg, Status):
        return <size_t> &(<Status> arg).record
    if isinstance(arg, Handle):
        return <size_t> expose(<Handle> arg)
    raise TypeError(f"arg: an MPI object expected, not {type(arg).__name__}")


def _handleof(arg: object) -> int:
    """A handle's integer, or the address of a status."""
    if isinstance(arg, Status):
        return <size_t> &(<Status> arg).record
    if isinstance(arg, Handle):
        return arg.handle
    raise TypeError(f"arg: an MPI object expected, not {type(arg).__name__}")
