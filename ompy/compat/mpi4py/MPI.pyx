# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""`mpi4py.MPI` is `ompy.MPI`: the same module object under both names, but for extension modules (`ompy.mpi.foreign`).

A compiled module, because programs and tools that were written for mpi4py open `MPI.__file__` as a shared library and ask it
which MPI it is.  The functions of C that answer this are here, and the one by which `python -m mpi4py --mpi-library` finds the
library; there are no others.
"""

import sys

from libc.string cimport memcpy

from ompy import MPI
from ompy.mpi.foreign import Gate
from ompy.mpi.environment import VERSION, SUBVERSION, Get_abi_version, Get_library_version

cdef int version_number = VERSION
cdef int subversion_number = SUBVERSION
cdef int abi_major, abi_minor
abi_major, abi_minor = Get_abi_version()
cdef bytes words = Get_library_version().encode()
cdef const char *library = words
cdef int library_length = len(words)


cdef public int MPI_Get_version(int *version, int *subversion) noexcept nogil:
    """Version of the standard (MPI-4.1, 9.1.1)."""
    version[0] = version_number
    subversion[0] = subversion_number
    return 0


cdef public int MPI_Get_library_version(char *version, int *resultlen) noexcept nogil:
    """Name and version of this library (MPI-4.1, 9.1.1)."""
    memcpy(version, library, library_length + 1)
    resultlen[0] = library_length
    return 0


cdef public int MPI_Abi_get_version(int *major, int *minor) noexcept nogil:
    """Version of the binary interface (MPI-5.0, 20.2): -1 and -1, this library has none."""
    major[0] = abi_major
    minor[0] = abi_minor
    return 0


cdef public int MPI_Init(int *argc, char ***argv) noexcept with gil:
    """Initialise MPI (MPI-4.1, 11.2.1), in which a Python program may be ahead: its import has done it."""
    try:
        if not MPI.Is_initialized():
            MPI.Init()
    except MPI.Exception as error:
        return error.Get_error_code()
    return 0


MPI.__file__ = __file__
sys.modules[__name__] = Gate(MPI)
