# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
# cython: embedsignature=True, binding=False, auto_pickle=False
"""Intra-communicators: one group (MPI-4.1, 7.2), and the topologies and inter-communicators made from it."""

from cpython.object cimport PyObject

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport TAG_UPPER_BOUND, UNDEFINED
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mca.agreement cimport agree
from ompy.mca.coll cimport EXSCAN, SCAN
from ompy.mpi.comm cimport Comm, classes, set_up
from ompy.mpi.errhandler cimport Errhandler
from ompy.mpi.group cimport Group, checked
from ompy.mpi.handle cimport predefine
from ompy.mpi.info cimport Info
from ompy.mpi.object_reductions cimport prefix
from ompy.mpi.request cimport Prequest, Request
from ompy.runtime.communicators cimport create_group, first_ranks

from ompy.core.errors import ERR_TAG, MPIError
from ompy.mpi import dynamic_processes
from ompy.mpi.attributes import delete_attrs
from ompy.mpi.op import SUM
from ompy.mpi.raising import hand_over
from ompy.mpi.topology import (
    CART, DIST_GRAPH, GRAPH, Cartesian, DistributedGraph, Graph, checked_graph, checked_grid, checked_ranks,
    checked_weights, product, repeated,
)
from ompy.runtime import communicators, intercommunicators, internal_messages

__all__ = ["COMM_SELF", "COMM_WORLD", "Intracomm"]

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        pass
    ctypedef struct PyMethodDescrObject:
        PyMethodDef *d_method
    ctypedef struct PyTypeObject:
        PyObject *tp_dict
    PyTypeObject PyMethodDescr_Type
    PyTypeObject *Py_TYPE(object)
    object PyDescr_NewMethod(type cls, PyMethodDef *method)
    void PyType_Modified(type cls)


cdef class Intracomm(Comm):
    """A communicator of one group (MPI-4.1, 7.4)."""

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and self.comm.is_inter:
            raise TypeError("expecting an intra-communicator")

    # --- new communicators

    def Create_group(self, Group group not None, int tag=0):
        """As `Create`, called by the members of the group alone (MPI-4.1, 7.4.2).

        Parameters:
            tag: keeps apart the calls that threads make at the same time.
        """
        keep_a_while()
        try:
            check_tag(tag)
            return self.new_handle(create_group(self.live(), checked(group, "group"), tag), None, None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    @classmethod
    def Create_from_group(cls, Group group not None, str stringtag="org.mpi4py", Info info=None,
                          Errhandler errhandler=None):
        """A communicator for a group, without a parent; COMM_NULL for an empty one (MPI-4.1, 7.4.2).

        Parameters:
            stringtag: keeps concurrent calls apart.
            errhandler: of the new communicator; default ERRORS_RETURN.
        """
        cdef Intracomm made = cls.__new__(cls)
        try:
            made.comm = communicators.from_group(checked(group, "group"), stringtag)
            if made.comm is not None:
                set_up(made.comm, group, info, errhandler)
        except MPIError as error:
            hand_over(error, None)
        return made

    def Create_intercomm(self, int local_leader, Intracomm peer_comm not None, int remote_leader, int tag=0):
        """An inter-communicator with the group that does the same (MPI-4.1, 7.6.2).

        Parameters:
            local_leader: rank here of the process that speaks for this group.
            peer_comm: contains both leaders; looked at on the local leader only.
            remote_leader: rank in `peer_comm` of the other group's leader.
            tag: keeps concurrent calls apart.
        """
        try:
            check_tag(tag)
            made = intercommunicators.connect(self.live(), local_leader, peer_comm.comm, remote_leader, tag)
            return self.new_handle(made, None, None)
        except MPIError as error:
            hand_over(error, self.comm)

    # --- topologies

    def Create_cart(self, dims, periods=None, bint reorder=False):
        """Arrange the first processes in a grid, in row-major order (MPI-4.1, 8.5.1).

        Parameters:
            dims: size of each dimension; their product is at most the number of processes.
            periods: for each dimension whether it is a ring; one for all; default none.
            reorder: whether ranks may change; they don't.

        Returns:
            a Cartcomm; COMM_NULL for the processes left over.
        """
        cdef Communicator parent
        keep_a_while()
        try:
            parent = self.live()
            extents, rings = checked_grid(dims, periods, parent.size)
            count = product(extents)
            topology = Cartesian(extents, rings, parent.rank) if parent.rank < count else None
            return self.arranged(topology, count, CART)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Create_graph(self, index, edges, bint reorder=False):
        """Arrange the first processes in a graph that all of them know (MPI-4.1, 8.5.3).

        Parameters:
            index: for each node how many edges the nodes up to it have; a leading 0 may be there or not.
            edges: neighbours of node 0, then of node 1, ...
            reorder: whether ranks may change; they don't.

        Returns:
            a Graphcomm; COMM_NULL for the processes left over.
        """
        cdef Communicator parent
        keep_a_while()
        try:
            parent = self.live()
            ends, targets = checked_graph(index, edges, parent.size)
            topology = Graph(ends, targets, parent.rank) if parent.rank < len(ends) else None
            return self.arranged(topology, len(ends), GRAPH)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Create_dist_graph_adjacent(self, sources, destinations, sourceweights=None, destweights=None, Info info=None,
                                   bint reorder=False):
        """A graph of which each process gives its own edges, at both ends (MPI-4.1, 8.5.4).

        Parameters:
            sources, destinations: ranks of the neighbours; None for none.
            sourceweights, destweights: one a neighbour; default UNWEIGHTED; WEIGHTS_EMPTY for none in a weighted graph.
            reorder: whether ranks may change; they don't.
        """
        cdef Communicator parent
        keep_a_while()
        try:
            parent = self.live()
            incoming = checked_ranks(sources, parent.size, "sources")
            outgoing = checked_ranks(destinations, parent.size, "destinations")
            in_weights = checked_weights(sourceweights, len(incoming), "sourceweights")
            out_weights = checked_weights(destweights, len(outgoing), "destweights")
            if in_weights is None or out_weights is None:
                in_weights = out_weights = None
            topology = DistributedGraph(incoming, outgoing, in_weights, out_weights)
            return self.arranged(topology, parent.size, DIST_GRAPH, info)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Create_dist_graph(self, sources, degrees, destinations, weights=None, Info info=None, bint reorder=False):
        """A graph of which each process gives any edges (MPI-4.1, 8.5.4).

        Parameters:
            sources: ranks from which edges given here start.
            degrees: how many edges start from each of them.
            destinations: where the edges end, those from the first source first.
            weights: one an edge; default UNWEIGHTED; WEIGHTS_EMPTY for none in a weighted graph.
            reorder: whether ranks may change; they don't.
        """
        cdef Communicator parent
        cdef object edges = None, problem = None
        keep_a_while()
        try:
            parent = self.live()
            try:
                ends = checked_ranks(destinations, parent.size, "destinations")
                starts = repeated(checked_ranks(sources, parent.size, "sources"), degrees, len(ends))
                edges = starts, ends, checked_weights(weights, len(ends), "weights")
            except BaseException as error:
                problem = error
            agree(parent, problem, "the graph can't be made")
            everyones = internal_messages.share_value(parent, internal_messages.gather_values(parent, edges, 0), 0)
            return self.arranged(own_edges(everyones, parent.rank), parent.size, DIST_GRAPH, info)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def Cart_map(self, dims, periods=None) -> int:
        """Rank that this process would have in a grid, or UNDEFINED (MPI-4.1, 8.5.8)."""
        try:
            extents, _ = checked_grid(dims, periods, self.live().size)
            return self.comm.rank if self.comm.rank < product(extents) else UNDEFINED
        except MPIError as error:
            hand_over(error, self.comm)

    def Graph_map(self, index, edges) -> int:
        """Rank that this process would have in a graph, or UNDEFINED (MPI-4.1, 8.5.8)."""
        try:
            ends, _ = checked_graph(index, edges, self.live().size)
            return self.comm.rank if self.comm.rank < len(ends) else UNDEFINED
        except MPIError as error:
            hand_over(error, self.comm)

    cdef object arranged(self, topology, int count, kind, info=None):
        """A communicator of the first `count` processes, which have a topology (MPI-4.1, 8.5)."""
        core = first_ranks(self.live(), count, {"topology": topology})
        return self.new_handle(core, None if core is None else classes[kind], info)

    # --- prefix reductions

    def Scan(self, sendbuf, recvbuf, op=SUM) -> None:
        """Combine the elements of the ranks up to this one, itself included (MPI-4.1, 6.11.1).

        Parameters:
            sendbuf: message; IN_PLACE when the elements are in `recvbuf`.
            recvbuf: room for as many elements.
            op: an Op.
        """
        self.carry_out(SCAN, sendbuf, recvbuf, op, None, 0)

    def Exscan(self, sendbuf, recvbuf, op=SUM) -> None:
        """Combine the elements of the ranks before this one; rank 0 receives nothing (MPI-4.1, 6.11.2).

        Parameters:
            sendbuf: message; IN_PLACE when the elements are in `recvbuf`.
            recvbuf: room for as many elements.
            op: an Op.
        """
        self.carry_out(EXSCAN, sendbuf, recvbuf, op, None, 0)

    def Iscan(self, sendbuf, recvbuf, op=SUM) -> Request:
        """Non-blocking `Scan` (MPI-4.1, 6.12)."""
        return self.begin(SCAN, sendbuf, recvbuf, op, None, 0)

    def Iexscan(self, sendbuf, recvbuf, op=SUM) -> Request:
        """Non-blocking `Exscan` (MPI-4.1, 6.12)."""
        return self.begin(EXSCAN, sendbuf, recvbuf, op, None, 0)

    def Scan_init(self, sendbuf, recvbuf, op=SUM, Info info=None) -> Prequest:
        """Persistent `Scan` (MPI-4.1, 6.13)."""
        return self.prepare(SCAN, sendbuf, recvbuf, op, None, 0)

    def Exscan_init(self, sendbuf, recvbuf, op=SUM, Info info=None) -> Prequest:
        """Persistent `Exscan` (MPI-4.1, 6.13)."""
        return self.prepare(EXSCAN, sendbuf, recvbuf, op, None, 0)

    def scan(self, sendobj, op=SUM):
        """Combine the objects of the ranks up to this one, itself included (MPI-4.1, 6.11.1).

        Parameters:
            op: an Op or a function of two objects; associative.
        """
        keep_a_while()
        try:
            self.compare(SCAN, op, 0)
            return prefix(sendobj, op, self.live(), True)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def exscan(self, sendobj, op=SUM):
        """Combine the objects of the ranks before this one; None on rank 0 (MPI-4.1, 6.11.2).

        Parameters:
            op: an Op or a function of two objects; associative.
        """
        keep_a_while()
        try:
            self.compare(EXSCAN, op, 0)
            return prefix(sendobj, op, self.live(), False)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    # --- processes that come and meet

    def Spawn(self, command, args=None, int maxprocs=1, Info info=None, int root=0, errcodes=None):
        """Start processes of a program (MPI-4.1, 11.8.2).  Returns the inter-communicator to them, once they have begun MPI.

        Everything but `root` counts on the root only.  They run under the launcher of this job; of a process that was started
        without one, under a launcher that is started behind it.

        Parameters:
            args: arguments of the program.
            maxprocs: how many processes.
            info: hints: `wdir`, `host`, `path`; `soft` is checked, all processes are started.
            errcodes: a list that gets an error class for each process.
        """
        try:
            made, codes = dynamic_processes.spawn(self.live(), [command], [args], [maxprocs], [info], root)
            if errcodes is not None:
                errcodes[:] = codes[0]
            return self.new_handle(made, None, None)
        except MPIError as error:
            hand_over(error, self.comm)

    def Spawn_multiple(self, command, args=None, maxprocs=None, info=None, int root=0, errcodes=None):
        """Start several programs as one job (MPI-4.1, 11.8.3); as `Spawn`, with a sequence for each parameter.

        Parameters:
            maxprocs, info: one for all programs, or one for each.
            errcodes: a list that gets a list of error classes for each program.

        Raises:
            ValueError: sequences of different lengths.
        """
        try:
            programs = ([], [], [], [])
            if self.live().rank == root:
                programs = dynamic_processes.of_programs(command, args, maxprocs, info)
            made, codes = dynamic_processes.spawn(self.comm, *programs, root)
            if errcodes is not None:
                errcodes[:] = codes
            return self.new_handle(made, None, None)
        except MPIError as error:
            hand_over(error, self.comm)

    def Accept(self, port_name, Info info=None, int root=0):
        """Wait for the next group that connects to a port of the root's; the inter-communicator with it (MPI-4.1, 11.9.2).

        Parameters:
            info: hint `timeout`: seconds after which to give up; without it the wait has no end.
        """
        try:
            return self.new_handle(dynamic_processes.accept(self.live(), port_name, info, root), None, None)
        except MPIError as error:
            hand_over(error, self.comm)

    def Connect(self, port_name, Info info=None, int root=0):
        """The inter-communicator with the group that accepts at a port (MPI-4.1, 11.9.3).

        Parameters:
            info: hint `timeout`: seconds after which to give up, instead of `mpi_connect_timeout`.
        """
        try:
            return self.new_handle(dynamic_processes.connect(self.live(), port_name, info, root), None, None)
        except MPIError as error:
            hand_over(error, self.comm)


cdef int check_tag(int tag) except -1:
    if not 0 <= tag <= TAG_UPPER_BOUND:
        raise MPIError(ERR_TAG, f"tag: a number from 0 to {TAG_UPPER_BOUND} expected, got {tag}")
    return 0


cdef object own_edges(list everyones, int rank):
    """This rank's part of a graph, from the edges that each rank gave."""
    sources, destinations, in_weights, out_weights = [], [], [], []
    weighted = all(costs is not None for _, _, costs in everyones)
    for starts, ends, costs in everyones:
        for start, end, cost in zip(starts, ends, costs if weighted else [1] * len(ends)):
            if end == rank:
                sources.append(start)
                in_weights.append(cost)
            if start == rank:
                destinations.append(end)
                out_weights.append(cost)
    return DistributedGraph(sources, destinations, in_weights if weighted else None, out_weights if weighted else None)


cdef int own_methods() except -1:
    """Methods that are inherited become the class's own: the interpreter calls straight those of an object's very class,
    and for the others looks up first, at each call, whether the object's class is derived from theirs."""
    cdef dict own = <dict> (<PyTypeObject *> Intracomm).tp_dict
    for base in Intracomm.__mro__[1:]:
        for name, method in base.__dict__.items():
            if Py_TYPE(method) == &PyMethodDescr_Type and name not in own and not name.startswith("_"):
                own[name] = PyDescr_NewMethod(Intracomm, (<PyMethodDescrObject *> method).d_method)
    PyType_Modified(Intracomm)
    return 0


own_methods()
classes["intra"] = Intracomm

COMM_SELF = Intracomm()
COMM_WORLD = Intracomm()


def open_world(instance) -> None:
    """COMM_WORLD and COMM_SELF stand for the communicators of a bring-up from now on."""
    communicators.begin(instance)
    for handle, core, name in ((COMM_SELF, instance.own, "COMM_SELF"), (COMM_WORLD, instance.world, "COMM_WORLD")):
        (<Intracomm> handle).comm = core
        predefine(handle, name)


def close_world() -> None:
    """The end of MPI: attributes on COMM_SELF are deleted first (MPI-4.1, 11.2.4)."""
    delete_attrs(COMM_SELF, (<Intracomm> COMM_SELF).comm.attributes)
