# The sender's half of the protocols (MPI on portals, figures 3 to 7).
#
#                                       what arrives where              what it still waits for
#     short              -> RECEIVE                                     nothing
#     short synchronous  -> RECEIVE     <- MATCHED                      the word
#     long               -> RECEIVE     <- both saved                   the acknowledgement
#     long, unexpected   -> RECEIVE     <- header saved, <- read        the acknowledgement, then that its memory was read
#     ... synchronous                   <- MATCHED as well              the word too
#
# Each also waits until the kernel needs the memory no more.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.mca.mtl cimport Mtl, MtlSend

from ompy_mtl_portals.context cimport PortalContext
from ompy_mtl_portals.engine cimport Engine
from ompy_puma.descriptor cimport Buffer
from ompy_puma.header cimport Header

cdef enum:
    AWAIT_SENT = 1
    AWAIT_ACKNOWLEDGEMENT = 2
    AWAIT_READ = 4
    AWAIT_WORD = 8

cdef class PortalsSend(MtlSend):
    cdef Engine engine
    cdef PortalContext context
    cdef int node
    cdef int awaited                             # AWAIT_ bits
    cdef bint was_read
    cdef uint64_t bits                           # names it at ACKNOWLEDGE and READ: half object, half serial
    cdef int acknowledge_entry, read_entry       # -1: none
    cdef Buffer acknowledgement

    cdef int submit(self) except -1
    cdef int launch(self) except -1
    cdef int stand_for(self, Mtl mtl, Communicator comm, const char *data, uint64_t length, int dest, int tag,
                       int mode) except -1
    cdef bint go_on_from_copy(self) except -1
    cdef int expect(self, bint readable) except -1
    cdef int link(self, int portal) except -1
    cdef int unlink(self) except -1
    cdef int take_off(self, int entry) except -1
    cdef int no_longer(self, int what) except -1
    # Events.
    cdef int acknowledged(self, const Header *header) except -1
    cdef int read(self) except -1
    cdef int out(self, int status) except -1
