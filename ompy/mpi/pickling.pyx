# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Python objects as messages.  `pickling.pxd` shows the form that they travel in."""

cimport cython
from cpython.buffer cimport PyBUF_ANY_CONTIGUOUS, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.convertor cimport pack_all
from ompy.core.typemap cimport Typemap, predefined
from ompy.mpi.block cimport Block, part_of, take_block
from ompy.mpi.memory cimport buffer
from ompy.mpi.plain cimport PLAIN_ROOM, pickle_plainly

cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject **arguments, size_t count, object names)


from os import environ

cdef tuple CALLBACK = ("buffer_callback",)
cdef object NEWEST_PROTOCOL = int(environ.get("MPI4PY_PICKLE_PROTOCOL", 5))
cdef object DEFAULT_THRESHOLD = int(environ.get("MPI4PY_PICKLE_THRESHOLD", 1 << 18))

cdef enum:
    ALIGNMENT = 64
    # Objects whose buffers are smaller are copied into the pickle: a message of one piece is cheaper then.
    WIRE_THRESHOLD = 16384
    # Messages up to this size are received into plain bytes.
    SMALL_MESSAGE = 4096

# No pickle begins with this byte, of whatever protocol: 0 begins with ASCII, 2 and later with 0x80.
cdef char *MAGIC = b"\xffompy\x00\x05\xff"

cdef struct Header:
    char magic[8]
    uint64_t pickled                             # bytes of the pickle
    uint64_t buffers                             # how many; their sizes follow, as uint64_t

cdef char[ALIGNMENT] zeros
memset(zeros, 0, ALIGNMENT)

cdef Typemap byte_typemap = predefined(BASIC_BYTE)

# The C half of the pickle module, imported with the first object that needs it: the other half takes milliseconds, and
# nothing here needs it.
cdef object c_pickle = None
cdef object c_dumps = None
cdef object c_loads = None


cdef int import_pickle() except -1:
    global c_pickle, c_dumps, c_loads
    import _pickle
    c_pickle, c_dumps, c_loads = _pickle, _pickle.dumps, _pickle.loads
    return 0


cdef inline object standard_dumps():
    if c_dumps is None:
        import_pickle()
    return c_dumps


cdef inline object standard_loads():
    if c_loads is None:
        import_pickle()
    return c_loads


cdef inline Py_ssize_t padding(Py_ssize_t length) noexcept:
    return (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT


cdef inline bint is_plain_memory(object exporter) noexcept:
    """What pickle makes bytes or a bytearray of, where it is in the pickle."""
    return type(exporter) is bytes or type(exporter) is bytearray or type(exporter) is memoryview


# Of this class and the next one object a message is made, and neither can be part of a cycle: the garbage collector need not
# hear of them.
@cython.freelist(8)
@cython.no_gc
cdef class Collector:
    """What pickle calls for each buffer: keeps the large ones out of the pickle."""

    cdef list buffers
    cdef Py_ssize_t threshold
    cdef bint for_wire                           # what is bytes here is to be bytes there, however long

    def __call__(self, picklebuffer):
        cdef buffer view = buffer.__new__(buffer)
        PyObject_GetBuffer(picklebuffer, &view.view, PyBUF_ANY_CONTIGUOUS)
        view.held = True
        if view.view.len < self.threshold or self.for_wire and is_plain_memory(<object> view.view.obj):
            return True
        if self.buffers is None:
            self.buffers = []
        self.buffers.append(view)
        return False


cdef Collector new_collector(Py_ssize_t threshold):
    cdef Collector collector = Collector.__new__(Collector)
    collector.threshold = threshold
    return collector


cdef class Pickle:
    """
    How objects become bytes and bytes become objects again.

    Parameters:
        dumps: `dumps(object)` or `dumps(object, protocol)`; pickle's by default.
        loads: `loads(buffer)`; pickle's by default.
        protocol: second argument of `dumps`; the newest one by default, none for other `dumps`.
        threshold: bytes from which `dumps_oob` leaves a buffer out of the pickle.
    """

    cdef object dump, load                       # None: the standard functions
    cdef object protocol, threshold
    cdef bint has_buffers                        # the standard functions and protocol 5: large buffers travel by themselves
    cdef bint has_header                         # the standard `loads` may meet them

    def __cinit__(self, *args, **kwargs):
        self.protocol = NEWEST_PROTOCOL
        self.threshold = DEFAULT_THRESHOLD

    @cython.embedsignature(False)  # the class's docstring is to begin with words
    def __init__(self, dumps=None, loads=None, protocol=None, threshold=None) -> None:
        self.dump = None if dumps is None or dumps is standard_dumps() else dumps
        self.load = None if loads is None or loads is standard_loads() else loads
        self.PROTOCOL = protocol
        self.THRESHOLD = threshold

    def dumps(self, obj: object) -> bytes:
        """The pickle of an object."""
        return custom_dump(self, obj)

    def loads(self, data: Buffer) -> object:
        """The object of a pickle."""
        return custom_loads(self)(data)

    def dumps_oob(self, obj: object) -> tuple[bytes, list[buffer]]:
        """The pickle of an object, and its buffers of at least `THRESHOLD` bytes, not copied (PEP 574)."""
        cdef Collector collector = new_collector(self.threshold)
        protocol = NEWEST_PROTOCOL if self.protocol is None else max(self.protocol, 5)
        data = custom_dumps(self)(obj, protocol, buffer_callback=collector)
        return data, [] if collector.buffers is None else collector.buffers

    def loads_oob(self, data: Buffer, buffers: Iterable[Buffer]) -> object:
        """The object of a pickle and its buffers, which become part of the object."""
        return custom_loads(self)(data, buffers=buffers)

    @property
    def PROTOCOL(self) -> int | None:
        """Second argument of `dumps`; None for none."""
        return self.protocol

    @PROTOCOL.setter
    def PROTOCOL(self, value: int | None) -> None:
        if value is None and self.dump is None:
            value = NEWEST_PROTOCOL
        self.protocol = value
        self.has_header = self.load is None
        self.has_buffers = self.dump is None and self.has_header and value is not None and (value >= 5 or value < 0)

    @property
    def THRESHOLD(self) -> int:
        """Bytes from which `dumps_oob` leaves a buffer out of the pickle."""
        return self.threshold

    @THRESHOLD.setter
    def THRESHOLD(self, value: int | None) -> None:
        self.threshold = DEFAULT_THRESHOLD if value is None else value


cdef Pickle current = Pickle()
pickle = current


cdef inline object custom_dumps(Pickle pickle):
    return standard_dumps() if pickle.dump is None else pickle.dump


cdef inline object custom_loads(Pickle pickle):
    return standard_loads() if pickle.load is None else pickle.load


cdef object custom_dump(Pickle pickle, object obj):
    dump = custom_dumps(pickle)
    return dump(obj) if pickle.protocol is None else dump(obj, pickle.protocol)


@cython.freelist(8)
@cython.no_gc
cdef class Parcel:
    """A pickled object, ready to be sent."""


cdef inline object dumps_around(object obj, Collector collector):
    """The pickle without the buffers that the collector takes; called without the dict that keywords cost."""
    cdef PyObject *arguments[3]
    arguments[0] = <PyObject *> obj
    arguments[1] = <PyObject *> current.protocol
    arguments[2] = <PyObject *> collector
    return PyObject_Vectorcall(standard_dumps(), arguments, 2, CALLBACK)


cdef Py_ssize_t write_plain(object obj, char *room) noexcept:
    return pickle_plainly(obj, room) if current.has_buffers else 0


cdef Parcel wrap(object obj):
    cdef char room[PLAIN_ROOM]
    cdef Py_ssize_t length = write_plain(obj, room)
    if length:
        return wrap_bytes(PyBytes_FromStringAndSize(room, length))
    return wrap_pickle(obj)


cdef Parcel wrap_snapshot(object obj):
    cdef Parcel parcel = wrap(obj)
    return parcel if parcel.typemap is byte_typemap else wrap_bytes(flatten(parcel))


cdef Parcel wrap_standard(object obj):
    return wrap_bytes(standard_dumps()(obj))


cdef Parcel wrap_pickle(object obj):
    cdef Collector collector
    cdef object data
    if not current.has_buffers:
        return wrap_bytes(custom_dump(current, obj))
    collector = new_collector(min(WIRE_THRESHOLD, <Py_ssize_t> current.threshold))
    collector.for_wire = True
    data = dumps_around(obj, collector)
    return wrap_bytes(data) if collector.buffers is None else wrap_buffers(data, collector.buffers)


cdef Parcel wrap_bytes(object data):
    """A message that is the pickle alone."""
    cdef Parcel parcel = Parcel.__new__(Parcel)
    cdef buffer view
    parcel.typemap = byte_typemap
    if PyBytes_CheckExact(data):
        parcel.address = <size_t> PyBytes_AS_STRING(data)
        parcel.nbytes = PyBytes_GET_SIZE(data)
        parcel.kept = data
    else:
        view = buffer(data)
        parcel.address = <size_t> view.view.buf
        parcel.nbytes = view.view.len
        parcel.kept = view
    parcel.count = parcel.nbytes
    return parcel


cdef Parcel wrap_buffers(bytes data, list buffers):
    """One element of a type whose blocks are the header, the pickle and the buffers where they lie."""
    cdef Py_ssize_t head_length = sizeof(Header) + len(buffers) * sizeof(uint64_t)
    cdef bytes head = PyBytes_FromStringAndSize(NULL, head_length + padding(head_length))
    cdef Header *header = <Header *> PyBytes_AS_STRING(head)
    cdef uint64_t *sizes = <uint64_t *> (header + 1)
    cdef buffer view
    cdef Py_ssize_t index
    cdef list lengths = [], addresses = []
    cdef Parcel parcel = Parcel.__new__(Parcel)
    memset(header, 0, <size_t> PyBytes_GET_SIZE(head))
    memcpy(header.magic, MAGIC, 8)
    header.pickled = PyBytes_GET_SIZE(data)
    header.buffers = len(buffers)
    parcel.nbytes = 0
    add_block(parcel, lengths, addresses, header, PyBytes_GET_SIZE(head))
    add_block(parcel, lengths, addresses, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    for index in range(len(buffers)):
        view = <buffer> buffers[index]
        sizes[index] = view.view.len
        add_block(parcel, lengths, addresses, view.view.buf, view.view.len)
    parcel.address = 0
    parcel.count = 1
    parcel.typemap = byte_typemap.create_hindexed(lengths, addresses)
    parcel.kept = (head, data, buffers)
    return parcel


cdef int add_block(Parcel parcel, list lengths, list addresses, const void *memory, Py_ssize_t length) except -1:
    cdef Py_ssize_t pad = padding(length)
    if length:
        lengths.append(length)
        addresses.append(<Py_ssize_t> memory)
    if pad:
        lengths.append(pad)
        addresses.append(<Py_ssize_t> &zeros[0])
    parcel.nbytes += length + pad
    return 0


def new_block(Py_ssize_t nbytes):
    """Memory for a message of `nbytes` bytes."""
    if nbytes <= SMALL_MESSAGE:
        return PyBytes_FromStringAndSize(NULL, nbytes)
    return take_block(nbytes)


cdef size_t block_address(object block) except? 0:
    if type(block) is Block:
        return <size_t> (<Block> block).memory
    if PyBytes_CheckExact(block):
        return <size_t> PyBytes_AS_STRING(block)
    cdef Py_buffer view
    PyObject_GetBuffer(block, &view, PyBUF_ANY_CONTIGUOUS)
    cdef size_t address = <size_t> view.buf
    PyBuffer_Release(&view)
    return address


cdef object unwrap(object block):
    cdef Py_ssize_t length = len(block)
    if length == 0:
        return None
    if (current.has_header and length >= <Py_ssize_t> sizeof(Header)
            and memcmp(<void *> block_address(block), MAGIC, 8) == 0):
        return unwrap_buffers(block)
    return custom_loads(current)(block)


cdef object unwrap_buffers(object block):
    cdef const Header *header
    cdef const uint64_t *sizes
    cdef Py_ssize_t index, position, length
    cdef uint64_t room = len(block) - sizeof(Header)
    cdef list buffers = []
    loads = standard_loads()
    if type(block) is not Block:
        # Received into memory that is not ours to hand out piece by piece.
        block = bytearray(block)
    header = <const Header *> block_address(block)
    sizes = <const uint64_t *> (header + 1)
    view = memoryview(block)
    # Each number is held against what is left of the message before it is counted with.
    if header.buffers > room // sizeof(uint64_t):
        raise c_pickle.UnpicklingError(f"a message of {len(block)} bytes says that {header.buffers} buffers are in it")
    position = sizeof(Header) + header.buffers * sizeof(uint64_t)
    position += padding(position)
    for index in range(-1, <Py_ssize_t> header.buffers):
        length = header.pickled if index < 0 else sizes[index]
        if position > len(view) or not 0 <= length <= len(view) - position:
            raise c_pickle.UnpicklingError(f"a message of {len(view)} bytes says that a part of {<uint64_t> length} begins at "
                                           f"{position}")
        buffers.append(part_of(view, <char *> header + position, length))
        position += length + padding(length)
    return loads(buffers[0], buffers=buffers[1:])


cdef object flatten(Parcel parcel):
    cdef object block
    if parcel.typemap is byte_typemap:
        return parcel.kept
    block = take_block(parcel.nbytes)
    pack_all(<char *> parcel.address, parcel.count, parcel.typemap, <char *> (<Block> block).memory)
    return block
