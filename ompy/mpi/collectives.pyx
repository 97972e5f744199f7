# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
# cython: embedsignature=True, binding=False, auto_pickle=False
"""Collective communication of buffers (MPI-4.1, chapter 6): blocking, non-blocking and persistent."""

from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport failures_kept, forget_failures, raise_failure
from ompy.core.request cimport Request as CoreRequest
from ompy.mca.coll cimport (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, ALLTOALLW, BARRIER, BCAST, GATHER, GATHERV, REDUCE,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCATTER, SCATTERV, CollectiveCall, CollModule, CollTable,
)
from ompy.mca.pml cimport closed
from ompy.mpi.collective_calls cimport make_call
from ompy.mpi.collective_check cimport BLOCKING, NONBLOCKING, PERSISTENT, check_level, compare_ranks
from ompy.mpi.envelope cimport no_communicator
from ompy.mpi.info cimport Info
from ompy.mpi.point_to_point cimport PointToPoint
from ompy.mpi.request cimport Prequest, Request, new_prequest, new_request

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mpi.op import SUM
from ompy.mpi.raising import hand_over


cdef class Collectives(PointToPoint):
    """Collective communication over a communicator.

    Every rank of the communicator calls the same methods in the same order.  Buffer arguments are message specifications.
    Errors of all methods: ERR_COMM for COMM_NULL, ERR_ROOT for a root out of range, ERR_OP for an operation that isn't
    defined on the datatype, ERR_TRUNCATE when a buffer is too small for what arrives; TypeError and ValueError for an
    argument that is no message specification, or whose two sides contradict each other.
    """

    cdef Communicator live(self):
        """The core object, which must be there, and reach its members."""
        if self.comm is None or self.comm.freed:
            raise no_communicator(self.comm)
        if closed is not None:
            raise MPIError(ERR_OTHER, closed)
        return self.comm

    cdef int carry_out(self, int function, object send, object recv, object op, object counts, int root) except -1:
        cdef Communicator comm
        cdef CollectiveCall call
        try:
            comm = self.live()
            call = make_call(function, comm, send, recv, op, counts, root)
            if check_level > 1:
                compare_ranks(function, BLOCKING, call, comm)
            (<CollTable> comm.coll).of(function).run(function, call, comm)
            if failures_kept:
                raise_failure()
        except MPIError as error:
            forget_failures()
            hand_over(error, self.comm)
        except BaseException:
            forget_failures()
            raise
        return 0

    cdef Request begin(self, int function, object send, object recv, object op, object counts, int root):
        cdef Communicator comm
        cdef CollectiveCall call
        cdef CoreRequest request
        try:
            comm = self.live()
            call = make_call(function, comm, send, recv, op, counts, root)
            if check_level > 1:
                compare_ranks(function, NONBLOCKING, call, comm)
            request = (<CollModule> (<CollTable> comm.coll).nonblocking[function]).start(function, call, comm)
        except MPIError as error:
            hand_over(error, self.comm)
        return new_request(request, call)

    cdef Prequest prepare(self, int function, object send, object recv, object op, object counts, int root):
        cdef Communicator comm
        cdef CollectiveCall call
        cdef CoreRequest request
        try:
            comm = self.live()
            call = make_call(function, comm, send, recv, op, counts, root)
            if check_level > 1:
                compare_ranks(function, PERSISTENT, call, comm)
            request = (<CollModule> (<CollTable> comm.coll).persistent[function]).init(function, call, comm)
        except MPIError as error:
            hand_over(error, self.comm)
        return new_prequest(request, call)

    def Barrier(self) -> None:
        """Wait until every rank is here (MPI-4.1, 6.3)."""
        self.carry_out(BARRIER, None, None, None, None, 0)

    def Bcast(self, buf, int root=0) -> None:
        """The root's buffer to every rank (MPI-4.1, 6.4).

        Parameters:
            buf: message, of the same number of bytes on every rank; written except on the root.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(BCAST, buf, None, None, None, root)

    def Gather(self, sendbuf, recvbuf, int root=0) -> None:
        """Every rank's block to the root, in rank order (MPI-4.1, 6.5).

        Parameters:
            sendbuf: message, one block; IN_PLACE on the root when its block is in `recvbuf` already.
            recvbuf: on the root, room for as many blocks as ranks; else not looked at.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(GATHER, sendbuf, recvbuf, None, None, root)

    def Gatherv(self, sendbuf, recvbuf, int root=0) -> None:
        """Blocks of different lengths to the root (MPI-4.1, 6.5).

        Parameters:
            sendbuf: message, one block; IN_PLACE on the root.
            recvbuf: on the root `[buf, counts, displs, type]`, one count a rank, in elements; else not looked at.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(GATHERV, sendbuf, recvbuf, None, None, root)

    def Scatter(self, sendbuf, recvbuf, int root=0) -> None:
        """One block of the root's buffer to each rank (MPI-4.1, 6.6).

        Parameters:
            sendbuf: on the root, as many blocks as ranks; else not looked at.
            recvbuf: room for one block; IN_PLACE on the root to leave its block where it is.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(SCATTER, sendbuf, recvbuf, None, None, root)

    def Scatterv(self, sendbuf, recvbuf, int root=0) -> None:
        """Blocks of different lengths from the root (MPI-4.1, 6.6).

        Parameters:
            sendbuf: on the root `[buf, counts, displs, type]`, one count a rank, in elements; else not looked at.
            recvbuf: room for one block; IN_PLACE on the root.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(SCATTERV, sendbuf, recvbuf, None, None, root)

    def Allgather(self, sendbuf, recvbuf) -> None:
        """Every rank's block to every rank, in rank order (MPI-4.1, 6.7).

        Parameters:
            sendbuf: message, one block; IN_PLACE when it is in `recvbuf` already.
            recvbuf: room for as many blocks as ranks.
        """
        self.carry_out(ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Allgatherv(self, sendbuf, recvbuf) -> None:
        """Blocks of different lengths to every rank (MPI-4.1, 6.7).

        Parameters:
            sendbuf: message, one block; IN_PLACE when it is in `recvbuf` already.
            recvbuf: `[buf, counts, displs, type]`, one count a rank, in elements.
        """
        self.carry_out(ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Alltoall(self, sendbuf, recvbuf) -> None:
        """Block i to rank i, from every rank to every rank (MPI-4.1, 6.8).

        Parameters:
            sendbuf: as many blocks as ranks; IN_PLACE to send what is in `recvbuf`.
            recvbuf: room for as many blocks as ranks.
        """
        self.carry_out(ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Alltoallv(self, sendbuf, recvbuf) -> None:
        """Blocks of different lengths, from every rank to every rank (MPI-4.1, 6.8).

        Parameters:
            sendbuf: `[buf, counts, displs, type]`, one count a rank, in elements; IN_PLACE to send what is in `recvbuf`.
            recvbuf: the same.
        """
        self.carry_out(ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Alltoallw(self, sendbuf, recvbuf) -> None:
        """Blocks of different lengths and types, from every rank to every rank (MPI-4.1, 6.8).

        Parameters:
            sendbuf: `[buf, counts, displs, types]`, one of each a rank, displacements in bytes; IN_PLACE to send what is
                in `recvbuf`.
            recvbuf: the same.
        """
        self.carry_out(ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def Reduce(self, sendbuf, recvbuf, op=SUM, int root=0) -> None:
        """Combine every rank's elements on the root (MPI-4.1, 6.9.1).

        Parameters:
            sendbuf: message; IN_PLACE on the root when its elements are in `recvbuf`.
            recvbuf: on the root, room for as many elements; else not looked at.
            op: an Op.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.
        """
        self.carry_out(REDUCE, sendbuf, recvbuf, op, None, root)

    def Allreduce(self, sendbuf, recvbuf, op=SUM) -> None:
        """Combine every rank's elements on every rank (MPI-4.1, 6.9.6).

        Parameters:
            sendbuf: message; IN_PLACE when the elements are in `recvbuf`.
            recvbuf: room for as many elements.
            op: an Op.
        """
        self.carry_out(ALLREDUCE, sendbuf, recvbuf, op, None, 0)

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=SUM) -> None:
        """Combine, and give block i of the result to rank i (MPI-4.1, 6.10.1).

        Parameters:
            sendbuf: as many blocks as ranks; IN_PLACE when they are in `recvbuf`.
            recvbuf: room for one block, with IN_PLACE for all.
            op: an Op.
        """
        self.carry_out(REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, op, None, 0)

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=SUM) -> None:
        """Combine, and give parts of different lengths to the ranks (MPI-4.1, 6.10.2).

        Parameters:
            sendbuf: message, the parts of all ranks one after the other; IN_PLACE when they are in `recvbuf`.
            recvbuf: room for this rank's part, with IN_PLACE for all.
            recvcounts: elements for each rank; by default the ranks ask one another.
            op: an Op.
        """
        self.carry_out(REDUCE_SCATTER, sendbuf, recvbuf, op, recvcounts, 0)

    def Ibarrier(self) -> Request:
        """Begin `Barrier`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(BARRIER, None, None, None, None, 0)

    def Ibcast(self, buf, int root=0) -> Request:
        """Begin `Bcast`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(BCAST, buf, None, None, None, root)

    def Igather(self, sendbuf, recvbuf, int root=0) -> Request:
        """Begin `Gather`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(GATHER, sendbuf, recvbuf, None, None, root)

    def Igatherv(self, sendbuf, recvbuf, int root=0) -> Request:
        """Begin `Gatherv`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(GATHERV, sendbuf, recvbuf, None, None, root)

    def Iscatter(self, sendbuf, recvbuf, int root=0) -> Request:
        """Begin `Scatter`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(SCATTER, sendbuf, recvbuf, None, None, root)

    def Iscatterv(self, sendbuf, recvbuf, int root=0) -> Request:
        """Begin `Scatterv`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(SCATTERV, sendbuf, recvbuf, None, None, root)

    def Iallgather(self, sendbuf, recvbuf) -> Request:
        """Begin `Allgather`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Iallgatherv(self, sendbuf, recvbuf) -> Request:
        """Begin `Allgatherv`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Ialltoall(self, sendbuf, recvbuf) -> Request:
        """Begin `Alltoall`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Ialltoallv(self, sendbuf, recvbuf) -> Request:
        """Begin `Alltoallv`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Ialltoallw(self, sendbuf, recvbuf) -> Request:
        """Begin `Alltoallw`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def Ireduce(self, sendbuf, recvbuf, op=SUM, int root=0) -> Request:
        """Begin `Reduce`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(REDUCE, sendbuf, recvbuf, op, None, root)

    def Iallreduce(self, sendbuf, recvbuf, op=SUM) -> Request:
        """Begin `Allreduce`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(ALLREDUCE, sendbuf, recvbuf, op, None, 0)

    def Ireduce_scatter_block(self, sendbuf, recvbuf, op=SUM) -> Request:
        """Begin `Reduce_scatter_block`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, op, None, 0)

    def Ireduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=SUM) -> Request:
        """Begin `Reduce_scatter`; returns its request (MPI-4.1, 6.12)."""
        return self.begin(REDUCE_SCATTER, sendbuf, recvbuf, op, recvcounts, 0)

    def Barrier_init(self, Info info=None) -> Prequest:
        """Prepare `Barrier`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(BARRIER, None, None, None, None, 0)

    def Bcast_init(self, buf, int root=0, Info info=None) -> Prequest:
        """Prepare `Bcast`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(BCAST, buf, None, None, None, root)

    def Gather_init(self, sendbuf, recvbuf, int root=0, Info info=None) -> Prequest:
        """Prepare `Gather`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(GATHER, sendbuf, recvbuf, None, None, root)

    def Gatherv_init(self, sendbuf, recvbuf, int root=0, Info info=None) -> Prequest:
        """Prepare `Gatherv`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(GATHERV, sendbuf, recvbuf, None, None, root)

    def Scatter_init(self, sendbuf, recvbuf, int root=0, Info info=None) -> Prequest:
        """Prepare `Scatter`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(SCATTER, sendbuf, recvbuf, None, None, root)

    def Scatterv_init(self, sendbuf, recvbuf, int root=0, Info info=None) -> Prequest:
        """Prepare `Scatterv`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(SCATTERV, sendbuf, recvbuf, None, None, root)

    def Allgather_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Prepare `Allgather`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Allgatherv_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Prepare `Allgatherv`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Alltoall_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Prepare `Alltoall`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Alltoallv_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Prepare `Alltoallv`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Alltoallw_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Prepare `Alltoallw`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def Reduce_init(self, sendbuf, recvbuf, op=SUM, int root=0, Info info=None) -> Prequest:
        """Prepare `Reduce`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(REDUCE, sendbuf, recvbuf, op, None, root)

    def Allreduce_init(self, sendbuf, recvbuf, op=SUM, Info info=None) -> Prequest:
        """Prepare `Allreduce`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(ALLREDUCE, sendbuf, recvbuf, op, None, 0)

    def Reduce_scatter_block_init(self, sendbuf, recvbuf, op=SUM, Info info=None) -> Prequest:
        """Prepare `Reduce_scatter_block`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, op, None, 0)

    def Reduce_scatter_init(self, sendbuf, recvbuf, recvcounts=None, op=SUM, Info info=None) -> Prequest:
        """Prepare `Reduce_scatter`; returns its persistent request (MPI-4.1, 6.13)."""
        return self.prepare(REDUCE_SCATTER, sendbuf, recvbuf, op, recvcounts, 0)
