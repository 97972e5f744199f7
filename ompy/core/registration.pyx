# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Registered memory kept for the next transfer; pictured in `registration.pxd`."""

# The C modules and the class themselves: what `collections` and `weakref` import besides costs every rank's start.
from _bisect import bisect_left, bisect_right
from _collections import OrderedDict
from _weakref import ref

from ompy.core.errors import ERR_NO_MEM, MPIError

caches = set()  # of weak references
# Unused registrations that a cache keeps, however short: each costs more here, and with the transport, than its bytes.
cdef enum:
    MOST_IDLE = 1024


cdef class Registration:
    """One stretch of memory, `size` bytes at `address`, and the handle under which peers reach it."""

    def __repr__(self):
        return f"<Registration {self.address:#x}+{self.size} users {self.users}{' retired' if self.retired else ''}>"


cdef class RegistrationCache:
    """
    The registrations of one transport.

    Parameters:
        pin: pin(address, size) -> handle: makes `size` bytes at `address` ready for remote access.
        unpin: unpin(handle): the counterpart.
        budget: bytes of unused registrations to keep; 0 to give each back with its last user.
    """
    def __init__(self, pin, unpin, size_t budget=0):
        self.pin = pin
        self.unpin = unpin
        self.budget = budget
        self.begins = []
        self.indexed = []
        self.by_handle = {}
        self.idle = OrderedDict()
        caches.add(ref(self, caches.discard))

    def __len__(self):
        return len(self.by_handle)

    cpdef bytes hold(self, size_t address, size_t size):
        """Handle of a registration that covers `size` bytes at `address`, in use until `release`.

        Raises what `pin` raises; when that is a shortage (ERR_NO_MEM), unused registrations are given up first.
        """
        cdef Registration registration = self.covering(address, size)
        if registration is not None:
            self.hits += 1
            if registration.users == 0:
                del self.idle[registration.handle]
                self.unused -= registration.size
            registration.users += 1
            return registration.handle
        self.misses += 1
        registration = Registration.__new__(Registration)
        registration.address = address
        registration.size = size
        registration.users = 1
        try:
            registration.handle = self.pin(address, size)
        except MPIError as error:
            if error.code != ERR_NO_MEM or not self.idle:
                raise
            self.shrink(0)
            registration.handle = self.pin(address, size)
        self.by_handle[registration.handle] = registration
        self.index(registration)
        return registration.handle

    cpdef int release(self, bytes handle) except -1:
        """One user of the registration is done."""
        cdef Registration registration = self.by_handle[handle]
        registration.users -= 1
        if registration.users:
            return 0
        if registration.retired:
            return self.drop(registration)
        self.idle[handle] = registration
        self.unused += registration.size
        if self.unused > self.budget or len(self.idle) > MOST_IDLE:
            self.shrink(self.budget)
        return 0

    cpdef int forget(self, size_t address, size_t size) except -1:
        """The program gives memory back: no registration that touches it is found any more."""
        cdef Registration registration
        cdef Py_ssize_t index = bisect_left(self.begins, address + size) - 1
        while index >= 0:
            registration = self.indexed[index]
            if registration.address + registration.size <= address:
                break
            self.retire(registration)
            index -= 1
        return 0

    cpdef int clear(self) except -1:
        """Give up everything that is unused, and retire the rest."""
        while self.indexed:
            self.retire(self.indexed[0])
        return 0

    cdef int shrink(self, size_t budget) except -1:
        """Give up unused registrations, the longest unused first, until at most `budget` bytes and `MOST_IDLE` are left."""
        while self.unused > budget or len(self.idle) > MOST_IDLE:
            self.retire(next(iter(self.idle.values())))
        return 0

    cdef Registration covering(self, size_t address, size_t size):
        cdef Py_ssize_t index = bisect_right(self.begins, address) - 1
        cdef Registration registration
        if index >= 0:
            registration = self.indexed[index]
            if address + size <= registration.address + registration.size:
                return registration
        return None

    cdef int index(self, Registration registration) except -1:
        cdef Py_ssize_t index = bisect_left(self.begins, registration.address)
        cdef size_t end = registration.address + registration.size
        cdef Registration within
        while index < len(self.begins):
            within = self.indexed[index]
            if within.address + within.size > end:
                break
            self.retire(within)
        self.begins.insert(index, registration.address)
        self.indexed.insert(index, registration)
        return 0

    cdef int retire(self, Registration registration) except -1:
        cdef Py_ssize_t index = bisect_left(self.begins, registration.address)
        del self.begins[index]
        del self.indexed[index]
        registration.retired = True
        if registration.users == 0:
            del self.idle[registration.handle]
            self.unused -= registration.size
            self.drop(registration)
        return 0

    cdef int drop(self, Registration registration) except -1:
        del self.by_handle[registration.handle]
        self.unpin(registration.handle)
        return 0


cpdef int forget(size_t address, size_t size) except -1:
    """Tell every transport's cache that the program gives `size` bytes at `address` back."""
    for reference in tuple(caches):
        cache = reference()
        if cache is not None:
            cache.forget(address, size)
    return 0
