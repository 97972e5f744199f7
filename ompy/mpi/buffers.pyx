# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
# cython: auto_pickle=False
"""Message specifications: what the program passes as a buffer argument, as address, count and typemap.

Every form that mpi4py takes is taken here; `buffers.pxd` lists them.  The usual one, a NumPy array, is read from the head
of the array object itself, whose layout NumPy 1 and 2 share (numpy/ndarraytypes.h, PyArrayObject_fields); NumPy is never
imported, its array type is recognised when the first array arrives.
"""

from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    Py_buffer,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact
from libc.string cimport memset

from ompy.core.basic cimport BASIC_UNSIGNED_CHAR
from ompy.core.overflow cimport multiply
from ompy.core.typemap cimport Typemap, lies_within, predefined
from ompy.mpi.datatype cimport Datatype, datatype_of_code
from ompy.mpi.device cimport speaks_cuda, speaks_dlpack
from ompy.mpi.memory cimport acquire, check_room
from ompy.mpi.sentinels cimport bottom

from ompy.core.errors import ERR_TYPE, MPIError
from sys import byteorder


cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        char *data;
        int nd;
        Py_ssize_t *dimensions;
        Py_ssize_t *strides;
        PyObject *base;
        PyObject *descr;
        int flags;
    } ompy_array;
    """
    const Py_ssize_t PY_SSIZE_T_MAX
    ctypedef struct ArrayHead "ompy_array":
        char *data
        int nd
        Py_ssize_t *dimensions
        PyObject *descr
        int flags
    PyTypeObject *Py_TYPE(PyObject *)
    Py_ssize_t Py_SIZE(object)
    PyObject **PySequence_Fast_ITEMS(object)         # of a list or tuple; borrowed

# NumPy's flags of an array.
cdef enum:
    ARRAY_CONTIGUOUS = 0x0003                    # in the order of C or of Fortran
    ARRAY_WRITABLE = 0x0400

# numpy.ndarray, once an array of it was seen whose head agrees with what the buffer protocol says.
cdef PyTypeObject *array_type = NULL

# dtype -> typemap, by the address of the dtype object, which is held so that the address stays its own.  Direct mapped:
# a dtype that falls on the slot of another takes it over.  A dtype that has no typemap of its item's size has NULL.
cdef enum:
    SLOTS = 64

cdef struct Slot:
    PyObject *descr
    PyObject *typemap

cdef Slot slots[SLOTS]
memset(slots, 0, sizeof(slots))

# One-character format -> typemap, filled at first use.
cdef PyObject *typemap_of_character[128]
memset(typemap_of_character, 0, sizeof(typemap_of_character))


cdef inline Slot *slot_of(PyObject *descr) noexcept:
    return &slots[(<size_t> descr >> 4) % SLOTS]


cdef class Held:
    """A view that an operation needs after its call has returned."""
    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef int parse_send(object message, Spec *spec, Py_ssize_t blocks=1) except -1:
    if parse_array(message, False, blocks, spec) or parse_typed_array(message, False, blocks, spec):
        return 0
    return parse(message, False, blocks, spec)


cdef int parse_recv(object message, Spec *spec, Py_ssize_t blocks=1) except -1:
    if parse_array(message, True, blocks, spec) or parse_typed_array(message, True, blocks, spec):
        return 0
    return parse(message, True, blocks, spec)


cdef inline bint parse_array(object message, bint writable, Py_ssize_t blocks, Spec *spec) noexcept:
    """The fast path: a plain array of a known dtype.  False: nothing was done."""
    cdef PyObject *source = <PyObject *> message
    cdef ArrayHead *array = <ArrayHead *> source
    cdef Slot *slot
    cdef Py_ssize_t count = 1
    cdef int i
    if Py_TYPE(source) != array_type:
        return False
    slot = slot_of(array.descr)
    if (slot.descr != array.descr or slot.typemap == NULL or not array.flags & ARRAY_CONTIGUOUS
            or (writable and not array.flags & ARRAY_WRITABLE)):
        return False
    for i in range(array.nd):
        count *= array.dimensions[i]
    if blocks > 1:
        if count % blocks != 0:
            return False
        count //= blocks
    Py_INCREF(message)
    Py_INCREF(<object> slot.typemap)
    spec.address = <size_t> array.data
    spec.count = count
    spec.typemap = slot.typemap
    spec.owner = source
    spec.held = False
    return True


cdef inline bint parse_typed_array(object message, bint writable, Py_ssize_t blocks, Spec *spec) except -1:
    """The fast path of [array, datatype] and [array, count, datatype].  False: nothing was done."""
    cdef Py_ssize_t items, count = 1, nbytes, extent, whole
    cdef bint fits
    cdef PyObject **item
    cdef PyObject *typemap
    cdef ArrayHead *array
    cdef Slot *slot
    cdef int i
    if not PyList_CheckExact(message) and not PyTuple_CheckExact(message):
        return False
    items = Py_SIZE(message)
    item = PySequence_Fast_ITEMS(message)
    if ((items != 2 and items != 3) or Py_TYPE(item[0]) != array_type
            or Py_TYPE(item[items - 1]) != <PyTypeObject *> Datatype):
        return False
    array = <ArrayHead *> item[0]
    slot = slot_of(array.descr)
    typemap = <PyObject *> (<Datatype> item[items - 1]).typemap
    if (typemap == <PyObject *> None or not (<Typemap> typemap).committed or slot.descr != array.descr or slot.typemap == NULL
            or not array.flags & ARRAY_CONTIGUOUS or (writable and not array.flags & ARRAY_WRITABLE)):
        return False
    for i in range(array.nd):
        count *= array.dimensions[i]
    nbytes = count * (<Typemap> slot.typemap).extent
    if items == 2:
        extent = (<Typemap> typemap).extent
        if extent != (<Typemap> slot.typemap).extent:
            if extent <= 0 or nbytes % extent != 0:
                return False
            count = nbytes // extent
        whole = count
        fits = (<Typemap> typemap).contiguous     # as many as there is room for
        if blocks > 1:
            if count % blocks != 0:
                return False
            count //= blocks
    else:
        if not PyLong_CheckExact(<object> item[1]):
            return False
        count = <object> item[1]
        if count < 0 or multiply(count, blocks, &whole):
            return False
        fits = False
    if not fits and not lies_within(<Typemap> typemap, whole, 0, nbytes):
        return False
    Py_INCREF(<object> item[0])
    Py_INCREF(<object> typemap)
    spec.address = <size_t> array.data
    spec.count = count
    spec.typemap = typemap
    spec.owner = item[0]
    spec.held = False
    return True


cdef object keep(Spec *spec):
    cdef Held held
    cdef object kept = None
    if spec.owner != NULL:
        kept = <object> spec.owner
    elif spec.held:
        held = Held.__new__(Held)
        held.view = spec.view
        spec.held = False
        kept = held
    release(spec)
    return kept


cdef int acquire_memory(object source, bint writable, bint want_format, Spec *spec, Py_ssize_t *nbytes) except -1:
    """Address and size of the program's memory; the format, when wanted, becomes the typemap."""
    cdef int flags = PyBUF_ANY_CONTIGUOUS
    if PyBytes_CheckExact(source) and not writable:
        Py_INCREF(source)
        spec.owner = <PyObject *> source
        spec.address = <size_t> PyBytes_AS_STRING(source)
        nbytes[0] = PyBytes_GET_SIZE(source)
        if want_format:
            set_typemap(spec, predefined(BASIC_UNSIGNED_CHAR))
        return 0
    if writable:
        flags |= PyBUF_WRITABLE
    if want_format:
        flags |= PyBUF_FORMAT
    try:
        acquire(source, &spec.view, flags)
    except (BufferError, ValueError) as error:
        if not PyObject_CheckBuffer(source):
            raise  # its description is wrong, and the error says where
        raise BufferError(f"message: {'writable ' if writable else ''}contiguous memory expected "
                          f"of the {type(source).__name__}: {error}") from error
    spec.held = True
    spec.address = <size_t> spec.view.buf
    nbytes[0] = spec.view.len
    if want_format:
        set_typemap(spec, typemap_of_format(spec.view.format))
        learn(source, &spec.view, <Typemap> spec.typemap)
    else:
        if writable and getattr(getattr(source, "dtype", None), "hasobject", False):
            release(spec)
            raise BufferError("message: the array holds references to objects, which no message may overwrite")
        if array_type == NULL or Py_TYPE(<PyObject *> source) == array_type:
            learn_apart(source)
    return 0


cdef int learn_apart(object source) except -1:
    """Learn the dtype of an array whose specification names a datatype, and which is thus not asked for its format."""
    cdef Py_buffer view
    if Py_TYPE(<PyObject *> source) == array_type \
            and slot_of((<ArrayHead *> <PyObject *> source).descr).descr == (<ArrayHead *> <PyObject *> source).descr:
        return 0
    if type(source).__module__ != "numpy" or type(source).__name__ != "ndarray":
        return 0
    try:
        PyObject_GetBuffer(source, &view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT)
    except (BufferError, ValueError):
        return 0                                 # a dtype that has no format
    try:
        learn(source, &view, typemap_of_format(view.format))
    except (BufferError, TypeError, ValueError, KeyError):
        learn(source, &view, None)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int set_typemap(Spec *spec, Typemap typemap) except -1:
    Py_INCREF(typemap)
    spec.typemap = <PyObject *> typemap
    return 0


cdef int learn(object source, Py_buffer *view, Typemap typemap) except -1:
    """Remember the dtype of an array, so that the next one takes the fast path."""
    global array_type
    cdef ArrayHead *array = <ArrayHead *> <PyObject *> source
    cdef Slot *slot
    if Py_TYPE(<PyObject *> source) != array_type:
        if type(source).__module__ != "numpy" or type(source).__name__ != "ndarray":
            return 0
        if array.data != <char *> view.buf or array.nd != source.ndim or array.descr != <PyObject *> source.dtype:
            return 0
        array_type = Py_TYPE(<PyObject *> source)
    slot = slot_of(array.descr)
    Py_INCREF(<object> array.descr)
    Py_XDECREF(slot.descr)
    Py_XDECREF(slot.typemap)
    slot.descr = array.descr
    slot.typemap = NULL
    # Formats that count as bytes (an item is not an element) have no typemap of an item's size.
    if typemap is not None and typemap.extent == view.itemsize:
        Py_INCREF(typemap)
        slot.typemap = <PyObject *> typemap
    return 0


cdef Typemap typemap_of_format(const char *format):
    cdef unsigned char character
    cdef Typemap typemap
    if format == NULL:
        return predefined(BASIC_UNSIGNED_CHAR)
    if format[0] == c"@" or format[0] == (c"<" if byteorder == "little" else c">"):
        format += 1
    elif format[0] == c"<" or format[0] == c">" or format[0] == c"!":
        raise BufferError(f"message: format {format.decode()!r} is not in this machine's byte order")
    character = <unsigned char> format[0]
    if character == 0 or format[1] != 0 or character >= 128:
        return (<Datatype> datatype_of_code(format.decode())).typemap
    if typemap_of_character[character] == NULL:
        typemap = (<Datatype> datatype_of_code(format.decode())).typemap
        Py_INCREF(typemap)
        typemap_of_character[character] = <PyObject *> typemap
    return <Typemap> typemap_of_character[character]


cdef inline bint is_type(object item) noexcept:
    return isinstance(item, (Datatype, str))


cdef class Parts:
    """The items of a specification, sorted by meaning."""


cdef Parts split(object message, bint vector):
    cdef Parts parts = Parts.__new__(Parts)
    cdef Py_ssize_t length
    if PyObject_CheckBuffer(message):
        parts.source = message
        return parts
    if not isinstance(message, (list, tuple)):
        if speaks_dlpack(message) or speaks_cuda(message):
            parts.source = message
            return parts
        raise TypeError(f"message: a buffer or a list or tuple that begins with one expected, not {type(message).__name__}")
    length = len(message)
    if length == 2:
        parts.source, parts.counts = message
        if is_type(parts.counts):
            parts.kind, parts.counts = parts.counts, None
        elif isinstance(parts.counts, tuple) or (not vector and isinstance(parts.counts, list)):
            parts.counts, parts.displacements = parts.counts
    elif length == 3:
        parts.source, parts.counts, parts.kind = message
        if isinstance(parts.counts, tuple) or (not vector and isinstance(parts.counts, list)):
            parts.counts, parts.displacements = parts.counts
    elif length == 4:
        parts.source, parts.counts, parts.displacements, parts.kind = message
    else:
        raise ValueError(f"message: 2 to 4 items expected (buffer, count, displacement, datatype), not {length}")
    return parts


cdef int locate(Parts parts, bint writable, Spec *spec, Py_ssize_t *nbytes) except -1:
    """Memory and typemap; the typemap is NULL for DATATYPE_NULL."""
    cdef Datatype datatype
    spec.typemap = spec.owner = NULL
    spec.held = False
    nbytes[0] = 0
    spec.address = 0
    if parts.source is not None and parts.source is not bottom:
        acquire_memory(parts.source, writable, parts.kind is None, spec, nbytes)
    elif parts.kind is None:
        raise KeyError("message: without a buffer a datatype is needed")
    if parts.kind is not None:
        datatype = parts.kind if isinstance(parts.kind, Datatype) else datatype_of_code(parts.kind)
        if datatype.typemap is not None:
            set_typemap(spec, datatype.typemap)
    return 0


cdef Py_ssize_t whole_elements(Spec *spec, Py_ssize_t nbytes) except -1:
    """How many elements fill the memory."""
    cdef Py_ssize_t extent = step_of(spec)
    if nbytes % extent != 0:
        raise ValueError(f"message: can't infer the count: {nbytes} bytes are not a multiple of the datatype's extent {extent}")
    return nbytes // extent


cdef Py_ssize_t step_of(Spec *spec) except -1:
    if spec.typemap == NULL:
        raise ValueError("message: can't infer count or displacement: the datatype is DATATYPE_NULL")
    cdef Py_ssize_t extent = (<Typemap> spec.typemap).extent
    if extent <= 0:
        raise ValueError(f"message: can't infer count or displacement: the datatype's extent is {extent}")
    return extent


cdef int require_typemap(Spec *spec) except -1:
    if spec.typemap == NULL:
        raise MPIError(ERR_TYPE, "message: a datatype expected, not DATATYPE_NULL")
    return require_committed("message", <Typemap> spec.typemap)


cdef int require_committed(str name, Typemap typemap) except -1:
    """Of a datatype that memory is described with (MPI-4.1, 5.1.9)."""
    if not typemap.committed:
        raise MPIError(ERR_TYPE, f"{name}: its datatype is not committed: call its Commit first")
    return 0


cdef int parse(object message, bint writable, Py_ssize_t blocks, Spec *spec) except -1:
    cdef Parts parts = split(message, False)
    cdef Py_ssize_t nbytes, offset = 0, whole = 0
    try:
        locate(parts, writable, spec, &nbytes)
        if parts.displacements is not None:
            offset = parse_displacement(parts, spec, nbytes)
        if parts.counts is not None:
            spec.count = PyNumber_Index(parts.counts)
            if spec.count < 0:
                raise ValueError(f"message: negative count {spec.count}")
            if spec.count > 0 and parts.source is None:
                raise ValueError(f"message: the buffer is None but the count is {spec.count}")
            if multiply(spec.count, blocks, &whole):
                raise ValueError(f"message: {blocks} blocks of {spec.count} elements are more than a memory can hold")
        elif nbytes - offset > 0:
            spec.count = whole = whole_elements(spec, nbytes - offset)
            if blocks > 1:
                if spec.count % blocks != 0:
                    raise ValueError(f"message: can't infer the count: {spec.count} elements can't be cut into {blocks} blocks")
                spec.count //= blocks
        else:
            spec.count = 0
        require_typemap(spec)
        check_room(<Typemap> spec.typemap, whole, offset, <const void *> spec.address, room_in(parts.source, nbytes))
        spec.address += offset
    except BaseException:
        release(spec)
        raise
    return 0


cdef Py_ssize_t parse_displacement(Parts parts, Spec *spec, Py_ssize_t nbytes) except -1:
    cdef Py_ssize_t displacement = PyNumber_Index(parts.displacements), extent
    if displacement < 0:
        raise ValueError(f"message: negative displacement {displacement}")
    if displacement == 0:
        return 0
    extent = step_of(spec)
    if displacement > nbytes // extent:
        raise ValueError(f"message: displacement {displacement} is outside of the buffer's {nbytes // extent} elements")
    return displacement * extent


cdef Py_ssize_t room_in(object source, Py_ssize_t nbytes) noexcept:
    """BOTTOM is all memory: whose addresses they are is known to the program alone."""
    return PY_SSIZE_T_MAX if source is bottom else nbytes
