# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""The envelope of a message: rank, tag and communicator (MPI-4.1, 3.2.3)."""

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport ANY_SOURCE, PROC_NULL
from ompy.mca.pml cimport pml

from ompy.core.errors import ERR_COMM, ERR_RANK, ERR_TAG, MPIError

check_level = 1


def set_check_level(int level) -> None:
    """How much of the arguments is checked; the value of the parameter `mpi_param_check`."""
    global check_level
    check_level = level


cdef int check_dest(Communicator comm, int dest, int tag) except -1:
    if not is_dest(comm, dest, tag):
        raise wrong_dest(comm, dest, tag)
    return 0


cdef int check_source(Communicator comm, int source, int tag) except -1:
    if not is_source(comm, source, tag):
        raise wrong_source(comm, source, tag)
    return 0


cdef object no_communicator(Communicator comm):
    return MPIError(ERR_COMM, "a communicator expected, not COMM_NULL" if comm is None else
                    "this communicator was freed through another handle")


cdef object wrong_dest(Communicator comm, int dest, int tag):
    if comm is None or comm.freed:
        return no_communicator(comm)
    if dest != PROC_NULL and not 0 <= dest < comm.remote_size:
        return wrong_rank("dest", dest, comm, "PROC_NULL")
    return MPIError(ERR_TAG, f"tag: 0 to {pml.tag_upper_bound} expected, not {tag}")


cdef object wrong_source(Communicator comm, int source, int tag):
    if comm is None or comm.freed:
        return no_communicator(comm)
    if source != PROC_NULL and source != ANY_SOURCE and not 0 <= source < comm.remote_size:
        return wrong_rank("source", source, comm, "ANY_SOURCE or PROC_NULL")
    return MPIError(ERR_TAG, f"tag: 0 to {pml.tag_upper_bound} or ANY_TAG expected, not {tag}")


cdef object wrong_rank(str name, int rank, Communicator comm, str others):
    where = comm.name or "the communicator"
    return MPIError(ERR_RANK, f"{name}: 0 to {comm.remote_size - 1} (the ranks of {where}) or {others} expected, not {rank}")
