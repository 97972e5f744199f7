# TCP: one connection a pair of processes, made at the first message; several, or one made again, are `bundled.pxd`'s.
#
#     epoll --- listening sockets, callers that introduce themselves (reception.py), our own calls (call.py)
#        \----- connections (connection.pxd)
#                  those with traffic lately are hot: `ready` receives from them directly, without the GIL, before epoll is
#                  asked; it is asked every so many looks, for the others, and slept on
#
# `ready` runs in threads that wait without the GIL and in the engine's owner.  `busy` keeps it, and whoever changes what it
# reads, apart: it gives up at once where somebody else is at work.
from libc.stdint cimport uint64_t

from ompy.mca.btl cimport Btl, Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.endpoint cimport TcpEndpoint
from ompy_btl_tcp.frame cimport PutFrame
from ompy_btl_tcp.wire cimport Wire

cdef enum:
    HOT = 4

# What a waiter watches without the GIL.
cdef struct Watch:
    int busy
    int epoll
    int hot_count
    Wire *hot[HOT]
    bint work                                    # something to do that no socket tells of
    int writers                                  # connections with a queue
    unsigned int looks
    unsigned int in_vain                         # of these, since there was traffic on a hot connection


cdef class TcpBtl(Btl):
    cdef object __weakref__
    cdef Watch watched
    cdef bint inside                             # this process's `progress` is at work, and has `busy`
    cdef bint closed
    cdef bint has_clock                          # `look_at_clock` always has something to look at
    cdef bint is_open                            # nobody has to prove anything
    cdef object protection                       # Channel, or None where all goes in clear
    cdef str job
    cdef int rank
    cdef dict secrets                            # this process's name in each of its circles -> the circle's secret
    cdef object card, reception, own_interfaces, poller
    cdef object congestion                       # CongestionControl
    cdef dict settings                           # parameters by short name
    cdef dict endpoints                          # name -> TcpEndpoint
    cdef dict connections                        # name -> Connection
    cdef dict by_number                          # descriptor -> Connection
    cdef dict calls                              # name, of a link with its number -> Call
    cdef dict calls_by_number                    # descriptor -> what `calls` has it by
    cdef dict gone                               # name -> why, of peers lost that nobody knows an endpoint of
    cdef list hot                                # Connection, in the order of `watched.hot`
    cdef list gathering                          # Connection, those that `gathers`
    cdef list unread                             # Connection, no more of these though something of it is to be looked at
    cdef object done                             # (descriptor, status)
    cdef dict memory                             # handle -> (address, size), registered for puts
    cdef list withdrawn                          # (address, size), of which nothing is written
    cdef uint64_t next_handle
    cdef unsigned int turns
    cdef uint64_t sent, received, bytes_sent, bytes_received, bytes_put, refused, called

    cdef int work(self) except -1
    cdef int look_at_hot(self) except -1
    cdef int finish_done(self) except -1
    cdef int consume(self, Connection connection) except -1
    cdef int take_put(self, Connection connection, uint64_t handle, uint64_t address, size_t size) except -1
    cdef int attend(self) except -1
    cdef int attend_one(self, int number, bint readable, bint writable) except -1
    cdef int look_at_clock(self) except -1
    cdef int heat(self, Connection connection) except -1
    cdef int heat_unread(self) except -1
    cdef int cool(self, Connection connection) except -1
    cdef int flush_queue(self, Connection connection) except -1
    cdef int queue_begun(self, Connection connection) except -1
    cdef int unready(self, TcpEndpoint endpoint) except -1
    cdef int refuse(self, Descriptor descriptor) except -1
    cdef int transmit(self, Connection connection, const char *data, size_t size, const char *payload, size_t payload_size,
                      int tag, Descriptor descriptor, bint later=*) except -1
    cdef int hand_over(self, Connection connection, PutFrame *head, size_t head_size, const char *data, size_t size,
                       const char *payload, size_t payload_size, Descriptor descriptor, bint must=*, bint later=*) except -1
    cdef int defer(self, Connection connection) except -1
    cdef int depart(self) except -1
    cdef int part(self, Connection connection) except -1
    cdef int say(self, Connection connection, int kind) except -1
    cdef int close_connection(self, Connection connection) except -1
    cdef int see_off(self, Connection connection, double end) except -1
    cdef int lose(self, Connection connection) except -1
    cdef int abandon_queue(self, Connection connection) except -1
    cdef int stop_writing(self, size_t address, size_t size, uint64_t handle) except -1
