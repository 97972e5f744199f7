# The peers of a process, and the connections to them: called at the first message, or accepted, and lost.
from libc.stdint cimport uint64_t

from ompy.mca.btl cimport Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.endpoint cimport TcpEndpoint
from ompy_btl_tcp.frame cimport PutFrame
from ompy_btl_tcp.poller cimport Poller


cdef class Peers(Poller):
    cdef object __weakref__
    cdef bint has_clock                          # `look_at_clock` always has something to look at
    cdef bint is_open                            # nobody has to prove anything
    cdef object protection                       # Channel, or None where all goes in clear
    cdef str job
    cdef int rank
    cdef dict secrets                            # this process's name in each of its circles -> the circle's secret
    cdef object card, reception, own_interfaces
    cdef object congestion                       # CongestionControl
    cdef dict settings                           # parameters by short name
    cdef dict endpoints                          # name -> TcpEndpoint
    cdef dict connections                        # name -> Connection
    cdef dict calls                              # name, of a link with its number -> Call
    cdef dict calls_by_number                    # descriptor -> what `calls` has it by
    cdef dict gone                               # name -> why, of peers lost that nobody knows an endpoint of
    cdef uint64_t sent, bytes_sent, refused, called

    cdef int look_at_clock(self) except -1
    cdef int unready(self, TcpEndpoint endpoint) except -1
    cdef int close_connection(self, Connection connection) except -1
    cdef int abandon_queue(self, Connection connection) except -1
    cdef int lose(self, Connection connection) except -1
    cdef int hand_over(self, Connection connection, PutFrame *head, size_t head_size, const char *data, size_t size,
                       const char *payload, size_t payload_size, Descriptor descriptor, bint must=*, bint later=*) except -1
    cdef int say(self, Connection connection, int kind) except -1
    cdef int part(self, Connection connection) except -1
    cdef int see_off(self, Connection connection, double end) except -1
