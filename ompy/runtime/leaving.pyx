# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""What `SystemExit` was made with last: by the time that a program's exit functions run, Python has forgotten it.

    raise SystemExit(3)   exit(3)   sys.exit(3)   from sys import exit; exit(3)
            |                |            |                   |
            +----------------+----- tp_init of SystemExit ----+        written down here, then as always
"""
import sys

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef int (*Initializer "initproc")(PyObject *, PyObject *, PyObject *) except -1
    ctypedef struct Type "PyTypeObject":
        Initializer tp_init
    ctypedef PyObject *(*Function "PyCFunction")(PyObject *, PyObject *)
    ctypedef struct MethodDefinition "PyMethodDef":
        Function ml_meth
        int ml_flags
    ctypedef struct FunctionObject "PyCFunctionObject":
        MethodDefinition *m_ml
    PyObject *PyExc_SystemExit
    int METH_FASTCALL

status = None
cdef Initializer original = NULL


cdef int note(PyObject *self, PyObject *arguments, PyObject *keywords) except -1:
    global status
    given = <tuple> arguments
    status = given[0] if len(given) == 1 else given or None
    return original(self, arguments, keywords)


cdef PyObject *leave(PyObject *module, PyObject *const *arguments, Py_ssize_t count) except NULL:
    # Without an instance: where no Python frame handles it, CPython 3.11 makes none of an exception that C code has set.
    if count > 1:
        raise TypeError(f"exit expected at most 1 argument, got {count}")
    raise SystemExit(*((<object> arguments[0],) if count else ()))


def watch() -> None:
    """From now on `last` knows."""
    global original
    cdef Type *kind = <Type *> PyExc_SystemExit
    cdef MethodDefinition *definition = (<FunctionObject *> <PyObject *> sys.exit).m_ml
    if original != NULL:
        return
    original = kind.tp_init
    kind.tp_init = note
    if sys.version_info < (3, 12) and type(sys.exit) is type(len) and definition.ml_flags == METH_FASTCALL:
        definition.ml_meth = <Function> <void *> leave


def last() -> object:
    """The status: None or 0 for success."""
    return status
