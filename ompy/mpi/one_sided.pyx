# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""One-sided communication and its synchronisation (MPI-4.1, 12.3 and 12.5)."""

from cpython.number cimport PyIndex_Check, PyNumber_Index

from ompy.core.basic cimport (
    GROUP_BYTE,
    GROUP_C_INTEGER,
    GROUP_FORTRAN_INTEGER,
    GROUP_LOGICAL,
    GROUP_MULTI_LANGUAGE,
    basics,
)
from ompy.core.constants cimport PROC_NULL, UNDEFINED
from ompy.core.convertor cimport share_memory
from ompy.core.group cimport Group as CoreGroup
from ompy.core.request cimport CompletedRequest, Request as CoreRequest
from ompy.core.typemap cimport Typemap
from ompy.core.window cimport (
    ASSERT_NOCHECK, ASSERT_NOPRECEDE, ASSERT_NOPUT, ASSERT_NOSTORE, ASSERT_NOSUCCEED, LOCK_EXCLUSIVE as EXCLUSIVE, Window,
)
from ompy.mca.accumulate cimport NO_OP
from ompy.mca.osc cimport Access, OscModule
from ompy.mca.pml cimport closed
from ompy.mpi.buffers cimport Spec, keep, parse_recv, parse_send, require_committed
from ompy.mpi.datatype cimport Datatype, datatype_of, datatype_of_code
from ompy.mpi.group cimport Group, checked
from ompy.mpi.op cimport Op
from ompy.mpi.request cimport Request, new_request

from ompy.core.errors import ERR_ASSERT, ERR_BUFFER, ERR_GROUP, ERR_OP, ERR_OTHER, ERR_RANK, ERR_TYPE, ERR_WIN, MPIError
from ompy.mpi.op import SUM as SUM_OP
from ompy.mpi.raising import hand_over

__all__ = [
    "LOCK_EXCLUSIVE", "LOCK_SHARED", "MODE_NOCHECK", "MODE_NOPRECEDE", "MODE_NOPUT", "MODE_NOSTORE", "MODE_NOSUCCEED",
]

# Assertions and locks, numbered as in Open MPI's mpi.h.
MODE_NOCHECK = 1
MODE_NOPRECEDE = 2
MODE_NOPUT = 4
MODE_NOSTORE = 8
MODE_NOSUCCEED = 16
LOCK_EXCLUSIVE = 1
LOCK_SHARED = 2

cdef object NOTHING_ASSERTED = 0
cdef Op SUM = SUM_OP


cdef class OneSided(Handle):
    """What a window is used for: accesses to a target's memory, and the calls that open and close epochs.

    A *target specification* says where in the target's memory, counted in the target's displacement units:
    None (displacement 0), a displacement, or (displacement[, count[, datatype]]); count and datatype are the origin's where
    they are left out.
    """

    cdef Window live(self):
        if self.window is None:
            raise MPIError(ERR_WIN, "a window expected, not WIN_NULL")
        if self.window.freed:
            raise MPIError(ERR_WIN, "this window was freed through another handle")
        if closed is not None:
            raise MPIError(ERR_OTHER, closed)
        return self.window

    cdef list ranks_of(self, Group group):
        """Ranks in the window of a group's members."""
        cdef CoreGroup members = checked(group, "group")
        cdef list ranks
        if members is not self.members:
            ranks = [self.window.communicator.group.rank_of(index) for index in members.indices()]
            if UNDEFINED in ranks:
                raise MPIError(ERR_GROUP, f"group: its rank {ranks.index(UNDEFINED)} is not in the window's group")
            self.members, self.member_ranks = members, ranks
        return self.member_ranks

    cdef int checked_rank(self, int rank) except -3:
        if rank != PROC_NULL and not 0 <= rank < self.window.communicator.size:
            raise MPIError(ERR_RANK, f"rank {rank} is not in this window of {self.window.communicator.size} processes")
        return rank

    cdef Access access(self, object origin, bint writable, int target_rank, object target):
        cdef Access access
        cdef Spec spec
        self.live()
        if self.checked_rank(target_rank) == PROC_NULL:
            return None
        access = Access.__new__(Access)
        access.target = target_rank
        if writable:
            parse_recv(origin, &spec)
        else:
            parse_send(origin, &spec)
        access.origin_address, access.origin_count, access.origin_type = spec.address, spec.count, <Typemap> spec.typemap
        access.origin_owner = keep(&spec)
        access.target_count, access.target_type = access.origin_count, access.origin_type
        if target is None:
            return access
        if isinstance(target, (list, tuple)):
            if len(target) > 3:
                raise ValueError(f"target: at most (displacement, count, datatype) expected, not {len(target)} items")
            if len(target) > 0:
                access.displacement = PyNumber_Index(target[0])
            if len(target) > 1:
                access.target_count = PyNumber_Index(target[1])
                if access.target_count < 0:
                    raise ValueError(f"target: negative count {access.target_count}")
            if len(target) > 2:
                access.target_type = typemap_of(target[2])
                require_committed("target", access.target_type)
        elif PyIndex_Check(target):
            access.displacement = PyNumber_Index(target)
        else:
            raise ValueError("target: a displacement or a list or tuple (displacement, count, datatype) expected, "
                             f"not {type(target).__name__}")
        return access

    cdef Access fetching(self, object origin, object result, object compare, int target_rank, Py_ssize_t target_disp):
        """The access of one element each of origin, result and, unless it is None, compare; all of one datatype."""
        cdef Access access = self.access(origin, False, target_rank, target_disp)
        if access is None:
            return None
        require_one("origin", access.origin_count, access.origin_type, access.origin_type)
        if compare is not None:
            require_comparable(access.origin_type)
            add_compare(access, compare)
        add_result(access, result)
        require_one("result", access.result_count, access.result_type, access.origin_type)
        return access

    # -- accesses

    def Put(self, origin, target_rank: int, target=None) -> None:
        """Write to a target's memory (MPI-4.1, 12.3.1).

        Parameters:
            origin: buffer to be read; it may change after the next synchronisation.
            target_rank: rank in the window, or PROC_NULL.
            target: target specification.

        Raises:
            Exception: ERR_RANK, ERR_DISP, ERR_RMA_RANGE (not in the target's memory), ERR_RMA_SYNC (outside an epoch).
        """
        try:
            begin(self, PUT, self.access(origin, False, target_rank, target))
        except MPIError as error:
            hand_over(error, self.window)

    def Get(self, origin, target_rank: int, target=None) -> None:
        """Read a target's memory into `origin`, which is valid after the next synchronisation (MPI-4.1, 12.3.2).

        Parameters and errors as in `Put`.
        """
        try:
            begin(self, GET, self.access(origin, True, target_rank, target))
        except MPIError as error:
            hand_over(error, self.window)

    def Accumulate(self, origin, target_rank: int, target=None, Op op=None) -> None:
        """Combine data into a target's memory, atomically for each element (MPI-4.1, 12.3.4).

        Parameters:
            op: predefined operation, or REPLACE; default SUM.  Others as in `Put`.

        Raises:
            Exception: as `Put`, and ERR_OP.
        """
        try:
            begin(self, ACCUMULATE, with_reduction(self.access(origin, False, target_rank, target), op))
        except MPIError as error:
            hand_over(error, self.window)

    def Get_accumulate(self, origin, result, target_rank: int, target=None, Op op=None) -> None:
        """As `Accumulate`; `result` receives what was there before (MPI-4.1, 12.3.4).  `op` may be NO_OP too."""
        try:
            begin(self, GET_ACCUMULATE,
                  with_result(with_operation(self.access(origin, False, target_rank, target), op), result))
        except MPIError as error:
            hand_over(error, self.window)

    def Fetch_and_op(self, origin, result, target_rank: int, target_disp: int = 0, Op op=None) -> None:
        """`Get_accumulate` of one element (MPI-4.1, 12.3.4).

        Raises:
            ValueError: `origin` or `result` isn't one element, or they differ in datatype.
        """
        try:
            begin(self, GET_ACCUMULATE,
                  with_operation(self.fetching(origin, result, None, target_rank, target_disp), op))
        except MPIError as error:
            hand_over(error, self.window)

    def Compare_and_swap(self, origin, compare, result, target_rank: int, target_disp: int = 0) -> None:
        """Replace an element of the target by `origin` if it equals `compare`; `result` receives what was there.

        MPI-4.1, 12.3.4.

        Raises:
            ValueError: one of the three isn't one element, or they differ in datatype.
        """
        try:
            begin(self, COMPARE_AND_SWAP, self.fetching(origin, result, compare, target_rank, target_disp))
        except MPIError as error:
            hand_over(error, self.window)

    def Rput(self, origin, target_rank: int, target=None) -> Request:
        """As `Put`; once the request is complete `origin` may change (MPI-4.1, 12.3.5)."""
        try:
            return request_of(self, PUT, self.access(origin, False, target_rank, target))
        except MPIError as error:
            hand_over(error, self.window)

    def Rget(self, origin, target_rank: int, target=None) -> Request:
        """As `Get`; once the request is complete the data is there (MPI-4.1, 12.3.5)."""
        try:
            return request_of(self, GET, self.access(origin, True, target_rank, target))
        except MPIError as error:
            hand_over(error, self.window)

    def Raccumulate(self, origin, target_rank: int, target=None, Op op=None) -> Request:
        """As `Accumulate`; once the request is complete `origin` may change (MPI-4.1, 12.3.5)."""
        try:
            return request_of(self, ACCUMULATE, with_reduction(self.access(origin, False, target_rank, target), op))
        except MPIError as error:
            hand_over(error, self.window)

    def Rget_accumulate(self, origin, result, target_rank: int, target=None, Op op=None) -> Request:
        """As `Get_accumulate`; once the request is complete the result is there (MPI-4.1, 12.3.5)."""
        try:
            return request_of(self, GET_ACCUMULATE,
                              with_result(with_operation(self.access(origin, False, target_rank, target), op), result))
        except MPIError as error:
            hand_over(error, self.window)

    # -- active target

    def Fence(self, assertion: int = 0) -> None:
        """All accesses are complete, on every rank, and new ones may begin (MPI-4.1, 12.5.1).  Collective.

        Parameters:
            assertion: MODE_NOSTORE, MODE_NOPUT, MODE_NOPRECEDE, MODE_NOSUCCEED or'ed together.
        """
        cdef int asserted
        try:
            asserted = checked_assertion(assertion)
            (<OscModule> self.live().module).fence(asserted)
        except MPIError as error:
            hand_over(error, self.window)

    def Start(self, Group group not None, assertion: int = 0) -> None:
        """Begin accesses to the processes of a group, which call `Post` (MPI-4.1, 12.5.2).  Waits for them.

        Parameters:
            assertion: MODE_NOCHECK: they have called it already, and said the same.
        """
        cdef int asserted
        cdef list ranks
        try:
            asserted = checked_assertion(assertion)
            self.live()
            ranks = self.ranks_of(group)
            (<OscModule> self.window.module).start(ranks, asserted)
        except MPIError as error:
            hand_over(error, self.window)

    def Complete(self) -> None:
        """End the accesses that `Start` began (MPI-4.1, 12.5.2)."""
        try:
            (<OscModule> self.live().module).complete()
        except MPIError as error:
            hand_over(error, self.window)

    def Post(self, Group group not None, assertion: int = 0) -> None:
        """Open this process's memory to the processes of a group (MPI-4.1, 12.5.2).

        Parameters:
            assertion: MODE_NOCHECK, MODE_NOSTORE, MODE_NOPUT or'ed together.
        """
        cdef int asserted
        cdef list ranks
        try:
            asserted = checked_assertion(assertion)
            self.live()
            ranks = self.ranks_of(group)
            (<OscModule> self.window.module).post(ranks, asserted)
        except MPIError as error:
            hand_over(error, self.window)

    def Wait(self) -> bool:
        """Wait until all processes of `Post` have called `Complete`; True (MPI-4.1, 12.5.2)."""
        try:
            (<OscModule> self.live().module).wait()
        except MPIError as error:
            hand_over(error, self.window)
        return True

    def Test(self) -> bool:
        """Whether they all have; True ends the epoch, as `Wait` does (MPI-4.1, 12.5.2)."""
        try:
            return (<OscModule> self.live().module).test()
        except MPIError as error:
            hand_over(error, self.window)

    # -- passive target

    def Lock(self, rank: int, lock_type: int = EXCLUSIVE, assertion: int = 0) -> None:
        """Begin accesses to one process, which takes no part; wait for the lock (MPI-4.1, 12.5.3).

        Parameters:
            lock_type: LOCK_EXCLUSIVE or LOCK_SHARED.
            assertion: MODE_NOCHECK: nobody holds or asks for a lock that would conflict.
        """
        cdef int target, kind, asserted
        try:
            target, kind, asserted = rank, lock_type, checked_assertion(assertion)
            self.live()
            if self.checked_rank(target) != PROC_NULL:
                (<OscModule> self.window.module).lock(target, kind, asserted)
        except MPIError as error:
            hand_over(error, self.window)

    def Unlock(self, rank: int) -> None:
        """End the accesses; they are complete here and at the target (MPI-4.1, 12.5.3)."""
        cdef int target
        try:
            target = rank
            self.live()
            if self.checked_rank(target) != PROC_NULL:
                (<OscModule> self.window.module).unlock(target)
        except MPIError as error:
            hand_over(error, self.window)

    def Lock_all(self, assertion: int = 0) -> None:
        """A shared lock of every process of the window (MPI-4.1, 12.5.3).  Not collective."""
        cdef int asserted
        try:
            asserted = checked_assertion(assertion)
            (<OscModule> self.live().module).lock_all(asserted)
        except MPIError as error:
            hand_over(error, self.window)

    def Unlock_all(self) -> None:
        """End what `Lock_all` began (MPI-4.1, 12.5.3)."""
        try:
            (<OscModule> self.live().module).unlock_all()
        except MPIError as error:
            hand_over(error, self.window)

    def Flush(self, rank: int) -> None:
        """Complete the accesses to a process here and there, within the epoch (MPI-4.1, 12.5.4)."""
        flush(self, False, rank, False)

    def Flush_all(self) -> None:
        """Complete the accesses to every process here and there (MPI-4.1, 12.5.4)."""
        flush(self, True, 0, False)

    def Flush_local(self, rank: int) -> None:
        """Complete the accesses to a process on this side: buffers may be used again (MPI-4.1, 12.5.4)."""
        flush(self, False, rank, True)

    def Flush_local_all(self) -> None:
        """Complete all accesses on this side (MPI-4.1, 12.5.4)."""
        flush(self, True, 0, True)

    def Sync(self) -> None:
        """Order this process's loads and stores with the accesses of others (MPI-4.1, 12.5.4)."""
        try:
            (<OscModule> self.live().module).sync()
        except MPIError as error:
            hand_over(error, self.window)


# All that there are.
cdef int ASSERTIONS = ASSERT_NOCHECK | ASSERT_NOPRECEDE | ASSERT_NOPUT | ASSERT_NOSTORE | ASSERT_NOSUCCEED


cdef inline int checked_assertion(object assertion) except -1:
    return 0 if assertion is NOTHING_ASSERTED else checked_assertions(assertion)


cdef int checked_assertions(object assertion) except -1:
    if not 0 <= assertion <= ASSERTIONS:
        raise MPIError(ERR_ASSERT, f"assertion: MODE_NOCHECK, MODE_NOSTORE, ... or'ed together expected, got {assertion}")
    return assertion


cdef enum Kind:
    PUT, GET, ACCUMULATE, GET_ACCUMULATE, COMPARE_AND_SWAP


cdef CoreRequest begin(OneSided handle, Kind kind, Access access):
    cdef OscModule module
    if access is None:
        return None
    # Asked again: what the arguments were read by is the program's, and may have freed the window.
    module = <OscModule> handle.live().module
    if kind == PUT:
        return module.put(access)
    if kind == GET:
        return module.get(access)
    if kind == ACCUMULATE:
        return module.accumulate(access)
    if kind == COMPARE_AND_SWAP or access.operation is not NO_OP:
        require_disjoint(access)
    if kind == GET_ACCUMULATE:
        return module.get_accumulate(access)
    return module.compare_and_swap(access)


cdef Request request_of(OneSided handle, Kind kind, Access access):
    cdef CoreRequest request
    if access is not None:
        access.requested = True
    request = begin(handle, kind, access)
    return new_request(CompletedRequest() if request is None else request, None)


cdef int flush(OneSided handle, bint everywhere, int rank, bint local) except -1:
    try:
        handle.live()
        if everywhere or handle.checked_rank(rank) != PROC_NULL:
            (<OscModule> handle.window.module).flush(-1 if everywhere else rank, local)
    except MPIError as error:
        hand_over(error, handle.window)
    return 0


cdef Access with_operation(Access access, Op op):
    if op is None:
        op = SUM
    if op.operation is None:
        raise MPIError(ERR_OP, "op: an operation expected, not OP_NULL")
    if access is not None:
        access.operation = op.operation
    return access


cdef Access with_reduction(Access access, Op op):
    if op is not None and op.operation is NO_OP:
        raise MPIError(ERR_OP, "op: NO_OP is for what fetches (Get_accumulate, Fetch_and_op): else it does nothing")
    return with_operation(access, op)


cdef Access with_result(Access access, object result):
    if access is not None:
        add_result(access, result)
    return access


cdef int add_result(Access access, object result) except -1:
    cdef Spec spec
    parse_recv(result, &spec)
    access.result_address, access.result_count, access.result_type = spec.address, spec.count, <Typemap> spec.typemap
    access.result_owner = keep(&spec)
    return 0


cdef int add_compare(Access access, object compare) except -1:
    cdef Spec spec
    parse_send(compare, &spec)
    access.compare_address = spec.address
    typemap, count = <Typemap> spec.typemap, spec.count
    access.compare_owner = keep(&spec)
    return require_one("compare", count, typemap, access.origin_type)


cdef int require_one(str name, Py_ssize_t count, Typemap typemap, Typemap expected) except -1:
    if count != 1:
        raise ValueError(f"{name}: one element expected, not {count}")
    if typemap is not expected:
        raise ValueError(f"{name}: its datatype is not that of origin")
    return 0


cdef int require_comparable(Typemap typemap) except -1:
    """The types of `Compare_and_swap` (MPI-4.1, 12.3.4): a float's bytes are not its value, and may have gaps."""
    if typemap.basic < 0 or typemap.size != basics[typemap.basic].size or basics[typemap.basic].group not in (
            GROUP_C_INTEGER, GROUP_FORTRAN_INTEGER, GROUP_LOGICAL, GROUP_MULTI_LANGUAGE, GROUP_BYTE):
        raise MPIError(ERR_TYPE, "origin: Compare_and_swap takes an integer, a logical, AINT, OFFSET, COUNT or BYTE, "
                                 f"not {datatype_of(typemap).name or 'a derived datatype'}")
    return 0


cdef int require_disjoint(Access access) except -1:
    """What is fetched would be combined in place of the origin's data, or the reverse (MPI-4.1, 12.3.4)."""
    if share_memory(access.origin_address, access.origin_count, access.origin_type,
                    access.result_address, access.result_count, access.result_type):
        raise MPIError(ERR_BUFFER, "result: it overlaps origin: what is fetched needs memory of its own")
    return 0


cdef Typemap typemap_of(object kind):
    cdef Datatype datatype = kind if isinstance(kind, Datatype) else datatype_of_code(kind)
    if datatype.typemap is None:
        raise MPIError(ERR_TYPE, "target: a datatype expected, not DATATYPE_NULL")
    return datatype.typemap
