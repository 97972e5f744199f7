# The envelope of a message: rank, tag and communicator (MPI-4.1, 3.2.3), as a call was given them.
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport ANY_SOURCE, ANY_TAG, PROC_NULL
from ompy.core.status cimport StatusRecord, set_empty
from ompy.mca.pml cimport pml

# Parameter `mpi_param_check`: 0 looks at nothing, 1 at what one rank can know.
cdef int check_level

cdef inline bint is_dest(Communicator comm, int dest, int tag) noexcept:
    return comm is not None and not comm.freed and (check_level < 1 or (
        (0 <= dest < comm.remote_size or dest == PROC_NULL) and 0 <= tag <= pml.tag_upper_bound))


cdef inline bint is_source(Communicator comm, int source, int tag) noexcept:
    return comm is not None and not comm.freed and (check_level < 1 or (
        (0 <= source < comm.remote_size or source == ANY_SOURCE or source == PROC_NULL)
        and (0 <= tag <= pml.tag_upper_bound or tag == ANY_TAG)))


# Nothing where the envelope is good, else its error.
cdef int check_dest(Communicator comm, int dest, int tag) except -1
cdef int check_source(Communicator comm, int source, int tag) except -1
# The error of a bad one.
cdef object wrong_dest(Communicator comm, int dest, int tag)
cdef object wrong_source(Communicator comm, int source, int tag)
# That of a call through COMM_NULL, or through a second handle on what was freed.
cdef object no_communicator(Communicator comm)

# The status of a receive from PROC_NULL.
cdef inline int set_from_nobody(StatusRecord *status) noexcept:
    if status != NULL:
        set_empty(status)
        status.source = PROC_NULL
    return 0
