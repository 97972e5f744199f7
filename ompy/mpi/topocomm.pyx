# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Communicators with a topology, and their neighbourhood collectives (MPI-4.1, chapter 8)."""

from ompy.core cimport board
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mca.coll cimport (
    NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW,
)
from ompy.mpi.comm cimport Comm, classes
from ompy.mpi.info cimport Info
from ompy.mpi.intracomm cimport Intracomm
from ompy.mpi.object_transfers cimport exchange, items_of
from ompy.mpi.request cimport Prequest, Request

from ompy.core.errors import MPIError
from ompy.mpi.raising import hand_over
from ompy.mpi.topology import CART, DIST_GRAPH, GRAPH, Cartesian, DistributedGraph, Graph, topology_of
from ompy.runtime import communicators

__all__ = ["Cartcomm", "Distgraphcomm", "Graphcomm", "Topocomm"]


cdef class Topocomm(Intracomm):
    """
    A communicator whose processes have neighbours (MPI-4.1, chapter 8).

    In neighbourhood collectives each process sends to its out-neighbours and receives from its in-neighbours, in the order
    of `outedges` and `inedges`.  With MPI.PROC_NULL as a neighbour (at the edge of a grid) its block is left alone.
    """

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and "topology" not in self.comm.attributes:
            raise TypeError("expecting a topology communicator")

    cdef object topology_as(self, object kind, str name):
        return topology_of(self.live().attributes, kind, name)

    @property
    def degrees(self) -> tuple:
        """Tuple (number of in-neighbours, number of out-neighbours) (MPI-4.1, 8.5.5)."""
        return (self.indegree, self.outdegree)

    @property
    def indegree(self) -> int:
        """Number of in-neighbours (MPI-4.1, 8.5.5)."""
        return len(self.topology_as(object, "topology").in_neighbors)

    @property
    def outdegree(self) -> int:
        """Number of out-neighbours (MPI-4.1, 8.5.5)."""
        return len(self.topology_as(object, "topology").out_neighbors)

    @property
    def inoutedges(self) -> tuple:
        """Tuple (ranks of the in-neighbours, ranks of the out-neighbours) (MPI-4.1, 8.5.5)."""
        return (self.inedges, self.outedges)

    @property
    def inedges(self) -> list:
        """Ranks of the in-neighbours (MPI-4.1, 8.5.5)."""
        return list(self.topology_as(object, "topology").in_neighbors)

    @property
    def outedges(self) -> list:
        """Ranks of the out-neighbours (MPI-4.1, 8.5.5)."""
        return list(self.topology_as(object, "topology").out_neighbors)

    def Neighbor_allgather(self, sendbuf, recvbuf) -> None:
        """A block to every neighbour, a block from every neighbour (MPI-4.1, 8.6.1).

        Parameters:
            sendbuf: message, one block.
            recvbuf: room for as many blocks as in-neighbours.
        """
        self.carry_out(NEIGHBOR_ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Neighbor_allgatherv(self, sendbuf, recvbuf) -> None:
        """A block to every neighbour, blocks of different lengths from them (MPI-4.1, 8.6.1).

        Parameters:
            sendbuf: message, one block.
            recvbuf: `[buf, counts, displs, type]`, one count an in-neighbour, in elements.
        """
        self.carry_out(NEIGHBOR_ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoall(self, sendbuf, recvbuf) -> None:
        """Block i to neighbour i (MPI-4.1, 8.6.2).

        Parameters:
            sendbuf: as many blocks as out-neighbours.
            recvbuf: room for as many blocks as in-neighbours.
        """
        self.carry_out(NEIGHBOR_ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoallv(self, sendbuf, recvbuf) -> None:
        """Blocks of different lengths to the neighbours (MPI-4.1, 8.6.2).

        Parameters:
            sendbuf: `[buf, counts, displs, type]`, one count an out-neighbour, in elements.
            recvbuf: the same for the in-neighbours.
        """
        self.carry_out(NEIGHBOR_ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoallw(self, sendbuf, recvbuf) -> None:
        """Blocks of different lengths and types to the neighbours (MPI-4.1, 8.6.2).

        Parameters:
            sendbuf: `[buf, counts, displs, types]`, one of each an out-neighbour, displacements in bytes.
            recvbuf: the same for the in-neighbours.
        """
        self.carry_out(NEIGHBOR_ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def Ineighbor_allgather(self, sendbuf, recvbuf) -> Request:
        """Non-blocking `Neighbor_allgather` (MPI-4.1, 8.7)."""
        return self.begin(NEIGHBOR_ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Ineighbor_allgatherv(self, sendbuf, recvbuf) -> Request:
        """Non-blocking `Neighbor_allgatherv` (MPI-4.1, 8.7)."""
        return self.begin(NEIGHBOR_ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Ineighbor_alltoall(self, sendbuf, recvbuf) -> Request:
        """Non-blocking `Neighbor_alltoall` (MPI-4.1, 8.7)."""
        return self.begin(NEIGHBOR_ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Ineighbor_alltoallv(self, sendbuf, recvbuf) -> Request:
        """Non-blocking `Neighbor_alltoallv` (MPI-4.1, 8.7)."""
        return self.begin(NEIGHBOR_ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Ineighbor_alltoallw(self, sendbuf, recvbuf) -> Request:
        """Non-blocking `Neighbor_alltoallw` (MPI-4.1, 8.7)."""
        return self.begin(NEIGHBOR_ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def Neighbor_allgather_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Persistent `Neighbor_allgather` (MPI-4.1, 8.8)."""
        return self.prepare(NEIGHBOR_ALLGATHER, sendbuf, recvbuf, None, None, 0)

    def Neighbor_allgatherv_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Persistent `Neighbor_allgatherv` (MPI-4.1, 8.8)."""
        return self.prepare(NEIGHBOR_ALLGATHERV, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoall_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Persistent `Neighbor_alltoall` (MPI-4.1, 8.8)."""
        return self.prepare(NEIGHBOR_ALLTOALL, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoallv_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Persistent `Neighbor_alltoallv` (MPI-4.1, 8.8)."""
        return self.prepare(NEIGHBOR_ALLTOALLV, sendbuf, recvbuf, None, None, 0)

    def Neighbor_alltoallw_init(self, sendbuf, recvbuf, Info info=None) -> Prequest:
        """Persistent `Neighbor_alltoallw` (MPI-4.1, 8.8)."""
        return self.prepare(NEIGHBOR_ALLTOALLW, sendbuf, recvbuf, None, None, 0)

    def neighbor_allgather(self, sendobj) -> list:
        """An object to every neighbour, one from every neighbour (MPI-4.1, 8.6.1).

        Returns:
            the in-neighbours' objects; None in place of MPI.PROC_NULL's.
        """
        keep_a_while()
        try:
            topology = self.topology_as(object, "topology")
            targets = topology.out_neighbors
            return exchange([sendobj] * max(len(targets), 1), targets, topology.in_neighbors, topology.is_cartesian, self.comm,
                            board.NEIGHBOR_ALLGATHER)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    def neighbor_alltoall(self, sendobj) -> list:
        """Object i to neighbour i (MPI-4.1, 8.6.2).

        Parameters:
            sendobj: as many objects as out-neighbours.

        Returns:
            the in-neighbours' objects; None in place of MPI.PROC_NULL's.
        """
        keep_a_while()
        try:
            topology = self.topology_as(object, "topology")
            objects = items_of(sendobj, len(topology.out_neighbors), self.comm)
            return exchange(objects, topology.out_neighbors, topology.in_neighbors, topology.is_cartesian, self.comm,
                            board.NEIGHBOR_ALLTOALL)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()


cdef class Cartcomm(Topocomm):
    """A communicator whose processes stand in a grid (MPI-4.1, 8.5.1)."""

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and not isinstance(self.comm.attributes["topology"], Cartesian):
            raise TypeError("expecting a Cartesian communicator")

    cdef object grid(self):
        return self.topology_as(Cartesian, "Cartesian")

    def Get_dim(self) -> int:
        """Number of dimensions (MPI-4.1, 8.5.5)."""
        return len(self.grid().dims)

    def Get_topo(self) -> tuple:
        """Tuple (sizes, whether each is a ring, coordinates of this process), a list each (MPI-4.1, 8.5.5)."""
        grid = self.grid()
        return (list(grid.dims), list(grid.periods), list(grid.coords))

    def Get_cart_rank(self, coords) -> int:
        """Rank of the process at these coordinates; they wrap around in a ring (MPI-4.1, 8.5.5)."""
        try:
            return self.grid().rank_of(coords)
        except MPIError as error:
            hand_over(error, self.comm)

    def Get_coords(self, int rank) -> list:
        """Coordinates of a rank (MPI-4.1, 8.5.5)."""
        try:
            return self.grid().coords_of(rank)
        except MPIError as error:
            hand_over(error, self.comm)

    def Shift(self, int direction, int disp) -> tuple:
        """Whom a shift along a dimension receives from and sends to (MPI-4.1, 8.5.6).

        Parameters:
            direction: the dimension, from 0.
            disp: by how many steps; negative to go down.

        Returns:
            (source, destination), PROC_NULL over an edge.
        """
        try:
            return self.grid().shift(direction, disp)
        except MPIError as error:
            hand_over(error, self.comm)

    def Sub(self, remain_dims) -> Cartcomm:
        """The subgrid of the processes that differ in some dimensions only (MPI-4.1, 8.5.7).

        Parameters:
            remain_dims: for each dimension whether it stays.
        """
        keep_a_while()
        try:
            grid = self.grid()
            stays = [bool(remains) for remains in remain_dims]
            if len(stays) != len(grid.dims):
                raise ValueError(f"remain_dims: {len(grid.dims)} expected, one a dimension, got {len(stays)}")
            inner, ranks, parts, number = grid.split(stays)
            core = communicators.part(self.live(), parts, number, ranks, {"topology": inner})
            return self.new_handle(core, classes[CART], None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()

    @property
    def dim(self) -> int:
        """Number of dimensions (MPI-4.1, 8.5.5)."""
        return self.Get_dim()

    @property
    def ndim(self) -> int:
        """Number of dimensions (MPI-4.1, 8.5.5)."""
        return self.Get_dim()

    @property
    def topo(self) -> tuple:
        """Tuple (sizes, whether each is a ring, coordinates of this process) (MPI-4.1, 8.5.5)."""
        return self.Get_topo()

    @property
    def dims(self) -> list:
        """Size of each dimension (MPI-4.1, 8.5.5)."""
        return list(self.grid().dims)

    @property
    def periods(self) -> list:
        """For each dimension whether it is a ring (MPI-4.1, 8.5.5)."""
        return list(self.grid().periods)

    @property
    def coords(self) -> list:
        """Coordinates of this process (MPI-4.1, 8.5.5)."""
        return list(self.grid().coords)


cdef class Graphcomm(Topocomm):
    """A communicator whose processes form a graph that each knows whole (MPI-4.1, 8.5.3)."""

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and not isinstance(self.comm.attributes["topology"], Graph):
            raise TypeError("expecting a general graph communicator")

    cdef object graph(self):
        return self.topology_as(Graph, "graph")

    def Get_dims(self) -> tuple:
        """Tuple (number of nodes, number of edges) (MPI-4.1, 8.5.5)."""
        graph = self.graph()
        return (len(graph.index), len(graph.edges))

    def Get_topo(self) -> tuple:
        """Tuple (ends of the nodes' edges, edges), a list each (MPI-4.1, 8.5.5)."""
        graph = self.graph()
        return (list(graph.index), list(graph.edges))

    def Get_neighbors_count(self, int rank) -> int:
        """Number of neighbours of a rank (MPI-4.1, 8.5.5)."""
        return len(self.Get_neighbors(rank))

    def Get_neighbors(self, int rank) -> list:
        """Neighbours of a rank (MPI-4.1, 8.5.5)."""
        try:
            return list(self.graph().neighbors_of(rank))
        except MPIError as error:
            hand_over(error, self.comm)

    @property
    def dims(self) -> tuple:
        """Tuple (number of nodes, number of edges) (MPI-4.1, 8.5.5)."""
        return self.Get_dims()

    @property
    def nnodes(self) -> int:
        """Number of nodes (MPI-4.1, 8.5.5)."""
        return self.Get_dims()[0]

    @property
    def nedges(self) -> int:
        """Number of edges (MPI-4.1, 8.5.5)."""
        return self.Get_dims()[1]

    @property
    def topo(self) -> tuple:
        """Tuple (ends of the nodes' edges, edges) (MPI-4.1, 8.5.5)."""
        return self.Get_topo()

    @property
    def index(self) -> list:
        """For each node how many edges the nodes up to it have (MPI-4.1, 8.5.5)."""
        return self.Get_topo()[0]

    @property
    def edges(self) -> list:
        """Neighbours of node 0, then of node 1, and so on (MPI-4.1, 8.5.5)."""
        return self.Get_topo()[1]

    @property
    def nneighbors(self) -> int:
        """Number of neighbours of this process (MPI-4.1, 8.5.5)."""
        return self.Get_neighbors_count(self.Get_rank())

    @property
    def neighbors(self) -> list:
        """Neighbours of this process (MPI-4.1, 8.5.5)."""
        return self.Get_neighbors(self.Get_rank())


cdef class Distgraphcomm(Topocomm):
    """A communicator whose processes form a graph of which each knows its own edges (MPI-4.1, 8.5.4)."""

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and not isinstance(self.comm.attributes["topology"], DistributedGraph):
            raise TypeError("expecting a distributed graph communicator")

    def Get_dist_neighbors_count(self) -> tuple:
        """Tuple (number of in-neighbours, number of out-neighbours, whether there are weights) (MPI-4.1, 8.5.5)."""
        graph = self.topology_as(DistributedGraph, "distributed graph")
        return (len(graph.in_neighbors), len(graph.out_neighbors), graph.weighted)

    def Get_dist_neighbors(self) -> tuple:
        """Tuple (in-neighbours, out-neighbours, weights) (MPI-4.1, 8.5.5).

        Returns:
            two lists of ranks, and (weights of the in-neighbours, weights of the out-neighbours) or None.
        """
        graph = self.topology_as(DistributedGraph, "distributed graph")
        weights = (list(graph.source_weights), list(graph.destination_weights)) if graph.weighted else None
        return (list(graph.in_neighbors), list(graph.out_neighbors), weights)


classes[CART] = Cartcomm
classes[GRAPH] = Graphcomm
classes[DIST_GRAPH] = Distgraphcomm
