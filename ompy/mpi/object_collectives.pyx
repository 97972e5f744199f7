# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=-Os
# cython: embedsignature=True, binding=False, auto_pickle=False
"""Collective communication of Python objects: the lower-case methods of a communicator."""

from ompy.core cimport board
from ompy.core.communicator cimport Communicator
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mca.coll cimport ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BCAST, GATHER, REDUCE, SCATTER
from ompy.mpi.collective_check cimport check_level, compare_objects
from ompy.mpi.collectives cimport Collectives
from ompy.mpi.object_reductions cimport allreduce_objects, reduce_objects
from ompy.mpi.object_transfers cimport broadcast, exchange, gathered, gathered_everywhere, items_of, scattered
from ompy.mpi.point_to_point cimport lock_of

from ompy.core.errors import MPIError
from ompy.mpi.op import SUM
from ompy.mpi.raising import hand_over


cdef class ObjectCollectives(Collectives):
    """Collective communication of picklable Python objects.

    Every rank of the communicator calls the same methods in the same order.  What a rank receives is its own copy.  Each takes
    several steps, for which the others count on this rank: what a signal handler raises meanwhile is raised at the end.
    """

    cdef int compare(self, int function, object op, int root) except -1:
        if check_level > 1:
            compare_objects(function, op, root, self.live())
        return 0

    def barrier(self) -> None:
        """Wait until every rank is here (MPI-4.1, 6.3)."""
        self.carry_out(BARRIER, None, None, None, None, 0)

    def bcast(self, obj, int root=0):
        """The root's object, on every rank (MPI-4.1, 6.4).

        Parameters:
            obj: on the root, what to send; else not looked at.
            root: its rank; between groups MPI.ROOT, MPI.PROC_NULL, or its rank in the remote group.

        Returns:
            a copy of the root's object; between groups, None in the group of the root.
        """
        keep_a_while()
        try:
            self.compare(BCAST, None, root)
            # Two messages for one object: those of two threads must not mix.
            with lock_of(self.live(), "bcast"):
                return broadcast(obj, root, self.comm)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def gather(self, sendobj, int root=0):
        """The objects of all ranks, on the root (MPI-4.1, 6.5).

        Returns:
            on the root a list in rank order, else None.
        """
        keep_a_while()
        try:
            self.compare(GATHER, None, root)
            return gathered(sendobj, root, self.live())
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def scatter(self, sendobj, int root=0):
        """One of the root's objects to each rank (MPI-4.1, 6.6).

        Parameters:
            sendobj: on the root, as many objects as ranks; else not looked at.

        Returns:
            this rank's object; between groups, None in the group of the root.
        """
        keep_a_while()
        try:
            self.compare(SCATTER, None, root)
            return scattered(sendobj, root, self.live())
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def allgather(self, sendobj) -> list:
        """The objects of all ranks (between groups: of the remote group), in rank order (MPI-4.1, 6.7)."""
        keep_a_while()
        try:
            self.compare(ALLGATHER, None, 0)
            # Two collectives for one object.
            with lock_of(self.live(), "allgather"):
                return gathered_everywhere(sendobj, self.comm)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def alltoall(self, sendobj) -> list:
        """Object i to rank i (MPI-4.1, 6.8).

        Parameters:
            sendobj: as many objects as ranks.

        Returns:
            the objects for this rank, in rank order of those who sent them.
        """
        cdef Communicator comm
        keep_a_while()
        try:
            self.compare(ALLTOALL, None, 0)
            comm = self.live()
            ranks = list(range(comm.remote_size))
            return exchange(items_of(sendobj, comm.remote_size, comm), ranks, ranks, False, comm, board.ALLTOALL)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def reduce(self, sendobj, op=SUM, int root=0):
        """Combine the objects of all ranks with `op` (MPI-4.1, 6.9.1).

        The objects are combined in rank order and grouped in the same way in every run.

        Parameters:
            op: an Op or a function of two objects; associative.

        Returns:
            on the root the result, else None.
        """
        keep_a_while()
        try:
            self.compare(REDUCE, op, root)
            return reduce_objects(sendobj, op, root, self.live())
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def allreduce(self, sendobj, op=SUM):
        """Combine the objects of all ranks (between groups: of the remote group), on every rank (MPI-4.1, 6.9.6).

        The objects are combined in rank order, grouped in the same way in every run, once for all ranks.
        """
        keep_a_while()
        try:
            self.compare(ALLREDUCE, op, 0)
            return allreduce_objects(sendobj, op, self.live())
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()
