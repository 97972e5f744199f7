# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
# distutils: extra_compile_args=-Os
"""Whether all ranks mean the same collective (parameter `mpi_param_check 2`).

Before each collective every rank says in six numbers what it is about to call:

    function   form   root   operation   basic type   elements of it

and all compare.  What a rank says of its buffer is the part whose type signature MPI wants to be the same on every rank:
the buffer of a bcast or a reduction, one block of a gather, scatter, allgather or alltoall.  Forms with counts for each
rank may differ from rank to rank, so that their lengths aren't compared.
"""

from ompy.core.basic cimport BASIC_PACKED, basics
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport (
    ALLGATHER, ALLREDUCE, ALLTOALL, BCAST, EXSCAN, GATHER, GATHERV, REDUCE, REDUCE_SCATTER_BLOCK, SCAN, SCATTER, SCATTERV,
    CollectiveCall,
)
from ompy.mpi.op cimport Op
from ompy.runtime.intercommunicators cimport meet
from ompy.runtime.internal_messages cimport allgather

from ompy.core.errors import ERR_COUNT, ERR_NOT_SAME, ERR_OP, ERR_ROOT, ERR_TYPE, MPIError
from ompy.mca.coll import FUNCTIONS

check_level = 0

# Columns of a row.
cdef enum:
    FUNCTION, FORM, ROOT_RANK, OPERATION, BASIC, ELEMENTS

# A type that matches any, a length that matches any, and elements of several types: their length is then in bytes.
cdef enum:
    ANYTHING = -3
    UNKNOWN = -1
    MIXTURE = -1

cdef tuple OPERATIONS = (
    "MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MAXLOC", "MINLOC", "REPLACE", "NO_OP",
)
cdef tuple COMPARABLE = (
    BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN,
)
cdef tuple ROOTED = (BCAST, GATHER, GATHERV, SCATTER, SCATTERV, REDUCE)


def set_check_level(int level) -> None:
    """How much of the arguments is checked; the value of the parameter `mpi_param_check`."""
    global check_level
    check_level = level


cdef int compare_ranks(int function, Form form, CollectiveCall call, Communicator comm) except -1:
    cdef list row = describe(function, form, call, comm)
    if comm.is_inter:
        local, remote = meet(comm, row)
        return compare_between(local, remote)
    return compare(allgather(comm, row))


cdef int compare_objects(int function, object op, int root, Communicator comm) except -1:
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    call.root = root
    if isinstance(op, Op):
        call.operation = (<Op> op).operation
    return compare_ranks(function, OBJECTS, call, comm)


cdef list describe(int function, Form form, CollectiveCall call, Communicator comm):
    cdef Typemap typemap = call.send_type
    cdef Py_ssize_t count = call.send_count
    cdef bint receives = function == REDUCE_SCATTER_BLOCK or call.send_in_place or call.send_type is None
    operation = 0 if call.operation is None else number_of(call.operation.name)
    if function == GATHER and not comm.is_inter:
        receives = comm.rank == call.root
    elif function == SCATTER and not comm.is_inter:
        receives = comm.rank != call.root
    if receives:
        typemap, count = call.recv_type, call.recv_count
    if function not in COMPARABLE or typemap is None:
        return [function, form, call.root, operation, ANYTHING, 0]
    if typemap.basic == BASIC_PACKED:
        return [function, form, call.root, operation, ANYTHING, UNKNOWN]
    if typemap.basic < 0:
        return [function, form, call.root, operation, MIXTURE, count * typemap.size]
    elements = count * typemap.size // predefined(typemap.basic).size
    return [function, form, call.root, operation, typemap.basic if elements else ANYTHING, elements]


cdef int number_of(str name):
    """A number for an operation's name, the same on every rank; not 0."""
    from zlib import crc32
    return crc32(name.encode()) % 0x7FFFFFFE + 1


cdef str call_name(list row):
    name = FUNCTIONS[row[FUNCTION]]
    if row[FORM] == OBJECTS:
        return name
    if row[FORM] == NONBLOCKING:
        return "I" + name
    return name.capitalize() + ("_init" if row[FORM] == PERSISTENT else "")


cdef str operation_name(list row):
    for name in OPERATIONS:
        if number_of(name) == row[OPERATION]:
            return name
    return "an operation of the program's" if row[OPERATION] else "none"


cdef str type_name(list row):
    if row[BASIC] == ANYTHING:
        return "any type"
    return "several types" if row[BASIC] == MIXTURE else basics[<int> row[BASIC]].name.decode()


cdef str count_name(list row):
    if row[ELEMENTS] == 0:
        return "nothing"
    return f"{row[ELEMENTS]} bytes" if row[BASIC] == MIXTURE else f"{row[ELEMENTS]} x {type_name(row)}"


cdef int disagree(list rows, object key, object words, int code, str what) except -1:
    """Raise when the rows' keys differ; rows whose key is None have no say."""
    groups = {}
    for rank, row in enumerate(rows):
        value = key(row)
        if value is not None:
            groups.setdefault(value, []).append(rank)
    if len(groups) < 2:
        return 0
    parts = []
    for ranks in sorted(groups.values(), key=len, reverse=True):
        label = "rank" if len(ranks) == 1 else "ranks"
        parts.append(f"{words(rows[ranks[0]])} on {label} {', '.join(map(str, ranks))}")
    raise MPIError(code, f"{what}: {'; '.join(parts)}")


cdef int compare(list rows) except -1:
    disagree(rows, lambda row: (row[FUNCTION], row[FORM]), call_name, ERR_NOT_SAME, "the ranks call different collectives")
    name = call_name(rows[0])
    if rows[0][FUNCTION] in ROOTED:
        disagree(rows, lambda row: row[ROOT_RANK], lambda row: f"root {row[ROOT_RANK]}", ERR_ROOT,
                 f"{name}: the ranks name different roots")
    disagree(rows, lambda row: row[OPERATION] or None, operation_name, ERR_OP, f"{name}: the ranks name different operations")
    disagree(rows, lambda row: None if row[BASIC] == ANYTHING else row[BASIC], type_name, ERR_TYPE,
             f"{name}: the ranks' buffers have different types")
    disagree(rows, lambda row: None if row[ELEMENTS] == UNKNOWN else row[ELEMENTS], count_name, ERR_COUNT,
             f"{name}: the ranks' buffers have different lengths")
    return 0


cdef int compare_between(list local, list remote) except -1:
    both = local + remote
    if len(local) and len(remote):
        disagree(both, lambda row: (row[FUNCTION], row[FORM]), call_name, ERR_NOT_SAME,
                 "the ranks (the local group's, then the remote one's) call different collectives")
    name = call_name(local[0])
    disagree(both, lambda row: row[OPERATION] or None, operation_name, ERR_OP,
             f"{name}: the ranks (the local group's, then the remote one's) name different operations")
    if local[0][FUNCTION] in ROOTED and not (fit(local, remote) or fit(remote, local)):
        named = [[row[ROOT_RANK] for row in rows] for rows in (local, remote)]
        raise MPIError(ERR_ROOT, f"{name}: the roots don't fit: {named[0]} in the local group, {named[1]} in the remote one; "
                                 "one group names MPI.ROOT once and MPI.PROC_NULL else, the other that rank")
    return 0


cdef bint fit(list rooted, list others):
    """Whether one rank of the first group is the root, and all of the second name it."""
    roots = [row[ROOT_RANK] for row in rooted]
    if roots.count(ROOT) != 1 or roots.count(PROC_NULL) != len(roots) - 1:
        return False
    return all(row[ROOT_RANK] == roots.index(ROOT) for row in others)
