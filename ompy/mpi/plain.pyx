# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
"""The pickle of a plain object, written straight into memory.  See `plain.pxd`.

The opcodes are those of protocol 5, as Python's `pickletools` describes them.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_CheckExact, PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    PyObject *PyList_GET_ITEM(object, Py_ssize_t)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)
    bint PyUnicode_IS_COMPACT_ASCII(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    void *PyUnicode_DATA(object)

cdef extern from *:
    """
    #include <stdint.h>
    /* Numbers in the order of bytes that the opcodes have, whatever the machine's. */
    static inline void ompy_write_little(char *place, uint32_t number, int bytes) {
        for (int i = 0; i < bytes; i++) place[i] = (char) (number >> 8 * i);
    }
    static inline void ompy_write_big(char *place, uint64_t number) {
        for (int i = 0; i < 8; i++) place[i] = (char) (number >> 8 * (7 - i));
    }
    """
    void write_little "ompy_write_little"(char *place, uint32_t number, int bytes) noexcept
    void write_big "ompy_write_big"(char *place, uint64_t number) noexcept

cdef enum:
    # Lists, tuples and dicts in one object.
    MOST_CONTAINERS = 32
    # The longest opcode with its argument, but for text and bytes; ends of containers are among them.
    LONGEST = 16


cdef struct Writer:
    char *place                                  # of the next opcode
    char *end
    int containers
    PyObject *seen[MOST_CONTAINERS]


cdef inline void write_opcode(Writer *writer, char opcode) noexcept:
    writer.place[0] = opcode
    writer.place += 1


cdef bint write_text(Writer *writer, char short_opcode, char opcode, const void *data, Py_ssize_t length) noexcept:
    """Text or bytes: an opcode, the length in one byte or four, and what there is."""
    if length > writer.end - writer.place - 2 * LONGEST:
        return False
    if length < 256:
        write_opcode(writer, short_opcode)
        write_opcode(writer, <char> length)
    else:
        write_opcode(writer, opcode)
        write_little(writer.place, <uint32_t> length, 4)
        writer.place += 4
    memcpy(writer.place, data, length)
    writer.place += length
    return True


cdef bint write_integer(Writer *writer, object number) noexcept:
    cdef int overflow = 0
    cdef long long value = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow or value != <int32_t> value:
        return False
    if 0 <= value < 256:
        write_opcode(writer, b"K")
        write_opcode(writer, <char> value)
    elif 0 <= value < 65536:
        write_opcode(writer, b"M")
        write_little(writer.place, <uint32_t> value, 2)
        writer.place += 2
    else:
        write_opcode(writer, b"J")
        write_little(writer.place, <uint32_t> value, 4)
        writer.place += 4
    return True


cdef void write_float(Writer *writer, double number) noexcept:
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    write_opcode(writer, b"G")
    write_big(writer.place, bits)
    writer.place += 8


cdef bint is_new(Writer *writer, object container) noexcept:
    """Whether the container is met for the first time."""
    cdef int index
    if writer.containers == MOST_CONTAINERS:
        return False
    for index in range(writer.containers):
        if writer.seen[index] == <PyObject *> container:
            return False
    writer.seen[writer.containers] = <PyObject *> container
    writer.containers += 1
    return True


cdef bint write_list(Writer *writer, object items) noexcept:
    cdef Py_ssize_t index, count = PyList_GET_SIZE(items)
    if not is_new(writer, items):
        return False
    write_opcode(writer, b"]")
    if count > 1:
        write_opcode(writer, b"(")
    for index in range(count):
        if not write_object(writer, <object> PyList_GET_ITEM(items, index)):
            return False
    if count:
        write_opcode(writer, b"e" if count > 1 else b"a")
    return True


cdef bint write_tuple(Writer *writer, object items) noexcept:
    cdef Py_ssize_t index, count = PyTuple_GET_SIZE(items)
    if count == 0:
        write_opcode(writer, b")")
        return True
    if not is_new(writer, items):
        return False
    if count > 3:
        write_opcode(writer, b"(")
    for index in range(count):
        if not write_object(writer, <object> PyTuple_GET_ITEM(items, index)):
            return False
    # TUPLE1 to TUPLE3 need no mark.
    write_opcode(writer, b"t" if count > 3 else <char> (0x84 + count))
    return True


cdef bint write_dict(Writer *writer, object items) noexcept:
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t position = 0, count = PyDict_Size(items)
    if not is_new(writer, items):
        return False
    write_opcode(writer, b"}")
    if count > 1:
        write_opcode(writer, b"(")
    while PyDict_Next(items, &position, &key, &value):
        if not write_object(writer, <object> key) or not write_object(writer, <object> value):
            return False
    if count:
        write_opcode(writer, b"u" if count > 1 else b"s")
    return True


cdef bint write_object(Writer *writer, object obj) noexcept:
    # No Python code runs here: nobody can change the containers meanwhile.
    if writer.end - writer.place < 2 * LONGEST:
        return False
    if PyUnicode_CheckExact(obj):
        return (PyUnicode_IS_COMPACT_ASCII(obj)
                and write_text(writer, <char> 0x8c, b"X", PyUnicode_DATA(obj), PyUnicode_GET_LENGTH(obj)))
    if PyLong_CheckExact(obj):
        return write_integer(writer, obj)
    if PyFloat_CheckExact(obj):
        write_float(writer, PyFloat_AS_DOUBLE(obj))
        return True
    if PyDict_CheckExact(obj):
        return write_dict(writer, obj)
    if PyList_CheckExact(obj):
        return write_list(writer, obj)
    if PyTuple_CheckExact(obj):
        return write_tuple(writer, obj)
    if PyBytes_CheckExact(obj):
        return write_text(writer, b"C", b"B", PyBytes_AS_STRING(obj), PyBytes_GET_SIZE(obj))
    if obj is None:
        write_opcode(writer, b"N")
        return True
    if obj is True or obj is False:
        write_opcode(writer, <char> 0x88 if obj is True else <char> 0x89)
        return True
    return False


cdef Py_ssize_t pickle_plainly(object obj, char *room) noexcept:
    cdef Writer writer
    writer.place = room
    # Every open container still has to be ended.
    writer.end = room + PLAIN_ROOM - MOST_CONTAINERS
    writer.containers = 0
    write_opcode(&writer, <char> 0x80)
    write_opcode(&writer, 5)
    if not write_object(&writer, obj):
        return 0
    write_opcode(&writer, b".")
    return writer.place - room


def plain_pickle(obj: object) -> bytes | None:
    """The pickle of an object that is plain, else None."""
    cdef char room[PLAIN_ROOM]
    cdef Py_ssize_t length = pickle_plainly(obj, room)
    return room[:length] if length else None
