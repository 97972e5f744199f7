# What is ready of a process's sockets.
#
#     epoll --- listening sockets, callers that introduce themselves (reception.py), our own calls (call.py)
#        \----- connections (connection.pxd)
#                  those with traffic lately are hot: `ready` asks for them, and receives, without the GIL, before epoll is
#                  asked; it is asked every so many looks, for the others, and slept on
#
# To tell epoll of each packet costs its sender some hundred nanoseconds, as the system delivers it in the sender's call.  So a
# hot connection with steady traffic is set aside: epoll has it again before anybody sleeps, and when it cools.
#
#     in epoll --- STEADY messages, nobody asleep ---> aside
#              <-- may_sleep, in vain for long, another one is hot instead, something waits for room
#
# `ready` runs in threads that wait without the GIL and in the engine's owner.  `busy` keeps it, and whoever changes what it
# reads, apart: it gives up at once where somebody else is at work.
from ompy.mca.btl cimport Btl, Descriptor
from ompy_btl_tcp.connection cimport Connection
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


cdef class Poller(Btl):
    cdef Watch watched
    cdef bint inside                             # this process's `progress` is at work, and has `busy`
    cdef bint closed
    cdef object poller                           # epoll
    cdef dict by_number                          # descriptor -> Connection
    cdef list hot                                # Connection, in the order of `watched.hot`
    cdef list gathering                          # Connection, those that `gathers`
    cdef list unread                             # Connection, no more of these though something of it is to be looked at
    cdef object done                             # (descriptor, status)
    cdef unsigned int turns

    cdef int work(self) except -1
    cdef int look_at_hot(self) except -1
    cdef int finish_done(self) except -1
    cdef int refuse(self, Descriptor descriptor) except -1
    cdef int set_aside(self, Connection connection) except -1
    cdef int poll_directly(self, Connection connection) except -1
    cdef int heat_unread(self) except -1
    cdef int leave_to_epoll(self, Connection connection) except -1
    cdef int attend(self) except -1
    cdef int queue_begun(self, Connection connection) except -1
    cdef int flush_queue(self, Connection connection) except -1
    cdef int defer(self, Connection connection) except -1
    cdef int depart(self) except -1
    # Those of whoever has the connections.
    cdef int consume(self, Connection connection) except -1
    cdef int attend_one(self, int number, bint readable, bint writable) except -1
    cdef int attend_waiting(self) except -1
