# A message's two ends; `engine.pxd` pictures how they find one another.
from libc.stdint cimport uint64_t

from ompy.mca.mtl cimport MtlRecv, MtlSend
from ompy.mca.pml cimport Message

from ompy_mtl_ofi.context cimport Arrival, OfiContext
from ompy_mtl_ofi.endpoint cimport Operation
from ompy_mtl_ofi.engine cimport Engine, Peer


cdef class TakenMessage(Message):
    """What a matched probe took out."""
    cdef Arrival arrival                         # None: it was received


cdef class OfiSend(MtlSend):
    cdef Engine engine
    cdef OfiContext context
    cdef Peer target
    cdef uint64_t number                         # of an announced one; else 0
    cdef bint pulled
    cdef int pieces                              # of the body, on their way out of our memory

    cdef int submit(self) except -1
    # It is its turn: OK, or OUT_OF_RESOURCE, and nothing was taken.
    cdef int launch(self) except -1
    cdef bint go_on_from_copy(self) except -1
    # The receiver wants so many bytes of the body.
    cdef int pull(self, uint64_t receiver, uint64_t wanted, uint64_t piece) except -1
    cdef int went(self, int error) except -1


cdef class OfiRecv(MtlRecv):
    cdef Engine engine
    cdef OfiContext context
    cdef Peer target                             # who sends us a body
    cdef Operation *operation                    # in the provider's queue, or NULL
    cdef object doom                             # why it is to fail once the provider gives it, or the last piece, back
    cdef uint64_t number                         # of a body
    cdef int pieces                              # of it, that are to come
    cdef bint direct                             # they go to the program's memory

    cdef int post(self) except -1
    cdef bint withdraw(self) except -1
    # A message is ours; `body` NULL: it is at its sender, under that number.
    cdef int take(self, int source, int tag, uint64_t number, uint64_t length, const char *body) except -1
    cdef int fetch(self, int source, int tag, uint64_t number, uint64_t length) except -1
    cdef int landed_piece(self, int error) except -1
    # What `doom` says, now.
    cdef int end(self) except -1
    cdef int given_back(self, int error) except -1
