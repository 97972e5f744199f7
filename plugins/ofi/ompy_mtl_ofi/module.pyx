# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""mtl/ofi: MPI's messages matched by libfabric's providers."""
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport OUT_OF_RESOURCE as NO_ROOM
from ompy.core.errors import ERR_REQUEST, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.core.status cimport StatusRecord
from ompy.mca.layout cimport LAYOUT
from ompy.mca.mtl cimport INTERFACE, MtlRecv, MtlSend, wait_for_departures
from ompy.mca.pml cimport Message

from ompy_mtl_ofi.context cimport ASKED, Arrival, OfiContext
from ompy_mtl_ofi.engine cimport RECEIVE, Peer
from ompy_mtl_ofi.requests cimport OfiRecv, OfiSend, TakenMessage
from ompy_mtl_ofi.tags cimport message_tag

interface = INTERFACE
layout = LAYOUT


cdef class OfiMtl(Mtl):
    """MPI messages over libfabric.

    Parameters:
        engine: the endpoint.
    """

    def __init__(self, Engine engine not None):
        self.name = "ofi"
        self.engine = engine
        register_source(engine)

    cpdef dict cards(self):
        """The endpoint's address."""
        return self.engine.card()

    def serves_other_jobs(self):
        """Each has its endpoint's address on its card."""
        return True

    cpdef int add_comm(self, Communicator comm) except -1:
        """Number its sources."""
        comm.pml = self.engine.add(comm)
        return 0

    cpdef int del_comm(self, Communicator comm) except -1:
        """Drop what was not received, here and in the provider's queue."""
        if comm.pml is not None:
            self.engine.drop(comm.pml)
            self.engine.look()
        return 0

    cpdef int add_proc(self, Proc proc) except -1:
        """Insert its address."""
        if proc.pml is None:
            proc.pml = self.engine.meet(proc)
        return 0

    cpdef int del_proc(self, Proc proc) except -1:
        """Take its address out."""
        if proc.pml is not None:
            self.engine.part(proc)
        return 0

    # -- sending --------------------------------------------------------------------------------------------------

    cpdef MtlSend new_send(self):
        """An empty send."""
        cdef OfiSend request = OfiSend.__new__(OfiSend)
        request.engine = self.engine
        return request

    cdef int send(self, const char *data, uint64_t length, int dest, int tag, int mode, Communicator comm) except -1:
        cdef OfiContext context = <OfiContext> comm.pml
        cdef Peer peer
        if length > self.engine.eager_limit or context.theirs[dest] >= ASKED:
            return NO_ROOM
        enter()
        try:
            peer = self.engine.peer_of(comm, dest)
            if peer.failed or peer.head != NULL or peer.waiting:
                return NO_ROOM
            return self.engine.eager(peer, data, length, message_tag(context.theirs[dest] + comm.rank, tag))
        finally:
            leave()

    cpdef int isend(self, MtlSend request) except -1:
        """Send by the protocol that length and mode ask for."""
        return (<OfiSend> request).submit()

    cpdef bint set_aside(self, MtlSend request) except -1:
        """Whoever asks for the body finds a copy; not where it is being sent."""
        return (<OfiSend> request).go_on_from_copy()

    # -- receiving ------------------------------------------------------------------------------------------------

    cpdef MtlRecv new_recv(self):
        """An empty receive."""
        cdef OfiRecv request = OfiRecv.__new__(OfiRecv)
        request.engine = self.engine
        return request

    cpdef int irecv(self, MtlRecv request) except -1:
        """Take what was kept, else stand in a queue."""
        return (<OfiRecv> request).post()

    cpdef bint withdraw(self, MtlRecv request) except -1:
        """Take a receive back that was not matched."""
        return (<OfiRecv> request).withdraw()

    cpdef int forget(self, MtlRecv request) except -1:
        """Its memory is its own until a body comes, and `abandon` waits for that."""
        return 0

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1:
        cdef OfiContext context = <OfiContext> comm.pml
        cdef Py_ssize_t place
        enter()
        try:
            place = context.find(source, tag)
            if place < 0:
                self.engine.look()
                place = context.find(source, tag)
            if place < 0:
                return False
            if status != NULL:
                fill_status(<Arrival> context.arrived[place], status)
            return True
        finally:
            leave()

    cpdef Message improbe(self, int source, int tag, Communicator comm):
        """Take a message out; None when there is none."""
        cdef OfiContext context = <OfiContext> comm.pml
        cdef TakenMessage taken
        if not self.iprobe(source, tag, comm, NULL):
            return None
        taken = TakenMessage.__new__(TakenMessage)
        taken.arrival = <Arrival> context.arrived.pop(context.find(source, tag))
        taken.communicator = comm
        fill_status(taken.arrival, &taken.status)
        return taken

    cpdef int imrecv(self, MtlRecv request, Message message) except -1:
        """Receive a message that was taken out."""
        cdef TakenMessage taken = <TakenMessage?> message
        cdef OfiRecv receive = <OfiRecv> request
        cdef Arrival arrival = taken.arrival
        if arrival is None:
            raise MPIError(ERR_REQUEST, "this message was received already")
        taken.arrival = None
        receive.context = <OfiContext> (<Communicator> taken.communicator).pml
        return receive.take(arrival.source, arrival.tag, arrival.number, arrival.length, arrival.body)

    # -- trouble and the end --------------------------------------------------------------------------------------

    cpdef int peer_lost(self, Proc proc) except -1:
        """Whatever involves the process fails."""
        self.engine.fail_all(proc)
        return 0

    cpdef dict dump(self, Communicator comm):
        """{"posted": [(source, tag)], "unexpected": [(source, tag, bytes)]}; of the latter, what was looked at."""
        cdef OfiContext context = <OfiContext> comm.pml
        cdef OfiRecv request
        cdef Arrival arrival
        posted = [request for request in self.engine.owners(RECEIVE) if (<OfiRecv> request).context is context]
        return {
            "posted": [(request.wanted_source, request.wanted_tag) for request in posted + context.posted],
            "unexpected": [(arrival.source, arrival.tag, arrival.length) for arrival in context.arrived],
        }

    cpdef dict statistics(self):
        """Counters."""
        return {
            "unexpected": self.engine.unexpected,
            "pulled": self.engine.pulled,
            "stalled": self.engine.stalls,
            "swept": self.engine.swept,
        }

    cpdef int finalize(self) except -1:
        """Get out what was sent; a provider that gets rid of nothing for ten seconds is not waited for."""
        wait_for_departures(not_gone, <void *> self.engine)
        self.engine.ending = True
        return 0

    cpdef int close(self) except -1:
        """Nobody sends here any more."""
        unregister_source(self.engine)
        return self.engine.close()


cdef uint64_t not_gone(void *engine) except? 0xFFFFFFFFFFFFFFFF:
    return 0 if (<Engine> engine).is_idle() else (<Engine> engine).sending + len((<Engine> engine).stalled)


cdef int fill_status(Arrival arrival, StatusRecord *status) except -1:
    status.source = arrival.source
    status.tag = arrival.tag
    status.error = 0
    status.cancelled = False
    status.nbytes = arrival.length
    return 0
