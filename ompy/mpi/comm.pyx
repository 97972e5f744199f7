# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Communicators: what intra- and inter-communicators share (MPI-4.1, chapter 7)."""

from ompy.core.communicator cimport ANYWHERE, TOGETHER, Communicator
from ompy.core.constants cimport PROC_NULL, TAG_UPPER_BOUND, UNDEFINED
from ompy.core.request cimport Request as CoreRequest
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mpi.errhandler cimport (
    Errhandler, call_errhandler, create_errhandler, get_errhandler, handle_makers, set_errhandler,
)
from ompy.mpi.group cimport Group, checked, compare, new_group
from ompy.mpi.handle cimport blank, forget, is_predefined, predefine
from ompy.mpi.info cimport Info, hints, new_info
from ompy.mpi.object_collectives cimport ObjectCollectives
from ompy.mpi.request cimport new_request
from ompy.runtime.communicator_lifecycle cimport free_communicator
from ompy.runtime.communicators cimport duplicate, split

from ompy.core.errors import ERR_ARG, ERR_COMM, MPIError
from ompy.core.host import host_number
from ompy.mca import memory_kinds
from ompy.mpi import attributes, dynamic_processes, error_codes, process_sets
from ompy.mpi.raising import hand_over
from ompy.runtime import communicator_lifecycle, communicators, identity

__all__ = [
    "COMM_NULL", "COMM_TYPE_HW_GUIDED", "COMM_TYPE_HW_UNGUIDED", "COMM_TYPE_RESOURCE_GUIDED", "COMM_TYPE_SHARED", "Comm",
]

# Ways to split by hardware (MPI-4.1, 7.4.2), numbered as in Open MPI's mpi.h.
COMM_TYPE_SHARED = 0
COMM_TYPE_HW_UNGUIDED = 12
COMM_TYPE_HW_GUIDED = 13
COMM_TYPE_RESOURCE_GUIDED = 14

# Info keys that name a kind of hardware, and a set of processes.
cdef str RESOURCE_KEY = "mpi_hw_resource_type"
cdef str SET_KEY = "mpi_pset_name"

classes = {}


cdef list gathered(Comm comm, object mine):
    """What each process says, of both groups."""
    cdef list theirs = comm.allgather(mine)
    return theirs + comm.allgather(theirs)[0] if comm.comm.is_inter else theirs


cdef class Comm(ObjectCollectives):
    """
    A communicator: a group of processes, or two, and a context of their own for messages (MPI-4.1, chapter 7).

    `Comm(other)` is a second handle on the same communicator.  A null handle's methods raise ERR_COMM.
    """

    def __cinit__(self, Comm comm=None):
        if comm is not None:
            self.comm = comm.comm

    cdef type family(self):
        return Comm

    cdef object core(self):
        return self.comm

    cdef int become(self, object core) except -1:
        self.comm = core
        return 0

    @classmethod
    def fromhandle(cls, handle: int) -> Comm:
        """A new handle, of the class that fits, on the communicator of an integer (of `handle`) (MPI-4.1, 19.3.4)."""
        cdef Comm made = super().fromhandle(handle)
        return made if made.comm is None else new_comm(made.comm)

    @classmethod
    def fromint(cls, arg: int, /) -> Comm:
        """A new handle on the communicator that the integer (of `toint`) stands for (MPI-4.1, 19.3.4)."""
        return cls.fromhandle(arg)

    @classmethod
    def f2py(cls, arg: int) -> Comm:
        """A new handle on the communicator that the Fortran integer (of `py2f`) stands for (MPI-4.1, 19.3.4)."""
        return cls.fromhandle(arg)

    # --- group

    def Get_size(self) -> int:
        """Number of processes in the (local) group (MPI-4.1, 7.4.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return self.comm.size

    def Get_rank(self) -> int:
        """Rank of this process in the (local) group (MPI-4.1, 7.4.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return self.comm.rank

    def Get_group(self) -> Group:
        """The (local) group (MPI-4.1, 7.3.2)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return new_group(Group, self.comm.group, self.comm.attributes.get("session"))

    @property
    def size(self) -> int:
        """Number of processes in the (local) group (MPI-4.1, 7.4.1)."""
        return self.Get_size()

    @property
    def rank(self) -> int:
        """Rank of this process in the (local) group (MPI-4.1, 7.4.1)."""
        return self.Get_rank()

    @property
    def group(self) -> Group:
        """The (local) group (MPI-4.1, 7.3.2)."""
        return self.Get_group()

    def Compare(self, Comm comm not None) -> int:
        """How much two communicators have in common (MPI-4.1, 7.4.1).

        IDENT: the same communicator; CONGRUENT: the same groups in the same order; SIMILAR: the same groups; else UNEQUAL.
        """
        cdef int local, remote = 0
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        if comm.comm is None or comm.comm.freed:
            comm.refuse_null()
        if self.comm is comm.comm:
            return 0
        if self.comm.is_inter != comm.comm.is_inter:
            return 3
        local = compare(self.comm.group, comm.comm.group)
        if self.comm.is_inter:
            remote = compare(self.comm.remote_group, comm.comm.remote_group)
        return max(local, remote, 1)

    def Is_inter(self) -> bool:
        """Whether there are two groups (MPI-4.1, 7.6.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return self.comm.is_inter

    def Is_intra(self) -> bool:
        """Whether there is one group (MPI-4.1, 7.6.1)."""
        return not self.Is_inter()

    @property
    def is_inter(self) -> bool:
        """Whether there are two groups (MPI-4.1, 7.6.1)."""
        return self.Is_inter()

    @property
    def is_intra(self) -> bool:
        """Whether there is one group (MPI-4.1, 7.6.1)."""
        return not self.Is_inter()

    def Get_topology(self) -> int:
        """CART, GRAPH, DIST_GRAPH or UNDEFINED (MPI-4.1, 8.5.5)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        topology = self.comm.attributes.get("topology")
        return UNDEFINED if topology is None else topology.kind

    @property
    def topology(self) -> int:
        """CART, GRAPH, DIST_GRAPH or UNDEFINED (MPI-4.1, 8.5.5)."""
        return self.Get_topology()

    @property
    def is_topo(self) -> bool:
        """Whether the processes have a topology (MPI-4.1, 8.5.5)."""
        return self.comm is not None and "topology" in self.comm.attributes

    # --- new communicators

    def Clone(self) -> Comm:
        """As `Dup` without info (MPI-4.1, 7.4.2)."""
        return self.Dup()

    def Dup(self, Info info=None) -> Comm:
        """A communicator with the same groups, topology and attributes, in a context of its own (MPI-4.1, 7.4.2).

        Parameters:
            info: hints for the new communicator.
        """
        cdef Communicator parent
        cdef Comm made
        keep_a_while()
        try:
            parent = self.live()
            made = self.new_handle(duplicate(parent, self.kept_by_duplicate()), type(self), info)
            if parent.attributes and "keyvals" in parent.attributes:
                try:
                    attributes.copy_attrs(self, parent.attributes, made.comm.attributes)
                except BaseException:
                    free_communicator(made.comm)
                    raise
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()
        return made

    def Dup_with_info(self, Info info) -> Comm:
        """As `Dup` with hints (MPI-4.1, 7.4.2)."""
        return self.Dup(info)

    def Idup(self, Info info=None) -> tuple:
        """Non-blocking `Dup` (MPI-4.1, 7.4.2).  Attributes and error handler are those of the time of the call.

        Returns:
            (communicator, request); the communicator is COMM_NULL until the request is complete.
        """
        cdef Comm made = type(self).__new__(type(self))
        cdef Communicator parent
        cdef CoreRequest request
        cdef dict inherited
        failure = None

        def finished(core):
            if failure is not None:
                free_communicator(core)
                return
            core.attributes.update(inherited)
            made.comm = core

        try:
            parent = self.live()
            inherited = self.inherited_settings(info)
            try:
                attributes.copy_attrs(self, parent.attributes, inherited)
            except BaseException as error:
                failure = error                  # the others make it all the same
            request = communicators.iduplicate(parent, finished, self.kept_by_duplicate())
            if failure is not None:
                raise failure
        except MPIError as error:
            hand_over(error, self.comm)
        return made, new_request(request, made)

    def Idup_with_info(self, Info info) -> tuple:
        """As `Idup` with hints (MPI-4.1, 7.4.2)."""
        return self.Idup(info)

    def Create(self, Group group not None) -> Comm:
        """A communicator for a subgroup; COMM_NULL for those who aren't in it (MPI-4.1, 7.4.2).

        Every process of the communicator calls it; disjoint groups may be given at the same time.
        """
        keep_a_while()
        try:
            return self.new_handle(communicators.create(self.live(), checked(group, "group")), None, None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Split(self, int color=0, int key=0) -> Comm:
        """One communicator for each color (MPI-4.1, 7.4.2).

        Parameters:
            color: not negative, or UNDEFINED to be in none, which returns COMM_NULL.
            key: orders the ranks of the new communicator; equal keys keep their order.
        """
        keep_a_while()
        try:
            if color < 0 and color != UNDEFINED:
                raise MPIError(ERR_ARG, f"color: a number that isn't negative, or UNDEFINED, expected, got {color}")
            return self.new_handle(split(self.live(), color, key), None, None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Split_type(self, int split_type, int key=0, Info info=None) -> Comm:
        """One communicator for each set of processes that share hardware (MPI-4.1, 7.4.2).

        Parameters:
            split_type: COMM_TYPE_SHARED: those that can share memory; COMM_TYPE_HW_GUIDED: those in one piece of hardware
                of the kind that `info` names under "mpi_hw_resource_type" (`Get_hw_resource_info` tells the kinds);
                COMM_TYPE_RESOURCE_GUIDED: the same, or those of the process set under "mpi_pset_name";
                COMM_TYPE_HW_UNGUIDED: those in one piece of the widest kind of which a piece has some of the processes, but
                not all, named in `info` on return; UNDEFINED to be in none.
            key: orders the ranks of the new communicator.

        Returns:
            COMM_NULL for UNDEFINED, for a kind or set that nobody knows, where this process may use several of the kind, and
            where no kind of hardware parts the processes (UNGUIDED).
        """
        cdef object color = UNDEFINED
        cdef object kind = None
        cdef object failure = None
        cdef dict colors = {}
        cdef int placement = TOGETHER
        keep_a_while()
        try:
            self.live()
            if split_type not in (COMM_TYPE_SHARED, COMM_TYPE_HW_UNGUIDED, COMM_TYPE_HW_GUIDED, COMM_TYPE_RESOURCE_GUIDED,
                                  UNDEFINED):
                raise MPIError(ERR_ARG, f"split_type: one of MPI.COMM_TYPE_*, or UNDEFINED, expected, got {split_type}")
            given = hints(info)
            if split_type == COMM_TYPE_SHARED:
                color = host_number()
            elif split_type == COMM_TYPE_RESOURCE_GUIDED and SET_KEY in given:
                placement = ANYWHERE
                color = process_sets.color(given[SET_KEY])
            elif split_type != UNDEFINED:
                try:
                    from ompy.runtime import hardware

                    colors = hardware.colors()
                except (OSError, MPIError) as error:
                    failure = error              # no descriptor is left, say: the others go on without this one
                if split_type == COMM_TYPE_HW_UNGUIDED:
                    everyone = gathered(self, colors)
                    kind = None if failure is not None else hardware.widest_split(everyone)
                    if info is not None and info.entries is not None and kind is not None:
                        info.entries[RESOURCE_KEY] = hardware.name_of(kind)
                elif failure is None:
                    kind = hardware.kind_of(given.get(RESOURCE_KEY))
                color = colors.get(kind)
            made = split(self.comm, UNDEFINED if color is None else color, key, None, placement)
            if failure is not None:
                raise failure
            return self.new_handle(made, None, None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Free(self) -> None:
        """Let go of the communicator on every process; the handle becomes COMM_NULL (MPI-4.1, 7.4.3).

        What is under way on it completes.  The attributes' delete functions run first.
        """
        try:
            self.live()
            if is_predefined(self):
                raise MPIError(ERR_COMM, f"{self.comm.name} can't be freed")
            if self.comm.attributes and "keyvals" in self.comm.attributes:
                attributes.delete_attrs(self, self.comm.attributes)
            free_communicator(self.comm)
        except MPIError as error:
            hand_over(error, self.comm)
        forget(self)
        self.comm = None

    def Disconnect(self) -> None:
        """Meet all members, then `Free` the communicator, and part from who is connected by no other (MPI-4.1, 11.10.4).

        What the program has begun on it is complete: MPI asks for that.
        """
        try:
            communicator_lifecycle.settle(self.live())
        except MPIError as error:
            hand_over(error, self.comm)
        core = self.comm
        self.Free()
        if core.spans_jobs:
            communicator_lifecycle.disconnect(core)

    # --- attributes

    def Get_attr(self, int keyval):
        """Value of a key, or None (MPI-4.1, 7.7.2).

        The library's own keys are TAG_UB, HOST, IO, WTIME_IS_GLOBAL, UNIVERSE_SIZE, APPNUM and LASTUSEDCODE (MPI-4.1, 9.1.2
        and 11.10).
        """
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        try:
            if 0 <= keyval < attributes.FIRST_KEYVAL:
                return predefined_attribute(keyval)
            return attributes.get_attr("Comm", self.comm.attributes, keyval)
        except MPIError as error:
            hand_over(error, self.comm)

    def Set_attr(self, int keyval, object attrval) -> None:
        """Cache a value under a key (MPI-4.1, 7.7.2)."""
        try:
            attributes.set_attr("Comm", self, self.live().attributes, keyval, attrval)
        except MPIError as error:
            hand_over(error, self.comm)

    def Delete_attr(self, int keyval) -> None:
        """Remove the value of a key (MPI-4.1, 7.7.2)."""
        try:
            attributes.delete_attr("Comm", self, self.live().attributes, keyval)
        except MPIError as error:
            hand_over(error, self.comm)

    @classmethod
    def Create_keyval(cls, copy_fn=None, delete_fn=None, bint nopython=False) -> int:
        """A new key for attributes of communicators (MPI-4.1, 7.7.2).

        Parameters:
            copy_fn: function(comm, keyval, value) that `Dup` asks for the new communicator's value, or NotImplemented
                for none; True to hand the value on.
            delete_fn: function(comm, keyval, value), called when the value is removed or the communicator freed.
            nopython: values are integers only.
        """
        return attributes.create_keyval("Comm", copy_fn, delete_fn, nopython)

    @classmethod
    def Free_keyval(cls, int keyval) -> int:
        """Give up a key; values under it stay until they are removed.  Returns KEYVAL_INVALID (MPI-4.1, 7.7.2)."""
        return attributes.free_keyval("Comm", keyval)

    # --- error handlers

    @classmethod
    def Create_errhandler(cls, errhandler_fn) -> Errhandler:
        """An error handler from function(comm, error code) (MPI-4.1, 9.3.1).

        The error is raised as MPI.Exception after the function has returned.
        """
        return create_errhandler("Comm", errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """The error handler (MPI-4.1, 9.3.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return get_errhandler(self.comm.attributes)

    def Set_errhandler(self, Errhandler errhandler not None) -> None:
        """Set the error handler of this process for the communicator (MPI-4.1, 9.3.1)."""
        try:
            set_errhandler(self.live().attributes, "Comm", errhandler)
        except MPIError as error:
            hand_over(error, self.comm)

    def Call_errhandler(self, int errorcode) -> None:
        """Call the error handler (MPI-4.1, 9.5.4)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        call_errhandler(self.comm, errorcode)

    def Abort(self, int errorcode=0):
        """End the job with this exit status (MPI-4.1, 11.2.5)."""
        from ompy.mpi.environment import abort
        abort(errorcode, f"rank {self.comm.rank if self.comm is not None else '?'} called Abort({errorcode}) on "
                         f"{self.Get_name() or 'a communicator'}")

    # --- name and hints

    def Get_name(self) -> str:
        """Name, for people (MPI-4.1, 7.8)."""
        return "MPI_COMM_NULL" if self.comm is None else self.comm.name

    def Set_name(self, str name not None) -> None:
        """Give it a name (MPI-4.1, 7.8)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        self.comm.name = name

    @property
    def name(self) -> str:
        """Name, for people (MPI-4.1, 7.8)."""
        return self.Get_name()

    @name.setter
    def name(self, str value):
        self.Set_name(value)

    def Set_info(self, Info info not None) -> None:
        """Add hints (MPI-4.1, 7.4.4)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        self.comm.attributes.setdefault("info", {}).update(hints(info))

    def Get_info(self) -> Info:
        """The hints, as a new info object (MPI-4.1, 7.4.4)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return new_info({**self.comm.attributes.get("info", {}), memory_kinds.KEY: memory_kinds.supported()})

    @property
    def info(self) -> Info:
        """The hints, as a new info object (MPI-4.1, 7.4.4)."""
        return self.Get_info()

    @info.setter
    def info(self, Info value):
        self.Set_info(value)

    # --- of other jobs

    @classmethod
    def Get_parent(cls):
        """The inter-communicator to the processes that spawned this job; COMM_NULL where there are none, or after
        `Disconnect` (MPI-4.1, 11.8.2)."""
        cdef Communicator parent = dynamic_processes.parent
        return classes["inter"]() if parent is None or parent.freed else new_comm(parent)

    @classmethod
    def Join(cls, int fd):
        """The inter-communicator with the process at the other end of a connected stream socket (MPI-4.1, 11.10.5)."""
        try:
            return new_comm(dynamic_processes.join(fd))
        except MPIError as error:
            hand_over(error, None)

    # --- within

    def refuse_null(self):
        """Raise the error of a null communicator, or of one that is no more (MPI-4.1, 9.4)."""
        try:
            self.live()
        except MPIError as error:
            hand_over(error, self.comm)

    cdef dict kept_by_duplicate(self):
        if self.comm is not None and self.comm.attributes and "topology" in self.comm.attributes:
            return {"topology": self.comm.attributes["topology"]}
        return None

    cdef Comm new_handle(self, Communicator core, object cls, object info):
        cdef Comm made
        if core is None:
            return blank(cls or classes["inter" if self.comm.is_inter else "intra"])
        made = new_comm(core) if cls is None else blank(cls)
        made.comm = core
        if self.comm.attributes or info is not None:
            core.attributes.update(self.inherited_settings(info))
        return made

    cdef dict inherited_settings(self, object info):
        """Attributes of a communicator that is made from this one now."""
        cdef dict given = {}
        if "errhandler" in self.comm.attributes:
            given["errhandler"] = self.comm.attributes["errhandler"]
        if "session" in self.comm.attributes:
            given["session"] = self.comm.attributes["session"]
        if hints(info):
            given["info"] = hints(info)
        return given


cdef int set_up(Communicator core, Group group, Info info, Errhandler errhandler) except -1:
    if group.session is not None:
        core.attributes["session"] = group.session
    if errhandler is not None:
        set_errhandler(core.attributes, "Comm", errhandler)
    if hints(info):
        core.attributes["info"] = hints(info)
    return 0


cdef Comm new_comm(object core):
    cdef Comm made
    cdef Communicator comm = core
    if comm is None:
        return Comm.__new__(Comm)
    if comm.is_inter:
        cls = classes["inter"]
    else:
        topology = comm.attributes.get("topology")
        cls = classes["intra" if topology is None else topology.kind]
    made = blank(cls)
    made.comm = comm
    return made


def core_of(Comm comm not None):
    """The core communicator that a handle stands for, for those in plain Python; None for the null handle."""
    return comm.comm


def handle_of(core):
    """A handle on a core communicator, for the program's error handler."""
    return new_comm(core)


handle_makers[Communicator] = handle_of


cdef object predefined_attribute(int keyval):
    if keyval == attributes.TAG_UB:
        return TAG_UPPER_BOUND
    if keyval == attributes.HOST:
        return PROC_NULL
    if keyval == attributes.IO:
        return -1                                # ANY_SOURCE: every process can do I/O
    if keyval == attributes.LASTUSEDCODE:
        return error_codes.last_used
    rte = identity.rte
    if keyval == attributes.WTIME_IS_GLOBAL:
        # The clock is the host's monotonic one.
        return int(rte.local_size == rte.size)
    if keyval == attributes.UNIVERSE_SIZE:
        return rte.universe_size
    if keyval == attributes.APPNUM:
        return rte.appnum
    raise MPIError(attributes.ERR_KEYVAL, f"keyval: {keyval} is no key for a Comm")


COMM_NULL = predefine(Comm(), "COMM_NULL")
