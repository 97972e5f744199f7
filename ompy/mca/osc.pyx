# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of one-sided components.  The contract is in `osc.pxd`."""
cimport cython

interface = INTERFACE


@cython.freelist(16)
cdef class Access:
    """One access to a target's memory; see `osc.pxd`."""

    @property
    def owner(self):
        """Whose memory it is about, here: as long as this lives, so does the memory."""
        return self.origin_owner, self.result_owner, self.compare_owner


cdef class OscModule:
    """One component's service for one window.

    Parameters:
        component: the component's name.
        window: the window.
    """

    def __init__(self, str component not None, Window window not None):
        self.component = component
        self.window = window

    cpdef int open(self) except -1:
        """This module was chosen: other ranks may ask for this process's memory."""
        return 0

    cpdef Request put(self, Access access):
        """Write to the target's memory (MPI-4.1, 12.3.1)."""
        raise NotImplementedError

    cpdef Request get(self, Access access):
        """Read the target's memory (MPI-4.1, 12.3.2)."""
        raise NotImplementedError

    cpdef Request accumulate(self, Access access):
        """Combine data into the target's memory (MPI-4.1, 12.3.4)."""
        raise NotImplementedError

    cpdef Request get_accumulate(self, Access access):
        """The same, and fetch what was there before (MPI-4.1, 12.3.4)."""
        raise NotImplementedError

    cpdef Request compare_and_swap(self, Access access):
        """Replace an element if it equals another, and fetch what was there (MPI-4.1, 12.3.4)."""
        raise NotImplementedError

    cpdef int fence(self, int assertion) except -1:
        """End the accesses of all ranks, and begin new ones (MPI-4.1, 12.5.1)."""
        raise NotImplementedError

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks (MPI-4.1, 12.5.2)."""
        raise NotImplementedError

    cpdef int start(self, list ranks, int assertion) except -1:
        """Begin accesses to the ranks (MPI-4.1, 12.5.2)."""
        raise NotImplementedError

    cpdef int complete(self) except -1:
        """End what `start` began (MPI-4.1, 12.5.2)."""
        raise NotImplementedError

    cpdef int wait(self) except -1:
        """Until the ranks of `post` have completed (MPI-4.1, 12.5.2)."""
        raise NotImplementedError

    cpdef bint test(self) except -1:
        """Whether they have; if so, as after `wait` (MPI-4.1, 12.5.2)."""
        raise NotImplementedError

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Begin accesses to a target that takes no part (MPI-4.1, 12.5.3)."""
        raise NotImplementedError

    cpdef int unlock(self, int target) except -1:
        """End them; they are complete at the target (MPI-4.1, 12.5.3)."""
        raise NotImplementedError

    cpdef int lock_all(self, int assertion) except -1:
        """A shared lock of every rank (MPI-4.1, 12.5.3)."""
        raise NotImplementedError

    cpdef int unlock_all(self) except -1:
        """End what `lock_all` began (MPI-4.1, 12.5.3)."""
        raise NotImplementedError

    cpdef int flush(self, int target, bint local) except -1:
        """Complete accesses to a target, or all (-1) (MPI-4.1, 12.5.4)."""
        raise NotImplementedError

    cpdef int sync(self) except -1:
        """Make loads and stores of this process's memory visible (MPI-4.1, 12.5.4)."""
        raise NotImplementedError

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to a dynamic window (MPI-4.1, 12.2.4)."""
        raise NotImplementedError

    cpdef int detach(self, size_t address) except -1:
        """Take it away again (MPI-4.1, 12.2.4)."""
        raise NotImplementedError

    cpdef int may_free(self) except -1:
        """Whether an epoch is open: ERR_RMA_SYNC (MPI-4.1, 12.2.5)."""
        return 0

    cpdef int free(self) except -1:
        """Collective: the window is no longer used (MPI-4.1, 12.2.5)."""
        raise NotImplementedError
