# One peer: the connection to it, once there is one.
from ompy.mca.btl cimport Endpoint
from ompy_btl_tcp.connection cimport Connection


cdef class TcpEndpoint(Endpoint):
    cdef readonly bytes name                     # of the process, as the handshake has it
    cdef readonly bytes me                       # of this process, to it
    cdef readonly object addresses               # of the peer's that are worth a try, the best first
    cdef Connection connection                   # None before the first message, and once it is lost
    cdef public object failure                   # why contact was lost, or None
