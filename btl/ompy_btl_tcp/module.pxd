# TCP: one connection a pair of processes, made at the first message; several, or one made again, are `bundled.pxd`'s.
#
#     Btl -- Poller -- Peers -- TcpBtl             what is ready -- who the peers are, the connections to them -- what is sent
from libc.stdint cimport uint64_t

from ompy.mca.btl cimport Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.peers cimport Peers


cdef class TcpBtl(Peers):
    cdef dict memory                             # handle -> (address, size), registered for puts
    cdef list withdrawn                          # (address, size), of which nothing is written
    cdef uint64_t next_handle
    cdef uint64_t received, bytes_received, bytes_put

    cdef int transmit(self, Connection connection, const char *data, size_t size, const char *payload, size_t payload_size,
                      int tag, Descriptor descriptor, bint later=*) except -1
    cdef int take_put(self, Connection connection, uint64_t handle, uint64_t address, size_t size) except -1
    cdef int stop_writing(self, size_t address, size_t size, uint64_t handle) except -1
