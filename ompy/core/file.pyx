# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Files as the components that serve them see them.  See `file.pxd`."""
cimport cython
from cpython.pythread cimport PyThread_get_thread_ident

import os
from _thread import allocate_lock

from ompy.core.board cimport FILE_READ, FILE_WRITE, OPERATION_NONE
from ompy.core.communicator cimport Communicator
from ompy.core.progress cimport over, wait
from ompy.core.progress_source cimport wake

from ompy.core.errors import ERR_IO, ERR_OTHER, MPIError


@cython.freelist(16)
cdef class Access:
    """One access to a file; see `file.pxd`."""

    cpdef int refuse(self, object problem) except -1:
        """This rank moves nothing, for that reason."""
        if self.problem is None:
            self.problem = problem
        self.count = self.nbytes = self.position = 0
        return 0


cdef unsigned long forks = 0                     # that this process comes from


def in_child() -> None:
    """Of the process that comes from a fork: locks that threads of its parent's held then would be held for ever."""
    global forks
    forks += 1


os.register_at_fork(after_in_child=in_child)


cdef class Turn:
    """One thread's turn at a file's bytes.

    Parameters:
        path: the file's name.
    """

    def __init__(self, str path not None):
        self.path = path
        self.lock = allocate_lock()
        self.forks = forks

    cpdef int acquire(self) except -1:
        """Wait until no other thread has it."""
        cdef unsigned long thread = <unsigned long> PyThread_get_thread_ident()
        if self.holder == thread:
            raise MPIError(ERR_OTHER, f"{self.path}: a signal handler can't use the file in the middle of an access that "
                                      "it has interrupted: let that end first")
        if self.forks != forks:
            self.lock = allocate_lock()
            self.forks = forks
        self.lock.acquire()
        self.holder = thread
        return 0

    cpdef int release(self) except -1:
        """It is another thread's."""
        self.holder = 0
        self.lock.release()
        return 0

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *raised):
        self.release()


cdef class File:
    """A file that a group of processes opened together (MPI-4.1, 14.1).

    Parameters:
        communicator: the file's own.
        path: its name in the file system.
        mode: MODE_*, or'ed together.
        hints: those in force.
        view: the one that it begins with.
    """

    def __init__(self, Communicator communicator not None, str path not None, int mode, hints, View view not None):
        self.communicator = communicator
        self.path = path
        self.mode = mode
        self.alone = communicator.size == 1 and mode & MODE_UNIQUE_OPEN != 0
        self.hints = hints
        self.view = view
        self.descriptor = -1
        self.readable = True
        self.parts = {}
        self.verdicts = []
        self.attributes = {}
        self.turn = Turn(path)
        self.callers = set()

    cpdef int settle(self) except -1:
        """This rank's collective accesses are over, also those that go on by themselves."""
        cdef Request under_way = self.together
        if under_way is not None and not under_way.complete:
            wait(under_way)
        return 0

    cdef bint in_use(self) except -1:
        return self.calls > 0 or PyThread_get_thread_ident() in self.callers

    def mark_freed(self):
        """No access may begin any more."""
        self.freed = True

    def __repr__(self):
        return f"<file {self.path} rank {self.communicator.rank} of {self.communicator.size}>"


# Times that a request is given to a lane before whoever began it carries it out.
cdef int TRIES = 100


cdef class FileRequest(Request):
    """An access that goes on by itself.

    Parameters:
        file, access: which.
        work: function of the access that carries it out and returns the number of bytes moved.
    """

    def __init__(self, File file not None, Access access not None, work):
        self.file = file
        self.access = access
        access.detached = True
        self.work = work
        self.operation = FILE_WRITE if access.writing else FILE_READ
        self.nbytes = access.nbytes
        self.communicator = file.communicator
        self.buffer = access.owner
        if access.collective:
            file.together = self
        else:
            file.pending += 1
        self.begin()

    def put_on(self, lane) -> None:
        """Have a lane's thread carry it out, whatever signal handlers raise meanwhile: the file waits for it already.

        Where there are no waits any more, in a child of fork, it is carried out at once.
        """
        raised = None
        if over is not None:
            self.taken = True
            self.carry_out()
            return
        for _ in range(TRIES):
            if self.taken:
                break
            try:
                lane.put(self)
            except BaseException as error:
                raised = error
        if not self.taken:
            self.carry_out()
        if raised is not None:
            raise raised

    cdef Py_ssize_t settled(self, Py_ssize_t nbytes) except -1:
        """What the access has moved of the program's data, of which that may have a function."""
        self.file.callers.add(PyThread_get_thread_ident())
        try:
            return self.access.settle(nbytes)
        finally:
            self.file.callers.discard(PyThread_get_thread_ident())

    def carry_out(self) -> None:
        """Called once, by the thread that does the work; whoever waits is woken."""
        cdef object error = None
        cdef Communicator comm = self.file.communicator
        try:
            if self.access.collective:
                comm.purpose = self.operation
            nbytes = self.work(self.access)
            if self.access.problem is not None:
                raise self.access.problem
            self.status.nbytes = nbytes if self.access.settle is None else self.settled(nbytes)
        except MPIError as problem:
            error = problem
        except BaseException as problem:
            error = MPIError(ERR_IO, f"{self.file.path}: {type(problem).__name__}: {problem}")
            error.__cause__ = problem
        if self.access.collective:
            comm.purpose = OPERATION_NONE
            if self.file.together is self:
                self.file.together = None
        else:
            self.file.pending -= 1
        self.work = None
        if error is None:
            self.finish()
        else:
            self.fail(error)
        wake()
