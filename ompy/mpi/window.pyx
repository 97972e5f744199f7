# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Windows: memory that processes open to one another (MPI-4.1, chapter 12)."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, Py_buffer, PyObject_GetBuffer

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL
from ompy.core.owner cimport enter, leave
from ompy.core.progress_thread cimport is_employed
from ompy.core.window cimport FLAVOR_ALLOCATE, FLAVOR_CREATE, FLAVOR_DYNAMIC, FLAVOR_SHARED, Window
from ompy.mca.osc cimport OscModule
from ompy.mpi.comm cimport Comm
from ompy.mpi.errhandler cimport (
    Errhandler, call_errhandler, create_errhandler, get_errhandler, handle_makers, set_errhandler,
)
from ompy.mpi.group cimport Group, new_group
from ompy.mpi.handle cimport forget, predefine
from ompy.mpi.info cimport Info, hints, new_info
from ompy.mpi.memory cimport acquire, allocate_shared, buffer, buffer_over
from ompy.mpi.one_sided cimport OneSided
from ompy.mpi.sentinels cimport bottom

from ompy.core.errors import ERR_COMM, MPIError
from ompy.mca import memory_kinds
from ompy.mpi import attributes
from ompy.mpi.raising import hand_over
from ompy.runtime import identity, windows

__all__ = [
    "WIN_FLAVOR_ALLOCATE", "WIN_FLAVOR_CREATE", "WIN_FLAVOR_DYNAMIC", "WIN_FLAVOR_SHARED", "WIN_NULL", "WIN_SEPARATE",
    "WIN_UNIFIED", "Win",
]

# Flavors and memory models, numbered as in Open MPI's mpi.h.
WIN_FLAVOR_CREATE = 1
WIN_FLAVOR_ALLOCATE = 2
WIN_FLAVOR_DYNAMIC = 3
WIN_FLAVOR_SHARED = 4
WIN_SEPARATE = 0
WIN_UNIFIED = 1


cdef class Win(OneSided):
    """
    A window: memory of each process of a communicator that the others read and write (MPI-4.1, 12.2).

    It speaks the buffer protocol, as this process's memory.  `Win(other)` is a second handle on the same window.  A null
    handle's methods raise ERR_WIN.
    """

    def __cinit__(self, Win win=None):
        if win is not None:
            self.window = win.window

    cdef type family(self):
        return Win

    cdef object core(self):
        return self.window

    cdef int become(self, object core) except -1:
        self.window = core
        return 0

    # -- creation and destruction

    @classmethod
    def Create(cls, memory, disp_unit: int = 1, Info info=None, Comm comm=None):
        """A window on memory of the program's; collective (MPI-4.1, 12.2.1).

        Parameters:
            memory: writable contiguous buffer, kept alive by the window; None or BOTTOM for none.
            disp_unit: bytes of one displacement at this process.
            info: hints.
            comm: default COMM_SELF.

        Raises:
            Exception: ERR_COMM, ERR_DISP.
        """
        cdef buffer held = None if memory is None or memory is bottom else writable(memory)
        cdef size_t address = 0 if held is None else <size_t> held.view.buf
        cdef Py_ssize_t size = 0 if held is None else held.view.len
        return created(cls, FLAVOR_CREATE, address, size, disp_unit, held, info, comm)

    @classmethod
    def Allocate(cls, size: int, disp_unit: int = 1, Info info=None, Comm comm=None):
        """A window on new memory of `size` bytes, zero at first; collective (MPI-4.1, 12.2.2).

        Raises:
            Exception: ERR_NO_MEM on every rank where one has no memory for its part.
        """
        cdef Py_ssize_t nbytes = size
        cdef buffer held = None
        try:
            held = allocate_shared(max(nbytes, 0), True)
        except MemoryError:
            return created(cls, FLAVOR_ALLOCATE, 0, nbytes, disp_unit, None, info, comm)
        return created(cls, FLAVOR_ALLOCATE, <size_t> held.view.buf, nbytes, disp_unit, held, info, comm)

    @classmethod
    def Allocate_shared(cls, size: int, disp_unit: int = 1, Info info=None, Comm comm=None):
        """A window on new memory that all its processes see; collective (MPI-4.1, 12.2.3).

        Parameters:
            size: bytes of this process's part, zero at first.  Parts follow one another in the order of ranks, unless `info`
                has "alloc_shared_noncontig" true.

        Raises:
            Exception: ERR_RMA_SHARED when the processes are not on one host, ERR_NO_MEM.
        """
        return created(cls, FLAVOR_SHARED, 0, size, disp_unit, None, info, comm)

    @classmethod
    def Create_dynamic(cls, Info info=None, Comm comm=None):
        """A window to which memory is attached later; displacements are addresses (MPI-4.1, 12.2.4).  Collective."""
        return created(cls, FLAVOR_DYNAMIC, 0, 0, 1, {}, info, comm)

    def Attach(self, memory) -> None:
        """Let others access memory of this process (MPI-4.1, 12.2.4).

        Raises:
            Exception: ERR_RMA_FLAVOR when the window isn't dynamic, ERR_RMA_ATTACH when the memory is attached already.
        """
        cdef buffer held
        try:
            self.live()
            held = writable(memory)
            enter()                              # neither a signal's exception nor another thread comes in between
            try:
                (<OscModule> self.window.module).attach(start_of(held), held.view.len)
                self.window.memory[start_of(held)] = held
            finally:
                leave()
        except MPIError as error:
            hand_over(error, self.window)

    def Detach(self, memory) -> None:
        """Take attached memory away again, when nobody accesses it any more (MPI-4.1, 12.2.4)."""
        cdef buffer held
        try:
            self.live()
            held = writable(memory)
            enter()
            try:
                (<OscModule> self.window.module).detach(start_of(held))
                self.window.memory.pop(start_of(held), None)
            finally:
                leave()
        except MPIError as error:
            hand_over(error, self.window)

    def Free(self) -> None:
        """Let go of the window; collective; the handle becomes WIN_NULL (MPI-4.1, 12.2.5).

        The attributes' delete functions run first.  Memory of `Allocate` stays as long as something of the program's refers
        to it.
        """
        try:
            (<OscModule> self.live().module).may_free()
            attributes.delete_attrs(self, self.window.attributes)
            windows.free_window(self.live())     # asked again: the delete functions are the program's
        except MPIError as error:
            hand_over(error, self.window)
        forget(self)
        self.window = None

    # -- memory

    def Shared_query(self, rank: int) -> tuple:
        """Where this process sees the memory of another (MPI-4.1, 12.2.3).

        Parameters:
            rank: in the window; PROC_NULL for the lowest rank that has memory.

        Returns:
            (buffer, displacement unit); an empty buffer where the memory is not shared.
        """
        cdef Window window
        cdef int which = rank, each
        try:
            window = self.live()
            if self.checked_rank(which) == PROC_NULL:
                which = 0
                for each in range(window.communicator.size):
                    if window.sizes[each] > 0:
                        which = each
                        break
        except MPIError as error:
            hand_over(error, self.window)
        if window.addresses[which] == 0:
            return buffer_over(0, 0, None, False), window.units[which]
        return buffer_over(window.addresses[which], window.sizes[which], window.memory, False), window.units[which]

    def tomemory(self):
        """This process's memory, as a buffer of bytes (MPI-4.1, 12.2.6)."""
        cdef Window window
        try:
            window = self.live()
        except MPIError as error:
            hand_over(error, self.window)
        return buffer_over(window.base, window.size, None if window.base == 0 else window.memory, False)

    def __getbuffer__(self, Py_buffer *view, int flags):
        cdef Window window = self.window
        if window is None or window.freed:
            raise BufferError("WIN_NULL, or a window that was freed, has no memory")
        # Of what holds the memory, which is there as long as the view is, also once the window is freed.
        PyObject_GetBuffer(self.tomemory(), view, flags)

    def __releasebuffer__(self, Py_buffer *view):
        """NumPy keeps a view, rather than this handle, of what has such a method."""

    # -- group

    def Get_group(self) -> Group:
        """The processes of the window (MPI-4.1, 12.2.6)."""
        try:
            return new_group(Group, self.live().communicator.group)
        except MPIError as error:
            hand_over(error, self.window)

    @property
    def group(self) -> Group:
        """The processes of the window (MPI-4.1, 12.2.6)."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """Number of processes of the window (MPI-4.1, 12.2.6)."""
        return self.Get_group().size

    @property
    def group_rank(self) -> int:
        """Rank of this process in the window (MPI-4.1, 12.2.6)."""
        return self.Get_group().rank

    # -- attributes

    def Get_attr(self, keyval: int):
        """Value of a key, or None (MPI-4.1, 7.7.3 and 12.2.6).

        WIN_BASE (address), WIN_SIZE (bytes), WIN_DISP_UNIT (bytes), WIN_CREATE_FLAVOR and WIN_MODEL are the library's.
        """
        cdef Window window
        try:
            window = self.live()
            if keyval == attributes.WIN_BASE:
                return window.base
            if keyval == attributes.WIN_SIZE:
                return window.size
            if keyval == attributes.WIN_DISP_UNIT:
                return window.unit
            if keyval == attributes.WIN_CREATE_FLAVOR:
                return window.flavor
            if keyval == attributes.WIN_MODEL:
                return window.model
            return attributes.get_attr("Win", window.attributes, keyval)
        except MPIError as error:
            hand_over(error, self.window)

    def Set_attr(self, keyval: int, attrval) -> None:
        """Cache a value under a key (MPI-4.1, 7.7.3)."""
        try:
            attributes.set_attr("Win", self, self.live().attributes, keyval, attrval)
        except MPIError as error:
            hand_over(error, self.window)

    def Delete_attr(self, keyval: int) -> None:
        """Remove the value of a key (MPI-4.1, 7.7.3)."""
        try:
            attributes.delete_attr("Win", self, self.live().attributes, keyval)
        except MPIError as error:
            hand_over(error, self.window)

    @classmethod
    def Create_keyval(cls, copy_fn=None, delete_fn=None, nopython: bool = False) -> int:
        """A new key for attributes of windows (MPI-4.1, 7.7.3).

        Parameters:
            copy_fn: never called: windows are not copied.
            delete_fn: function(win, keyval, value), called when the value is removed or the window freed.
            nopython: values are integers only.
        """
        return attributes.create_keyval("Win", copy_fn, delete_fn, nopython)

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Give up a key; values under it stay until they are removed.  Returns KEYVAL_INVALID (MPI-4.1, 7.7.3)."""
        return attributes.free_keyval("Win", keyval)

    @property
    def attrs(self) -> tuple:
        """Tuple (address, bytes, displacement unit) of this process's memory (MPI-4.1, 12.2.6)."""
        return self.Get_attr(attributes.WIN_BASE), self.Get_attr(attributes.WIN_SIZE), self.Get_attr(attributes.WIN_DISP_UNIT)

    @property
    def flavor(self) -> int:
        """How the window was made: one of WIN_FLAVOR_* (MPI-4.1, 12.2.6)."""
        return self.Get_attr(attributes.WIN_CREATE_FLAVOR)

    @property
    def model(self) -> int:
        """The memory model: WIN_UNIFIED (MPI-4.1, 12.4)."""
        return self.Get_attr(attributes.WIN_MODEL)

    # -- hints, name, error handler

    def Set_info(self, Info info not None) -> None:
        """Change hints (MPI-4.1, 12.2.7): those on accumulates; the others are settled when the window is made."""
        try:
            self.live().attributes["hints"].change(hints(info), "Set_info")
        except MPIError as error:
            hand_over(error, self.window)

    def Get_info(self) -> Info:
        """The hints in force, as a new info object (MPI-4.1, 12.2.7); where each is from says `ompy_source_of_<hint>`.

        What accesses to this window need of their target stands under `ompy_target_progress`: `none`; `thread`, which it has
        by `mpi_async_progress` or while windows of osc/portals need one; `calls`: they wait until the target calls MPI.
        """
        cdef Window window
        try:
            window = self.live()
            need = "none" if window.module.direct else "thread" if is_employed() else "calls"
            told = {"ompy_target_progress": need, memory_kinds.KEY: memory_kinds.supported()}
            return new_info({**window.attributes["hints"].info(), **told})
        except MPIError as error:
            hand_over(error, self.window)

    @property
    def info(self) -> Info:
        """The hints, as a new info object (MPI-4.1, 12.2.7)."""
        return self.Get_info()

    @info.setter
    def info(self, Info value):
        self.Set_info(value)

    def Get_name(self) -> str:
        """Name, for people (MPI-4.1, 7.8)."""
        return "MPI_WIN_NULL" if self.window is None else self.window.name

    def Set_name(self, str name not None) -> None:
        """Give it a name (MPI-4.1, 7.8)."""
        try:
            self.live().name = name
            self.window.communicator.name = name or "MPI_WIN"
        except MPIError as error:
            hand_over(error, self.window)

    @property
    def name(self) -> str:
        """Name, for people (MPI-4.1, 7.8)."""
        return self.Get_name()

    @name.setter
    def name(self, str value):
        self.Set_name(value)

    @classmethod
    def Create_errhandler(cls, errhandler_fn) -> Errhandler:
        """An error handler from function(win, error code) (MPI-4.1, 9.3.2).

        The error is raised as MPI.Exception after the function has returned.
        """
        return create_errhandler("Win", errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """The error handler (MPI-4.1, 9.3.2)."""
        try:
            return get_errhandler(self.live().attributes)
        except MPIError as error:
            hand_over(error, self.window)

    def Set_errhandler(self, Errhandler errhandler not None) -> None:
        """Set the error handler of this process for the window (MPI-4.1, 9.3.2)."""
        try:
            set_errhandler(self.live().attributes, "Win", errhandler)
        except MPIError as error:
            hand_over(error, self.window)

    def Call_errhandler(self, errorcode: int) -> None:
        """Call the error handler (MPI-4.1, 9.5.4)."""
        try:
            self.live()
        except MPIError as error:
            hand_over(error, self.window)
        call_errhandler(self.window, errorcode)


cdef buffer writable(object memory):
    """A writable contiguous view of the program's memory, given back with the object."""
    cdef buffer held = buffer.__new__(buffer)
    held.device = acquire(memory, &held.view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    held.held = True
    return held


cdef inline size_t start_of(buffer held) noexcept:
    """Where it begins.  What has no bytes is nowhere: other memory may begin where Python says that it does."""
    return <size_t> held.view.buf if held.view.len else 0


cdef Win created(cls, int flavor, size_t address, Py_ssize_t size, Py_ssize_t unit, object memory, Info info, Comm comm):
    """The parts that the ways to make a window share."""
    cdef Win made = cls.__new__(cls)
    cdef Communicator parent = None
    cdef dict given = hints(info)
    try:
        parent = identity.own if comm is None else comm.live()
        if parent is None:
            raise MPIError(ERR_COMM, "comm: COMM_SELF expected, which there is none of before MPI is initialised")
        if flavor == FLAVOR_SHARED:
            made.window = windows.create_shared(parent, size, unit, given)
        else:
            made.window = windows.create(parent, flavor, address, size, unit, memory, given)
    except MPIError as error:
        hand_over(error, parent)
    return made


def handle_of(core):
    """A handle on a core window, for the program's error handler."""
    cdef Win win = Win.__new__(Win)
    win.window = core
    return win


handle_makers[Window] = handle_of

WIN_NULL = predefine(Win(), "WIN_NULL")
