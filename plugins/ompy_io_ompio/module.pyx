# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Files by the components of four frameworks.  See `module.pxd`."""
from ompy.core.board cimport FILE_READ, FILE_WRITE, OPERATION_NONE
from ompy.core.communicator cimport Communicator
from ompy.core.file cimport (
    EXPLICIT, INDIVIDUAL, MODE_APPEND, MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_EXCL, SEEK_CUR, SEEK_END, Access, File,
    FileRequest,
)
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.core.view cimport View
from ompy.mca.agreement cimport agree
from ompy.mca.io cimport INTERFACE, IoModule
from ompy.mca.pml cimport closed

from ompy.core.errors import ERR_ARG, ERR_NOT_SAME, ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.core.lane import shared as lane
from ompy.mca.agreement import gathered
from ompy.mca.selection import select_for_file

interface = INTERFACE


cdef class Ompio(IoModule):
    """One file."""

    def __init__(self, File file not None):
        IoModule.__init__(self, "ompio", file)

    # -- the file as a whole

    cpdef int open(self) except -1:
        """Collective: rank 0 opens it first, so that one rank makes it where it is to be made."""
        cdef File file = self.file
        cdef Communicator comm = file.communicator
        cdef bint first, opened = False
        try:
            for first in (True, False):
                problem = None
                if first == (comm.rank == 0):
                    try:
                        self.fs = select_for_file("fs", file)
                        file.parts["fs"] = self.fs
                        self.fs.open(file, first and file.mode & MODE_CREATE != 0, first and file.mode & MODE_EXCL != 0)
                        opened = True
                    except BaseException as error:
                        problem = error
                agree(comm, problem, f"{file.path}: can't be opened")
            problem = None
            try:
                self.select()
            except BaseException as error:
                problem = error
            agree(comm, problem, f"{file.path}: can't be served")
            self.same()
            file.view.plain = file.view.contiguous
            self.sharedfp.open()
            if file.mode & MODE_APPEND:
                self.go_to_end()
        except BaseException:
            if opened:
                self.abandon()
            raise
        return 0

    cdef int go_to_end(self) except -1:
        problem = None
        try:
            self.seek(0, SEEK_END, False)
        except BaseException as error:
            problem = error
        agree(self.file.communicator, problem, f"{self.file.path}: its end can't be found")
        try:
            self.sharedfp.set(self.pointer)
        except MPIError:                         # there is no shared pointer, which whoever uses it is told
            pass
        return 0

    cdef int select(self) except -1:
        cdef File file = self.file
        file.parts["fbtl"] = self.fbtl = select_for_file("fbtl", file)
        file.parts["fcoll"] = self.fcoll = select_for_file("fcoll", file)
        file.parts["sharedfp"] = self.sharedfp = select_for_file("sharedfp", file)
        return 0

    def same(self) -> None:
        """Ranks whose components differ would wait for one another for ever: ERR_NOT_SAME."""
        from zlib import crc32

        names = [f"{framework}/{part.component}" for framework, part in self.file.parts.items()]
        rows = gathered(self.file.communicator, [crc32(name.encode()) for name in names])
        for rank, row in enumerate(rows):
            if row != rows[0]:
                raise MPIError(ERR_NOT_SAME, f"{self.file.path}: ranks 0 and {rank} chose different components; here "
                                             f"{', '.join(names)} serve")

    cdef int abandon(self) except -1:
        """What could not be opened on every rank is closed again."""
        if self.fcoll is not None:
            self.fcoll.free()
        if self.fbtl is not None:
            self.fbtl.free()
        self.fs.close(self.file)
        return 0

    cpdef int close(self) except -1:
        """Collective: when every rank is here, and what it had under way is over."""
        cdef File file = self.file
        cdef Communicator comm = file.communicator
        problem = interruption = lost = None
        try:
            self.drain()
            agree(comm, None, file.path)
        except MPIError as error:                # a rank has failed: nobody meets any more, and each gives back what is its own
            lost = error
        for part in (self.sharedfp, self.fcoll, self.fbtl, self.fs):
            try:
                part.close(file) if part is self.fs else part.free()
            except Exception as error:
                problem = problem or error
            except BaseException as error:       # the others wait for this rank all the same
                interruption = error
        if closed is not None:                   # a child of fork, whose own it is to close
            lost = problem
        if lost is not None:
            raise lost
        if closed is not None:
            return 0
        agree(comm, problem, f"{file.path}: can't be closed")
        if file.mode & MODE_DELETE_ON_CLOSE:
            if comm.rank == 0:
                try:
                    self.fs.delete(file.path)
                except BaseException as error:
                    problem = error
            agree(comm, problem, f"{file.path}: can't be deleted on close")
        if interruption is not None:
            raise interruption
        return 0

    cpdef Py_ssize_t size(self) except -1:
        """Bytes that it has now."""
        return self.fs.size(self.file)

    cpdef int set_size(self, Py_ssize_t size) except -1:
        """Collective: one rank does it."""
        self.by_rank_0((<object> self.fs).resize, size, f"can't have {size} bytes")
        return 0

    cpdef int preallocate(self, Py_ssize_t size) except -1:
        """Collective: one rank does it."""
        self.by_rank_0((<object> self.fs).preallocate, size, f"has no room for {size} bytes")
        return 0

    def by_rank_0(self, change, size, words: str) -> None:
        """The size is changed when all ranks are done with what came before; `words` for those that don't know why it can't."""
        cdef Communicator comm = self.file.communicator
        self.file.settle()
        agree(comm, None, self.file.path)
        problem = None
        if comm.rank == 0:
            try:
                change(self.file, size)
            except BaseException as error:
                problem = error
        agree(comm, problem, f"{self.file.path}: {words}")

    cpdef int sync(self) except -1:
        """Collective: each rank brings its own to the device."""
        problem = None
        self.file.settle()
        try:
            self.fs.sync(self.file)
        except BaseException as error:
            problem = error
        agree(self.file.communicator, problem, f"{self.file.path}: can't be synced")
        return 0

    # -- view and pointers

    cpdef int set_view(self, View view) except -1:
        """Collective: both pointers go to the view's start."""
        cdef Communicator comm = self.file.communicator
        cdef bint plain = True
        self.drain()
        for rank, row in enumerate(gathered(comm, [view.etype.size, view.contiguous])):
            plain = plain and row[1]
            if row[0] != view.etype.size:
                raise MPIError(ERR_NOT_SAME, f"{self.file.path}: etype: {view.etype.size} bytes of data here, {row[0]} on rank "
                                             f"{rank}")
        view.plain = plain
        self.file.view = view
        self.pointer = 0
        self.sharedfp.set(0)
        return 0

    cpdef int seek(self, Py_ssize_t offset, int whence, bint shared) except -1:
        """Move a pointer; the shared one together."""
        cdef Communicator comm = self.file.communicator
        cdef View view = self.file.view
        cdef Py_ssize_t base = 0, farthest = view.tiles * view.filetype.size // view.etype.size
        problem = None
        if shared:
            # What is before this call on any rank has moved the pointer.
            self.file.settle()
            agree(comm, None, self.file.path)
        try:
            if whence == SEEK_CUR:
                base = self.sharedfp.get() if shared else self.pointer
            elif whence == SEEK_END:
                base = (view.position(self.fs.size(self.file)) + view.etype.size - 1) // view.etype.size
            if offset < -base:
                raise MPIError(ERR_ARG, f"{self.file.path}: offset {offset} leads before the start of the view")
            if base > farthest or offset > farthest - base:
                raise MPIError(ERR_ARG, f"{self.file.path}: offset {offset} is farther than a file can reach")
        except BaseException as error:
            problem = error
        if shared:
            agree(comm, problem, f"{self.file.path}: the shared pointer can't be moved")
            return self.sharedfp.set(base + offset)
        if problem is not None:
            raise problem
        self.pointer = base + offset
        return 0

    cpdef Py_ssize_t tell(self, bint shared) except -1:
        """Where a pointer is, in etypes."""
        return self.sharedfp.get() if shared else self.pointer

    cpdef int set_atomicity(self, bint atomic) except -1:
        """Collective.  Errors: ERR_UNSUPPORTED_OPERATION where there are no locks, ERR_NOT_SAME."""
        problem = None
        self.drain()
        flags = gathered(self.file.communicator, [atomic])
        if [not atomic] in flags:
            raise MPIError(ERR_NOT_SAME, f"{self.file.path}: flag: {bool(atomic)} here, {not atomic} on rank "
                                         f"{flags.index([not atomic])}")
        try:
            if atomic and not self.fbtl.check_atomicity():
                raise MPIError(ERR_UNSUPPORTED_OPERATION, f"{self.file.path}: its file system has no range locks, by which "
                                                          "atomic mode works")
        except BaseException as error:
            problem = error
        agree(self.file.communicator, problem, f"{self.file.path}: no atomic mode")
        self.file.atomic = atomic
        return 0

    # -- accesses

    cdef int place(self, Access access) except -1:
        cdef Py_ssize_t etype = access.view.etype.size, count = access.nbytes // etype, start
        if access.pointer == EXPLICIT:
            start = access.offset
        elif access.pointer == INDIVIDUAL:
            start = self.pointer
        elif access.collective:
            self.file.settle()
            start = self.sharedfp.ordered(count)
        else:
            start = self.sharedfp.advance(count)
        if start > (access.view.tiles * access.view.filetype.size - access.nbytes) // etype:
            problem = MPIError(ERR_ARG, f"{self.file.path}: offset {start} is farther than a file can reach")
            if not access.collective:
                raise problem
            return access.refuse(problem)
        if access.pointer == INDIVIDUAL:
            self.pointer = start + count
        access.position = start * etype
        return 0

    cdef int drain(self) except -1:
        cdef Request request
        self.file.settle()
        while self.file.pending and lane.busy:
            request = lane.last
            wait(request)
        return 0

    cpdef Py_ssize_t read(self, Access access) except -1:
        """From the file to memory; returns bytes of data."""
        if access.collective:
            self.file.settle()
        self.place(access)
        if self.file.atomic:
            return self.locked(access)
        return self.together(access) if access.collective else self.fbtl.preadv(access)

    cpdef Py_ssize_t write(self, Access access) except -1:
        """From memory to the file; returns bytes of data."""
        if access.collective:
            self.file.settle()
        self.place(access)
        if self.file.atomic:
            return self.locked(access)
        return self.together(access) if access.collective else self.fbtl.pwritev(access)

    cdef Py_ssize_t together(self, Access access) except -1:
        cdef Communicator comm = self.file.communicator
        comm.purpose = FILE_WRITE if access.writing else FILE_READ
        try:
            return self.fcoll.write_all(access) if access.writing else self.fcoll.read_all(access)
        finally:
            comm.purpose = OPERATION_NONE

    cpdef Request iread(self, Access access):
        """The same, going on by itself."""
        self.place(access)
        if self.file.atomic:
            return self.locked_request(access)
        return self.fcoll.iread_all(access) if access.collective else self.fbtl.ipreadv(access)

    cpdef Request iwrite(self, Access access):
        """The same, going on by itself."""
        self.place(access)
        if self.file.atomic:
            return self.locked_request(access)
        return self.fcoll.iwrite_all(access) if access.collective else self.fbtl.ipwritev(access)

    def locked(self, Access access not None) -> int:
        """An access that others see whole or not at all (MPI-4.1, 14.6.1): nobody else is in its reach meanwhile."""
        cdef Py_ssize_t first = 0, reach
        if access.nbytes == 0:
            return 0
        reach = access.view.reach(access.position, access.nbytes, &first)
        with self.file.turn:
            self.fbtl.lock(first, reach, access.writing)
            try:
                return self.fbtl.pwritev(access) if access.writing else self.fbtl.preadv(access)
            finally:
                self.fbtl.unlock(first, reach)

    def locked_request(self, Access access not None) -> FileRequest:
        """The same, going on by itself."""
        request = FileRequest(self.file, access, self.locked)
        request.put_on(self.fcoll.lane if access.collective else lane)
        return request
