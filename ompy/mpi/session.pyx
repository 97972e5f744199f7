# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Sessions: MPI without COMM_WORLD (MPI-4.1, 11.3)."""

from ompy.mpi.buffered cimport attach, attached, detach
from ompy.mpi.errhandler cimport (
    Errhandler, call_errhandler, create_errhandler, get_errhandler, handle_makers, set_errhandler,
)
from ompy.mpi.group cimport Group, new_group
from ompy.mpi.handle cimport Handle, forget, predefine
from ompy.mpi.info cimport Info, hints, new_info
from ompy.mpi.request cimport Request, new_request

from ompy.core.errors import ERR_ARG, ERR_SESSION, MPIError
from ompy.mca import memory_kinds
from ompy.mpi import process_sets
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over

__all__ = ["SESSION_NULL", "Session"]


cdef class OpenSession:
    """What a handle of class Session stands for."""

    def __init__(self):
        self.attributes = {}
        self.is_open = True

    def __repr__(self):
        return "<session>"


cdef class Session(Handle):
    """A place to ask for sets of processes, and to make groups and communicators of them (MPI-4.1, 11.3)."""

    def __cinit__(self, Session session=None):
        if session is not None:
            self.session = session.session

    cdef type family(self):
        return Session

    cdef object core(self):
        return self.session

    cdef int become(self, object core) except -1:
        self.session = core
        return 0

    cdef int dispose(self) except -1:
        self.Finalize()
        return 0

    cdef OpenSession live(self):
        if self.session is None:
            raise MPIException(ERR_SESSION, "a session expected, not SESSION_NULL")
        if not self.session.is_open:
            raise MPIException(ERR_SESSION, "the session was finalised through another handle")
        return self.session

    @classmethod
    def Init(cls, Info info=None, Errhandler errhandler=None) -> Session:
        """Open a session (MPI-4.1, 11.3.1).  The library is brought up if it isn't yet.

        Parameters:
            info: hints.
            errhandler: of the session; default ERRORS_RETURN.
        """
        from ompy.mpi.environment import begin_session
        cdef Session made = cls.__new__(cls)
        begin_session()
        made.session = OpenSession()
        if errhandler is not None:
            set_errhandler(made.session.attributes, "Session", errhandler)
        made.session.attributes["info"] = hints(info)
        return made

    def Finalize(self) -> None:
        """Close the session; the handle becomes SESSION_NULL (MPI-4.1, 11.3.1)."""
        from ompy.mpi.environment import end_session
        cdef OpenSession session = self.live()
        if "buffer" in session.attributes:
            attached(session.attributes).flush()
        forget(self)
        self.session = None
        session.is_open = False
        end_session()

    def Get_num_psets(self, Info info=None) -> int:
        """Number of process sets that have a name (MPI-4.1, 11.3.2)."""
        self.live()
        return len(process_sets.NAMES)

    def Get_nth_pset(self, int n, Info info=None) -> str:
        """Name of a process set (MPI-4.1, 11.3.2).

        Parameters:
            n: from 0 to `Get_num_psets()` - 1.
        """
        self.live()
        if not 0 <= n < len(process_sets.NAMES):
            self.refuse(ERR_ARG, f"n: 0 or 1 expected, got {n}")
        return process_sets.NAMES[n]

    def Get_info(self) -> Info:
        """The session's hints, as a new info object (MPI-4.1, 11.3.2).

        "thread_level" is what the library provides, "mpi_memory_alloc_kinds" what kinds of memory it takes (11.3.1, 11.4.3).
        """
        given = self.live().attributes["info"]
        told = {"thread_level": "MPI_THREAD_MULTIPLE", memory_kinds.KEY: memory_kinds.supported(given.get(memory_kinds.KEY))}
        return new_info({**given, **told})

    def Get_pset_info(self, str pset_name not None) -> Info:
        """What is known of a process set: "mpi_size" is its number of processes (MPI-4.1, 11.3.2)."""
        return new_info({"mpi_size": str(self.members(pset_name).size)})

    def Create_group(self, str pset_name not None) -> Group:
        """The group of a process set (MPI-4.1, 7.3.2)."""
        return new_group(Group, self.members(pset_name).group, self.session)

    # --- buffered mode

    def Attach_buffer(self, buf) -> None:
        """Attach memory for buffered sends (MPI-4.1, 3.6); None or BUFFER_AUTOMATIC: the library makes it as needed."""
        attach(self.live().attributes, buf)

    def Detach_buffer(self):
        """Wait until all messages have left the attached buffer, and give it back (MPI-4.1, 3.6)."""
        return detach(self.live().attributes)

    def Flush_buffer(self) -> None:
        """Wait until all messages have left the attached buffer (MPI-4.1, 3.6)."""
        attached(self.live().attributes).flush()

    def Iflush_buffer(self) -> Request:
        """A request that is complete when all messages have left the attached buffer (MPI-4.1, 3.6)."""
        return new_request(attached(self.live().attributes).iflush(), None)

    # --- error handlers

    @classmethod
    def Create_errhandler(cls, errhandler_fn) -> Errhandler:
        """An error handler from function(session, error code) (MPI-4.1, 9.3.4)."""
        return create_errhandler("Session", errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """The error handler (MPI-4.1, 9.3.4)."""
        return get_errhandler(self.live().attributes)

    def Set_errhandler(self, Errhandler errhandler not None) -> None:
        """Set the error handler (MPI-4.1, 9.3.4)."""
        set_errhandler(self.live().attributes, "Session", errhandler)

    def Call_errhandler(self, int errorcode) -> None:
        """Call the error handler (MPI-4.1, 9.5.4)."""
        call_errhandler(self.live(), errorcode)

    # --- within

    def members(self, str name):
        """The core communicator whose members a process set has (MPI-4.1, 11.3.2)."""
        self.live()
        found = process_sets.members(name)
        if found is None:
            self.refuse(ERR_ARG, f"pset_name: {' or '.join(process_sets.NAMES)} expected, got {name!r}")
        return found

    def refuse(self, int code, str detail):
        """Raise an error of the session (MPI-4.1, 9.3)."""
        hand_over(MPIError(code, detail), self.live())


def handle_of(OpenSession core not None):
    """A handle on an open session, for the program's error handler."""
    cdef Session made = Session.__new__(Session)
    made.session = core
    return made


handle_makers[OpenSession] = handle_of

SESSION_NULL = predefine(Session(), "SESSION_NULL")
