# One peer: the connection to it, once there is one, or its links.
from ompy.mca.btl cimport Endpoint
from ompy_btl_tcp.bundle cimport Bundle
from ompy_btl_tcp.connection cimport Connection


cdef class TcpEndpoint(Endpoint):
    cdef readonly bytes name                     # of the process, as the handshake has it
    cdef readonly bytes me                       # of this process, to it
    cdef readonly object addresses               # of the peer's that are worth a try, the best first
    cdef Connection connection                   # None before the first message, and once it is lost
    cdef public object failure                   # why contact was lost, or None


cdef class BundleEndpoint(TcpEndpoint):
    cdef Bundle bundle                           # None before the first message, and once contact is lost
    cdef readonly object ways                    # to the peer, as `card.ways` has them
