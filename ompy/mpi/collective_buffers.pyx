# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
# cython: auto_pickle=False
"""The buffer arguments of collectives: a block for each rank, which counts, displacements and datatypes may describe."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.sequence cimport PySequence_Check

from ompy.core.typemap cimport Typemap, plus, times
from ompy.mca.coll cimport CollectiveCall
from ompy.mpi.buffers cimport (
    Parts, Spec, acquire_memory, keep, locate, parse_recv, parse_send, release, require_committed, require_typemap, room_in,
    split, whole_elements,
)
from ompy.mpi.datatype cimport Datatype
from ompy.mpi.memory cimport check_room
from ompy.mpi.sentinels cimport bottom, in_place

from ompy.core.errors import ERR_ARG, ERR_TYPE, MPIError


cdef object fill_send(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    parse_send(message, &spec, blocks)
    call.send_address, call.send_count, call.send_type = spec.address, spec.count, <Typemap> spec.typemap
    return keep(&spec)


cdef object fill_recv(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    parse_recv(message, &spec, blocks)
    call.recv_address, call.recv_count, call.recv_type = spec.address, spec.count, <Typemap> spec.typemap
    return keep(&spec)


cdef object fill_send_vector(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    PyMem_Free(call.send_counts)
    PyMem_Free(call.send_displacements)
    call.send_counts = call.send_displacements = NULL
    parse_vector(message, False, blocks, &spec, &call.send_counts, &call.send_displacements)
    call.send_address, call.send_type = spec.address, <Typemap> spec.typemap
    return keep(&spec)


cdef object fill_recv_vector(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    PyMem_Free(call.recv_counts)
    PyMem_Free(call.recv_displacements)
    call.recv_counts = call.recv_displacements = NULL
    parse_vector(message, True, blocks, &spec, &call.recv_counts, &call.recv_displacements)
    call.recv_address, call.recv_type = spec.address, <Typemap> spec.typemap
    return keep(&spec)


cdef int parse_vector(object message, bint writable, Py_ssize_t blocks, Spec *spec,
                      Py_ssize_t **counts, Py_ssize_t **displacements) except -1:
    # The arrays are the caller's at once: it frees them whether this succeeds or not.
    cdef Parts parts = split(message, True)
    cdef Py_ssize_t nbytes, total = 0, value, extent, i
    try:
        locate(parts, writable, spec, &nbytes)
        if parts.counts is None:
            # The elements of the buffer, spread as evenly as possible: 7 over 3 is 3 2 2.
            if nbytes > 0:
                total = whole_elements(spec, nbytes)
            counts[0] = new_array(blocks)
            for i in range(blocks):
                counts[0][i] = total // blocks + (1 if i < total % blocks else 0)
        elif is_integral(parts.counts):
            value = PyNumber_Index(parts.counts)
            counts[0] = new_array(blocks)
            for i in range(blocks):
                counts[0][i] = value
        else:
            counts[0] = parse_counts(parts.counts, blocks, "counts")
        for i in range(blocks):
            if counts[0][i] < 0:
                raise ValueError(f"message: negative count {counts[0][i]} for rank {i}")
        require_typemap(spec)
        extent = (<Typemap> spec.typemap).extent
        if parts.displacements is None:
            displacements[0] = new_array(blocks)
            total = 0
            for i in range(blocks):
                displacements[0][i] = total
                total = plus(total, counts[0][i])
        elif is_integral(parts.displacements):
            value = PyNumber_Index(parts.displacements)
            displacements[0] = new_array(blocks)
            for i in range(blocks):
                displacements[0][i] = times(value, i)
        else:
            displacements[0] = parse_counts(parts.displacements, blocks, "displs")
        for i in range(blocks):
            if counts[0][i]:
                check_room(<Typemap> spec.typemap, counts[0][i], times(displacements[0][i], extent),
                           <const void *> spec.address, room_in(parts.source, nbytes))
        spec.count = 0
    except BaseException:
        release(spec)
        raise
    return 0


cdef bint is_integral(object item) except -1:
    """An integer or what stands for one; an array of one integer is a sequence, one without dimensions an integer."""
    if isinstance(item, int):
        return True
    if not PyIndex_Check(item):
        return False
    if not PySequence_Check(item):
        return True
    try:
        len(item)
    except TypeError:
        return True
    return False


cdef object fill_send_types(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    PyMem_Free(call.send_counts)
    PyMem_Free(call.send_displacements)
    call.send_counts = call.send_displacements = NULL
    call.send_types = parse_types(message, False, blocks, &spec, &call.send_counts, &call.send_displacements)
    call.send_address = spec.address
    return keep(&spec)


cdef object fill_recv_types(CollectiveCall call, object message, Py_ssize_t blocks):
    cdef Spec spec
    refuse_in_place(message)
    PyMem_Free(call.recv_counts)
    PyMem_Free(call.recv_displacements)
    call.recv_counts = call.recv_displacements = NULL
    call.recv_types = parse_types(message, True, blocks, &spec, &call.recv_counts, &call.recv_displacements)
    call.recv_address = spec.address
    return keep(&spec)


cdef list parse_types(object message, bint writable, Py_ssize_t blocks, Spec *spec,
                      Py_ssize_t **counts, Py_ssize_t **displacements):
    cdef Py_ssize_t length = len(message), nbytes = 0, i
    cdef object source, given_counts = None, given_displacements = None, given_types
    cdef list types = []
    if length == 2:
        source, given_types = message
    elif length == 3:
        source, (given_counts, given_displacements), given_types = message
    elif length == 4:
        source, given_counts, given_displacements, given_types = message
    else:
        raise ValueError(f"message: 2 to 4 items expected (buffer, counts, displacements, datatypes), not {length}")
    spec.typemap = spec.owner = NULL
    spec.held = False
    spec.address = 0
    spec.count = 0
    try:
        if source is None or source is bottom:
            if given_counts is None or given_displacements is None:
                raise ValueError("message: BOTTOM needs counts and displacements")
        else:
            acquire_memory(source, writable, False, spec, &nbytes)
        if given_counts is None and given_displacements is None:
            counts[0] = new_array(blocks)
            displacements[0] = new_array(blocks)
            for i in range(blocks):
                counts[0][i] = 1
                displacements[0][i] = 0
        else:
            counts[0] = parse_counts(given_counts, blocks, "counts")
            displacements[0] = parse_counts(given_displacements, blocks, "displs")
        if len(given_types) != blocks:
            raise ValueError(f"message: {blocks} datatypes expected, one for each rank, not {len(given_types)}")
        for i in range(blocks):
            types.append(typemap_of(given_types[i], i))
            if counts[0][i] < 0:
                raise ValueError(f"message: negative count {counts[0][i]} for rank {i}")
            check_room(<Typemap> types[i], counts[0][i], displacements[0][i], <const void *> spec.address,
                       room_in(source, nbytes))
    except BaseException:
        release(spec)
        raise
    return types


cdef Typemap typemap_of(object kind, Py_ssize_t index):
    if not isinstance(kind, Datatype):
        raise TypeError(f"message: a Datatype expected for rank {index}, not {type(kind).__name__}")
    if (<Datatype> kind).typemap is None:
        raise MPIError(ERR_TYPE, f"message: a datatype expected for rank {index}, not DATATYPE_NULL")
    require_committed(f"message for rank {index}", (<Datatype> kind).typemap)
    return (<Datatype> kind).typemap


cdef inline int refuse_in_place(object message) except -1:
    """Where it is allowed nobody looks for memory (MPI-4.1, 6.2 and 6.3)."""
    if message is in_place:
        raise MPIError(ERR_ARG, "IN_PLACE: not for this buffer, on this rank, of this collective; within a group it stands for "
                                "the send buffer (of a gather or reduce the root's alone), of a scatter for the root's receive "
                                "buffer")
    return 0


cdef bint is_in_place(object message) noexcept:
    return message is None or message is in_place


cdef Py_ssize_t *new_array(Py_ssize_t blocks) except NULL:
    # At least one entry, so that no memory is an error and nothing else.
    cdef Py_ssize_t *array = <Py_ssize_t *> PyMem_Malloc(<size_t> max(blocks, 1) * sizeof(Py_ssize_t))
    if array == NULL:
        raise MemoryError
    return array


cdef Py_ssize_t *parse_counts(object values, Py_ssize_t blocks, str name) except NULL:
    cdef Py_ssize_t length = len(values), i
    cdef Py_ssize_t *array
    if length != blocks:
        raise ValueError(f"{name}: {blocks} items expected, not {length}")
    array = new_array(blocks)
    try:
        for i in range(blocks):
            array[i] = PyNumber_Index(values[i])
    except BaseException:
        PyMem_Free(array)
        raise
    return array
