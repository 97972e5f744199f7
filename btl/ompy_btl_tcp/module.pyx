# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""TCP between processes; see `module.pxd`."""
from libc.stdint cimport uint64_t
from libc.string cimport memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_INTERN, MPIError
from ompy.core.progress_source cimport goal
from ompy.mca.btl cimport (
    FLAG_IN_ORDER, FLAG_NEEDS_REGISTRATION, FLAG_PUT, FLAG_RENEWAL, FLAG_SEND, FLAG_SENDI, INTERFACE, Btl, Descriptor, Endpoint,
)
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.endpoint cimport TcpEndpoint
from ompy_btl_tcp.frame cimport FRAME_ANSWER, FRAME_ASK, FRAME_DATA, FRAME_PUT, Frame, PutFrame
from ompy_btl_tcp.peers cimport Peers
from ompy_btl_tcp.wire cimport lock, unlock

interface = INTERFACE

# Bytes of messages that leave together, but for the last: about a packet.  Linux sends each packet that is full by itself,
# which takes longer than a run of many at once.
cdef enum:
    GATHERED = 1024
# Frames of one connection dealt with at a time.
cdef int BATCH = 64
# Parameters that the engine reads.
LIMITS = ("eager_limit", "rndv_eager_limit", "max_send_size", "min_rdma_pipeline_size", "rdma_pipeline_frag_size",
          "exclusivity", "latency", "bandwidth")


cdef class TcpBtl(Peers):
    """TCP to every peer that can be reached.

    Parameters:
        rte: this process's place in its job.
        value: gives the component's parameters by short name.

    Errors: OSError when there is nowhere to listen, in words for people.
    """

    def __init__(self, rte, value):
        self.name = "tcp"
        self.flags = FLAG_SEND | FLAG_SENDI | FLAG_PUT | FLAG_NEEDS_REGISTRATION | FLAG_IN_ORDER | FLAG_RENEWAL
        for name in LIMITS:
            setattr(self, name, value(name))
        self.eager_limit = min(self.eager_limit, self.max_send_size)
        self.rndv_eager_limit = min(self.rndv_eager_limit, self.max_send_size)
        self.rdma_pipeline_send_length = 0
        self.put_limit = 1 << 30
        self.memory = {}
        self.withdrawn = []
        Peers.__init__(self, rte, value)

    cpdef dict statistics(self):
        return Btl.statistics(self) | {
            "messages_sent": self.sent, "bytes_sent": self.bytes_sent, "messages_received": self.received,
            "bytes_received": self.bytes_received, "bytes_put": self.bytes_put, "sends_held_back": self.refused,
            "connections": len(self.connections), "calls_made": self.called,
            "connections_rejected": self.reception.turned_away,
        }

    # -- messages

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef TcpEndpoint peer = <TcpEndpoint> endpoint
        cdef Connection connection = peer.connection
        cdef bint later = self.deferrable
        self.deferrable = False
        if connection is None and self.unready(peer) != OK:
            return OUT_OF_RESOURCE
        if peer.failure is not None:
            raise peer.failure
        # The first one leaves at once: whoever sends now and then waits for nothing.
        later = later and connection.turn == self.turns and connection.gathered < GATHERED and connection.seal is None
        connection.gathered = connection.gathered + header_size + payload_size if later else 0
        connection.turn = self.turns
        if self.transmit(connection, header, header_size, payload, payload_size, tag, None, later) != OK:
            return OUT_OF_RESOURCE
        return self.defer(connection) if later else OK

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        cdef TcpEndpoint peer = <TcpEndpoint> endpoint
        if peer.connection is None and self.unready(peer) != OK:
            return OUT_OF_RESOURCE
        if peer.failure is not None:
            return self.refuse(descriptor)
        return self.transmit(peer.connection, descriptor.data, descriptor.length, descriptor.payload,
                             descriptor.payload_length, tag, descriptor)

    cdef int transmit(self, Connection connection, const char *data, size_t size, const char *payload, size_t payload_size,
                      int tag, Descriptor descriptor, bint later=False) except -1:
        cdef PutFrame head
        head.frame.length = size + payload_size
        head.frame.kind = FRAME_DATA
        head.frame.tag = tag
        head.frame.asks = head.frame.spare = 0
        head.frame.acknowledged = 0
        return self.hand_over(connection, &head, sizeof(Frame), data, size, payload, payload_size, descriptor, False, later)

    cdef int consume(self, Connection connection) except -1:
        """Deal with the frames that have come; the number of events."""
        cdef const Frame *frame
        cdef int events = 0
        cdef size_t length
        while events < BATCH:
            frame = connection.next_frame()
            if frame == NULL:
                connection.wire.fresh = False
                break
            events += 1
            length = frame.length
            if frame.kind == FRAME_DATA:
                self.received += 1
                self.bytes_received += length + sizeof(Frame)
                if self.receivers[frame.tag] is None:
                    raise MPIError(ERR_INTERN, f"btl tcp got a message with tag {frame.tag}, which nobody registered")
                self.deliver(frame.tag, connection.endpoint, <const char *> (frame + 1), length)
                if goal[0]:
                    connection.wire.fresh = not connection.is_drained()
                    break                        # what is behind it can wait until the next look
            elif frame.kind == FRAME_PUT:
                self.bytes_received += length + sizeof(PutFrame)
                self.take_put(connection, (<const PutFrame *> frame).handle, (<const PutFrame *> frame).address, length)
            elif frame.kind == FRAME_ASK:
                self.say(connection, FRAME_ANSWER)
            elif frame.kind == FRAME_ANSWER:
                connection.answers += 1
            else:
                connection.departed = True
        if connection.wire.over and not connection.wire.fresh:
            events += self.lose(connection)
        return events

    # -- memory of the program's that peers write

    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size):
        self.next_handle += 1
        self.memory[self.next_handle] = (address, size)
        return self.next_handle.to_bytes(8, "little")

    cpdef int deregister_mem(self, bytes handle) except -1:
        cdef uint64_t number = int.from_bytes(handle, "little")
        self.memory.pop(number, None)
        return self.stop_writing(0, 0, number)

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        cdef TcpEndpoint peer = <TcpEndpoint> endpoint
        cdef PutFrame head
        if peer.connection is None and self.unready(peer) != OK:
            return OUT_OF_RESOURCE
        if peer.failure is not None:
            return self.refuse(descriptor)
        memset(&head, 0, sizeof(head))
        head.frame.length = descriptor.size
        head.frame.kind = FRAME_PUT
        head.handle = int.from_bytes(descriptor.remote_handle, "little")
        head.address = descriptor.remote_address
        if self.hand_over(peer.connection, &head, sizeof(PutFrame), <char *> descriptor.local_address, descriptor.size,
                          NULL, 0, descriptor) != OK:
            return OUT_OF_RESOURCE
        peer.connection.unasked += 1
        self.bytes_put += descriptor.size
        return OK

    cdef int take_put(self, Connection connection, uint64_t handle, uint64_t address, size_t size) except -1:
        cdef size_t begin = 0, room = 0
        cdef size_t taken_back, length
        cdef char *target = NULL
        if handle in self.memory:
            begin, room = self.memory[handle]
            if address >= begin and size <= room and address - begin <= room - size:
                target = <char *> address
        for taken_back, length in self.withdrawn:
            if address < taken_back + length and taken_back < address + size:
                target = NULL
        return connection.receive_put(target, handle, size)

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        self.withdrawn.append((address, size))
        self.stop_writing(address, size, 0)
        return True

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        self.withdrawn.remove((address, size))
        return 0

    cdef int stop_writing(self, size_t address, size_t size, uint64_t handle) except -1:
        """What is arriving in this memory, or under this handle, is dropped from here on."""
        cdef Connection connection
        cdef size_t place
        if not self.inside:
            lock(&self.watched.busy)
        for connection in self.by_number.values():
            place = <size_t> connection.wire.target
            if connection.wire.left and (connection.aim == handle or (place < address + size
                                                                      and address < place + connection.wire.left)):
                connection.wire.target = NULL
        if not self.inside:
            unlock(&self.watched.busy)
        return 0

    cpdef int flush(self, Endpoint endpoint) except -1:
        cdef Connection connection
        if endpoint is None:
            some = list(self.connections.values())
        else:
            some = [(<TcpEndpoint> endpoint).connection] if (<TcpEndpoint> endpoint).connection is not None else []
        over = OK
        for connection in some:
            if connection.unasked and self.say(connection, FRAME_ASK) == OK:
                connection.unasked = 0
                connection.asks += 1
            if connection.unasked or connection.asks != connection.answers:
                over = OUT_OF_RESOURCE
        return over
