# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True
"""What mpi4py's own Python parts keep on a communicator: locks, and a duplicate for messages of their own.

The duplicate is made at the first call, cached as an attribute, and freed with the communicator.
"""

from ompy.core.constants cimport TAG_UPPER_BOUND
from ompy.mpi.comm cimport Comm, new_comm
from ompy.mpi.intercomm cimport Intercomm
from ompy.mpi.intracomm cimport Intracomm

from ompy.runtime import communicators


cdef class PrivateContext:
    cdef Comm comm, local
    cdef int tag

    cdef int next_tag(self):
        cdef int tag = self.tag
        self.tag = 0 if tag == TAG_UPPER_BOUND else tag + 1
        return tag


def free_context(comm, keyval, PrivateContext context):
    context.comm.Free()
    if context.local is not None:
        context.local.Free()


cdef int keyval = Comm.Create_keyval(None, free_context)


cdef PrivateContext context_of(Comm comm):
    cdef PrivateContext context = comm.Get_attr(keyval)
    if context is None:
        context = PrivateContext()
        context.comm = comm.Dup()
        if comm.Is_inter():
            context.local = new_comm(communicators.duplicate(comm.comm.local_communicator))
        comm.Set_attr(keyval, context)
    return context


def _commctx_intra(Intracomm comm not None) -> tuple:
    """(duplicate of the communicator, a tag on it); collective, as is the first call's duplication."""
    cdef PrivateContext context = context_of(comm)
    return context.comm, context.next_tag()


def _commctx_inter(Intercomm comm not None) -> tuple:
    """(duplicate, a tag on it, an intra-communicator of the local group, whether this is the first of the two groups)."""
    cdef PrivateContext context = context_of(comm)
    return context.comm, context.next_tag(), context.local, communicators.comes_first(comm.comm)


cdef dict locks_of(Comm comm):
    return comm.live().attributes.setdefault("locks", {})


def _comm_lock(Comm comm not None, key=None):
    """The lock that the communicator keeps under a key."""
    from _thread import allocate_lock
    return locks_of(comm).setdefault(key, allocate_lock())


def _comm_lock_table(Comm comm not None) -> dict:
    """All locks that the communicator keeps."""
    return locks_of(comm)
