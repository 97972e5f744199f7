# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Requests: handles on operations under way (MPI-4.1, 3.7, 3.9, 4.2 and 13.2)."""

from ompy.core.board cimport BARRIER, NEIGHBOR_ALLTOALLW
from ompy.core.communicator cimport Hold
from ompy.core.constants cimport UNDEFINED
from ompy.core.request cimport Request as CoreRequest
from ompy.core.signals cimport check_signals
from ompy.mca.pml cimport closed
from ompy.mpi.completion cimport (
    Loader, RequestHandle, become_null, is_active, is_complete, let_go, look, require, require_open, settle, settle_object,
    wait_for,
)
from ompy.mpi.generalized cimport GeneralizedRequest
from ompy.mpi.handle cimport predefine
from ompy.mpi.multiple_completion cimport NONE_COMPLETE, Selection
from ompy.mpi.partitioned cimport PartitionedRequest
from ompy.mpi.status cimport Status, record_of

from ompy.core.errors import ERR_REQUEST, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over


cdef class Request(RequestHandle):
    """
    An operation that may outlast its call (MPI-4.1, 3.7).

    It is null (false) once a wait or test has seen it complete, unless it is persistent.  Awaiting it in a coroutine gives
    what `wait` returns, and lets other tasks run until then.
    """

    def __cinit__(self, Request request=None):
        if request is not None:
            self.request = request.request
            self.kept = request.kept
            self.loader = request.loader

    cdef type family(self):
        return Request

    # -- one request

    def Wait(self, Status status=None) -> bool:
        """Wait until the operation is complete (MPI-4.1, 3.7.3).  Always True.

        Raises:
            Exception: what went wrong in the operation.
        """
        wait_for(self)
        settle(self, record_of(status))
        return True

    def Test(self, Status status=None) -> bool:
        """Whether the operation is complete; then the request is as after a wait (MPI-4.1, 3.7.3)."""
        if not is_complete(self):
            return False
        settle(self, record_of(status))
        return True

    def Get_status(self, Status status=None) -> bool:
        """Whether the operation is complete; the request stays as it is (MPI-4.1, 3.7.6)."""
        return look(self, record_of(status))

    def wait(self, Status status=None) -> object:
        """Wait until the operation is complete.  Returns the received object, None for other operations (MPI-4.1, 3.7.3)."""
        wait_for(self)
        check_signals()                          # the object of a call that a handler's exception ends would be lost
        return settle_object(self, record_of(status))

    def test(self, Status status=None) -> tuple[bool, object]:
        """Whether the operation is complete, and the received object (MPI-4.1, 3.7.3)."""
        if not is_complete(self):
            return False, None
        check_signals()
        return True, settle_object(self, record_of(status))

    def get_status(self, Status status=None) -> bool:
        """Whether the operation is complete; the request stays as it is (MPI-4.1, 3.7.6)."""
        return look(self, record_of(status))

    def __await__(self):
        while not is_complete(self):
            yield
        return settle_object(self, NULL)

    # -- several requests

    @classmethod
    def Waitany(cls, requests: Sequence[Request], Status status=None) -> int:
        """Wait until one operation is complete; its index, UNDEFINED when none is active (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef Py_ssize_t index = selection.wait_any()
        selection.settle_any(index, record_of(status))
        return index

    @classmethod
    def Testany(cls, requests: Sequence[Request], Status status=None) -> tuple[int, bool]:
        """Index of a complete operation (else UNDEFINED), and whether one is complete or none is active (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef Py_ssize_t index = selection.test_any()
        if index == NONE_COMPLETE:
            return UNDEFINED, False
        selection.settle_any(index, record_of(status))
        return index, True

    @classmethod
    def Get_status_any(cls, requests: Sequence[Request], Status status=None) -> tuple[int, bool]:
        """As `Testany`, but the requests stay as they are (MPI-4.1, 3.7.6)."""
        cdef Selection selection = Selection(requests)
        cdef Py_ssize_t index = selection.test_any()
        if index == NONE_COMPLETE:
            return UNDEFINED, False
        selection.look_any(index, record_of(status))
        return index, True

    @classmethod
    def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Wait until all operations are complete (MPI-4.1, 3.7.5).  Always True; a list of statuses grows as needed.

        Raises:
            Exception: ERR_IN_STATUS when an operation failed; the statuses hold the error classes.
        """
        cdef Selection selection = Selection(requests)
        selection.wait_all()
        if statuses is None:
            selection.settle_quietly()
        else:
            selection.settle_all(statuses, False)
        return True

    @classmethod
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Whether all operations are complete; then as `Waitall` (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        if not selection.test_all():
            return False
        selection.settle_all(statuses, False)
        return True

    @classmethod
    def Get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """As `Testall`, but the requests stay as they are (MPI-4.1, 3.7.6)."""
        cdef Selection selection = Selection(requests)
        if not selection.test_all():
            return False
        selection.look_at(range(len(selection.requests)), statuses)
        return True

    @classmethod
    def Waitsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Wait until an operation is complete; indices of all that are, None when none is active (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef list indices = selection.complete_ones(True)
        if indices is not None:
            selection.settle_some(indices, statuses, False)
        return indices

    @classmethod
    def Testsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Indices of the complete operations, None when none is active (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef list indices = selection.complete_ones(False)
        if indices is not None:
            selection.settle_some(indices, statuses, False)
        return indices

    @classmethod
    def Get_status_some(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """As `Testsome`, but the requests stay as they are (MPI-4.1, 3.7.6)."""
        cdef Selection selection = Selection(requests)
        cdef list indices = selection.complete_ones(False)
        if indices is not None:
            selection.look_at(indices, statuses)
        return indices

    @classmethod
    def waitany(cls, requests: Sequence[Request], Status status=None) -> tuple[int, object]:
        """Index of a complete operation, and its received object (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef Py_ssize_t index = selection.wait_any()
        return index, selection.settle_any(index, record_of(status))

    @classmethod
    def testany(cls, requests: Sequence[Request], Status status=None) -> tuple[int, bool, object]:
        """As `Testany`, with the received object (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef Py_ssize_t index = selection.test_any()
        if index == NONE_COMPLETE:
            return UNDEFINED, False, None
        return index, True, selection.settle_any(index, record_of(status))

    @classmethod
    def get_status_any(cls, requests: Sequence[Request], Status status=None) -> tuple[int, bool]:
        """As `Get_status_any` (MPI-4.1, 3.7.6)."""
        return Request.Get_status_any(requests, status)

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[object]:
        """Wait until all operations are complete; the received objects (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        selection.wait_all()
        return selection.settle_all(statuses, True)

    @classmethod
    def testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> tuple[bool, list[object] | None]:
        """Whether all operations are complete, and the received objects (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        if not selection.test_all():
            return False, None
        return True, selection.settle_all(statuses, True)

    @classmethod
    def get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """As `Get_status_all` (MPI-4.1, 3.7.6)."""
        return Request.Get_status_all(requests, statuses)

    @classmethod
    def waitsome(cls, requests: Sequence[Request],
                 statuses: list[Status] | None = None) -> tuple[list[int] | None, list[object] | None]:
        """As `Waitsome`, with the received objects (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef list indices = selection.complete_ones(True)
        if indices is None:
            return None, None
        return indices, selection.settle_some(indices, statuses, True)

    @classmethod
    def testsome(cls, requests: Sequence[Request],
                 statuses: list[Status] | None = None) -> tuple[list[int] | None, list[object] | None]:
        """As `Testsome`, with the received objects (MPI-4.1, 3.7.5)."""
        cdef Selection selection = Selection(requests)
        cdef list indices = selection.complete_ones(False)
        if indices is None:
            return None, None
        return indices, selection.settle_some(indices, statuses, True)

    @classmethod
    def get_status_some(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """As `Get_status_some` (MPI-4.1, 3.7.6)."""
        return Request.Get_status_some(requests, statuses)

    # -- other ways to end

    def Cancel(self) -> None:
        """Ask for cancellation; the request must still be waited for, and its status says what came of it (MPI-4.1, 3.8.4).

        A receive that has no message yet is cancelled.  A send is not, as in Open MPI: its wait ends when it is sent.

        Raises:
            Exception: ERR_REQUEST for a null request, or that of a collective (MPI-4.1, 6.12).
        """
        cdef CoreRequest core = require_open(self)
        if is_collective(core):
            raise MPIException(ERR_REQUEST, "a collective can't be cancelled")
        core.cancel()

    def cancel(self) -> None:
        """As `Cancel` (MPI-4.1, 3.8.4)."""
        self.Cancel()

    def Free(self) -> None:
        """Let go of the request; an operation under way completes all the same (MPI-4.1, 3.7.3).

        Raises:
            Exception: ERR_REQUEST for a null request, or that of a collective which was begun and not waited for (MPI-4.1,
                6.12).
        """
        cdef CoreRequest core = require(self)
        if is_collective(core) and is_active(self):
            raise MPIException(ERR_REQUEST, "a collective under way can't be freed: wait for it")
        become_null(self)
        if closed is None:
            let_go(core)


cdef class Prequest(Request):
    """A persistent request: an operation that can be started again and again (MPI-4.1, 3.9, 4.2 and 6.13)."""

    def __cinit__(self, Request request=None):
        if request is not None and request.request is not None and not isinstance(request, Prequest):
            raise TypeError(f"request: a Prequest expected, not {type(request).__name__}")

    def Start(self) -> None:
        """Begin the operation (MPI-4.1, 3.9).

        Raises:
            Exception: ERR_REQUEST for a null request, or one that is active already.
        """
        start(self)

    @classmethod
    def Startall(cls, requests: list[Prequest]) -> None:
        """Begin all the operations, in any order (MPI-4.1, 3.9)."""
        cdef Prequest request
        for request in requests:
            if request is None:
                raise TypeError("requests: a Prequest expected, not None")
            start(request)

    def Pready(self, partition: int) -> None:
        """A partition of a partitioned send may be sent (MPI-4.1, 4.2.1)."""
        mark_ready(self, partition, partition)

    def Pready_range(self, partition_low: int, partition_high: int) -> None:
        """The partitions from `partition_low` to `partition_high`, both included, may be sent (MPI-4.1, 4.2.1)."""
        mark_ready(self, partition_low, partition_high)

    def Pready_list(self, partitions: Sequence[int]) -> None:
        """The partitions may be sent (MPI-4.1, 4.2.1)."""
        for partition in partitions:
            mark_ready(self, partition, partition)

    def Parrived(self, partition: int) -> bool:
        """Whether a partition of a partitioned receive has arrived, as for REQUEST_NULL all have (MPI-4.1, 4.2.2)."""
        cdef PartitionedRequest core
        if self.request is None:
            return True
        core = partitioned(self)
        try:
            return core.arrived(partition)
        except MPIError as error:
            hand_over(error, core.communicator)


cdef class Grequest(Request):
    """A generalised request: the program says when it is complete (MPI-4.1, 13.2)."""

    def __cinit__(self, Request request=None):
        if request is not None and request.request is not None and not isinstance(request, Grequest):
            raise TypeError(f"request: a Grequest expected, not {type(request).__name__}")

    @classmethod
    def Start(cls, query_fn=None, free_fn=None, cancel_fn=None, args=None, kwargs=None) -> Grequest:
        """A new request that is under way (MPI-4.1, 13.2).

        Parameters:
            query_fn: called with a status to fill in when the request is complete.
            free_fn: called when the request is let go of.
            cancel_fn: called with whether the request is complete already, to cancel it.
            args, kwargs: further arguments of all three.
        """
        cdef Grequest request = Grequest.__new__(Grequest)
        request.request = GeneralizedRequest(query_fn, free_fn, cancel_fn, args, kwargs)
        return request

    def Complete(self) -> None:
        """The operation is complete (MPI-4.1, 13.2).

        Raises:
            Exception: ERR_REQUEST when it was complete already, or the request is null.
        """
        cdef CoreRequest core = require(self)
        if core.complete:
            raise MPIException(ERR_REQUEST, "the generalised request is complete already")
        (<GeneralizedRequest> core).complete_now()

    def complete(self, obj: object = None) -> None:
        """The operation is complete, and `obj` is what the lower-case waits return (MPI-4.1, 13.2)."""
        self.kept = obj
        self.loader = return_kept
        self.Complete()


cdef object return_kept(CoreRequest core, object kept):
    return kept


cdef Request new_request(CoreRequest core, object kept):
    cdef Request request = Request.__new__(Request)
    if kept is not None and not core.complete:
        core.buffer = kept
    request.request = core
    return request


cdef Prequest new_prequest(CoreRequest core, object kept):
    cdef Prequest request = Prequest.__new__(Prequest)
    if kept is not None:
        core.buffer = kept
    if core.communicator is not None:
        request.kept = Hold(core.communicator)
    request.request = core
    return request


cdef Request new_object_request(CoreRequest core, object kept, Loader loader):
    cdef Request request = Request.__new__(Request)
    request.request = core
    request.kept = kept
    request.loader = loader
    return request


cdef bint is_collective(CoreRequest core) noexcept:
    return BARRIER <= core.operation <= NEIGHBOR_ALLTOALLW


cdef int start(Prequest handle) except -1:
    cdef CoreRequest core = require_open(handle)
    if core.active:
        raise MPIException(ERR_REQUEST, "the persistent request is active already: wait for it before it is started again")
    try:
        core.start()
    except MPIError as error:
        hand_over(error, core.communicator)
    return 0


cdef PartitionedRequest partitioned(Prequest handle):
    cdef CoreRequest core = require_open(handle)
    if not isinstance(core, PartitionedRequest):
        raise MPIException(ERR_REQUEST, "a partitioned request (Psend_init, Precv_init) expected")
    return <PartitionedRequest> core


cdef int mark_ready(Prequest handle, int low, int high) except -1:
    cdef PartitionedRequest core = partitioned(handle)
    try:
        core.ready(low, high)
    except MPIError as error:
        hand_over(error, core.communicator)
    return 0


REQUEST_NULL = predefine(Request(), "REQUEST_NULL")
