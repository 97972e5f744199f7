# mtl/portals: MPI's matching done by the kernel of Puma portals.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.mca.mtl cimport Mtl

from ompy_mtl_portals.engine cimport Engine
from ompy_mtl_portals.recv_request cimport PortalsRecv
from ompy_mtl_portals.send_request cimport PortalsSend
from ompy_puma.header cimport Header
from ompy_puma.heap cimport Letter
from ompy_puma.process cimport Event


cdef class Listener(Engine):
    """The engine, as the kernel calls it: who an event is for."""
    cdef int received(self, Event *event) except -1
    cdef int dropped(self, Event *event) except -1


cdef class PortalsMtl(Mtl):
    cdef readonly Listener engine
    cdef PortalsSend spare                       # for blocking sends that the kernel has queued

    cdef Letter *find(self, int source, int tag, Communicator comm) noexcept
