# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""The base of all handles: null, truth value, equality, integers, copies, pickling (MPI-4.1, 2.5.1 and 19.3.4)."""

from cpython.object cimport PyObject
from posix.dlfcn cimport RTLD_LAZY, dlclose, dlopen

from ompy.mpi.foreign import ELSEWHERE

cdef extern from "<dlfcn.h>":
    int RTLD_NOLOAD

cdef extern from "<link.h>":
    struct dl_phdr_info:
        unsigned long long dlpi_adds
    int dl_iterate_phdr(int (*callback)(dl_phdr_info *info, size_t size, void *data), void *data)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_new)(type cls, tuple arguments, PyObject *keywords)


# (family, id of the core object) -> (predefined handle, its name).  The handles keep their core objects alive, so that the
# ids stay theirs.
cdef dict predefined_handles = {}

# Integers of the handles that were asked for one: family -> {integer: core object} and family -> {id: integer}.  The
# first holds the core object, because an integer kept by the program must not come to mean another object.
cdef dict core_of_number = {}
cdef dict number_of_core = {}
cdef size_t last_number = 0


cdef class Handle:
    """A handle on one object of the library; false when it is null."""

    cdef type family(self):
        return type(self)

    cdef object core(self):
        return None

    cdef int become(self, object core) except -1:
        raise NotImplementedError(f"{type(self).__name__} can't be made from a handle")

    cdef int dispose(self) except -1:
        self.Free()
        return 0

    def __bool__(self) -> bool:
        if self.exposed:
            take_over(self)
        return self.core() is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Handle) or (<Handle> other).family() is not self.family():
            return NotImplemented
        return same(self, <Handle> other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, Handle) or (<Handle> other).family() is not self.family():
            return NotImplemented
        return not same(self, <Handle> other)

    def __reduce__(self):
        entry = predefined_handles.get((self.family(), id(self.core())))
        if entry is None:
            cls = type(self)
            raise ValueError(f"cannot serialize '{cls.__module__}.{cls.__name__}' instance: only predefined objects can be")
        original, name = entry
        if self is original:
            return predefined_object, (name,)
        from copyreg import __newobj__
        return __newobj__, (type(self), original)

    @property
    def handle(self) -> int:
        """The integer that stands for this object; 0 for a null handle (MPI-4.1, 19.3.4)."""
        return told(self)

    @classmethod
    def fromhandle(cls, handle: int) -> Handle:
        """A new handle on the object that the integer (of `handle`) stands for (MPI-4.1, 19.3.4).

        Raises:
            ValueError: no object of this family has the integer.
        """
        cdef Handle made = cls.__new__(cls)
        if handle == 0:
            return made
        made.become(core_of(made.family(), handle))
        return made

    def toint(self) -> int:
        """The integer that stands for this object (MPI-5.0, 20.3.4) (MPI-4.1, 19.3.4)."""
        return told(self)

    @classmethod
    def fromint(cls, arg: int, /) -> Handle:
        """A new handle on the object that the integer (of `toint`) stands for (MPI-4.1, 19.3.4)."""
        return cls.fromhandle(arg)

    def py2f(self) -> int:
        """The integer that stands for this object in Fortran (MPI-4.1, 19.3.4)."""
        return told(self)

    @classmethod
    def f2py(cls, arg: int) -> Handle:
        """A new handle on the object that the Fortran integer (of `py2f`) stands for (MPI-4.1, 19.3.4)."""
        return cls.fromhandle(arg)

    def free(self) -> None:
        """Free the object if that makes sense (MPI-4.1, 2.5.1).

        A null or predefined one is left alone; a copy of a predefined one becomes null.
        """
        if self.constant or self.core() is None:
            return
        if is_predefined(self):
            self.become(None)
        else:
            self.dispose()


cdef bint same(Handle first, Handle second) except -1:
    if first.exposed:
        take_over(first)
    if second.exposed:
        take_over(second)
    return first.core() is second.core()


cdef object blank(type cls):
    return (<PyTypeObject *> cls).tp_new(cls, (), NULL)


cdef Handle predefine(Handle handle, str name):
    key = (handle.family(), id(handle.core()))
    handle.constant = True
    if key not in predefined_handles:
        predefined_handles[key] = (handle, name)
    return handle


cdef bint is_predefined(Handle handle) except -1:
    return (handle.family(), id(handle.core())) in predefined_handles


# Libraries that this process had loaded, as the dynamic linker counts, when no other MPI library was among them.
cdef unsigned long long loaded_then = 0


cdef int note_loaded(dl_phdr_info *info, size_t size, void *count) noexcept:
    (<unsigned long long *> count)[0] = info.dlpi_adds
    return 1


cdef int refuse_library() except -1:
    """Nothing that MPI objects are known by may go to another MPI library of the process, which would take it for its own."""
    global loaded_then
    cdef unsigned long long loaded = 0
    cdef void *found
    dl_iterate_phdr(note_loaded, &loaded)
    if loaded == loaded_then:
        return 0
    for name in (b"libmpi.so.40", b"libmpi.so.12", b"libmpi_abi.so.1", b"libmpi_abi.so.0"):
        found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)
        if found != NULL:
            dlclose(found)
            words = f"a handle of ompy means nothing to {name.decode()}, which this process has loaded as well"
            raise NotImplementedError(f"{words}: {ELSEWHERE}")
    loaded_then = loaded
    return 0


cdef size_t told(Handle handle) except? 0:
    """The integer, for the program.  Raises NotImplementedError where a C library of MPI could be given it."""
    refuse_library()
    return number(handle)


cdef object core_of(type family, object known):
    """What an integer stands for: ValueError where that is nothing."""
    objects = core_of_number.get(family)
    if objects is None or known not in objects:
        raise ValueError(f"handle {known} stands for no live {family.__name__}")
    return objects[known]


cdef size_t number(Handle handle) except? 0:
    global any_number, last_number
    if handle.exposed:
        take_over(handle)
    core = handle.core()
    if core is None:
        return 0
    family = handle.family()
    numbers = number_of_core.setdefault(family, {})
    known = numbers.get(id(core))
    if known is None:
        any_number = True
        last_number += 1
        known = numbers[id(core)] = last_number
        core_of_number.setdefault(family, {})[known] = core
    return known


cdef int forget(Handle handle) except -1:
    if not any_number:
        return 0
    handle.number = handle.shown = 0
    core = handle.core()
    numbers = number_of_core.get(handle.family())
    if numbers and core is not None:
        known = numbers.pop(id(core), None)
        if known is not None:
            del core_of_number[handle.family()][known]
    return 0


def predefined_object(str name):
    """The object that `ompy.MPI` has under the name: what a predefined handle is pickled as."""
    import ompy.MPI

    return getattr(ompy.MPI, name)


cdef size_t *expose(Handle handle) except NULL:
    handle.number = handle.shown = told(handle)
    handle.exposed = True
    return &handle.number


cdef int take_over(Handle handle) except -1:
    """Code in another language may have written another object's integer into the handle."""
    cdef size_t written = handle.number
    handle.exposed = False
    try:
        if written != handle.shown:
            handle.become(core_of(handle.family(), written) if written else None)
        handle.number = handle.shown = number(handle)
    finally:
        handle.exposed = True
    return 0
