# What every MPI object of a program is: a handle on one object of the core (MPI-4.1, 2.5.1).
#
#     Intracomm ---.
#                   >--- core Communicator        two handles are equal when they stand for the same core object
#     MyComm ------'
#     Comm ------------- None                     the null handle: false, and equal to every null handle of its family
#
# A family (Datatype, Request, Comm, ...) keeps its core object in a typed attribute of its own, so that the fast path
# reads it without a cast, and tells the base through the four methods below.  Its `__cinit__` takes one optional handle
# of the family, under mpi4py's keyword, and copies the attribute:
#
#     cdef class Datatype(Handle):
#         def __cinit__(self, Datatype datatype=None):
#             if datatype is not None:
#                 self.typemap = datatype.typemap

cdef class Handle:
    cdef object __weakref__
    cdef bint constant                           # a predefined object itself (MPI.INT, not a copy): `free` leaves it alone
    cdef size_t number                           # what `_addressof` points at, once it was asked for
    cdef size_t shown                            # what ompy wrote there last
    cdef bint exposed                            # it was: other languages may write there

    # The family's root class: Comm for an Intracomm.
    cdef type family(self)
    # The core object, or None.
    cdef object core(self)
    # Become a handle on `core`; None makes this the null handle.
    cdef int become(self, object core) except -1
    # What `free` does to an object of the program's: calls `self.Free()`.
    cdef int dispose(self) except -1


# A null handle of a family's class, or of a class derived from it, as `cls.__new__(cls)` makes it.
cdef object blank(type cls)

# Give a predefined handle its public name (`MPI.<name>`): it is constant from now on, pickles by that name, and so do its
# copies.  A null handle is registered too.  Returns the handle.
cdef Handle predefine(Handle handle, str name)
# Whether the handle stands for a predefined core object, or is null.
cdef bint is_predefined(Handle handle) except -1
# Some handle was asked for its integer.
cdef bint any_number
# The core object is gone (`Free` was called, or the operation is complete): its integer stops being valid.
cdef int forget(Handle handle) except -1

# The handle's integer where code in other languages can read and write it.
cdef size_t *expose(Handle handle) except NULL
