# A datatype as the engine sees it: where the bytes of one element lie (MPI-4.1, 5.1).
#
# The MPI layer's `Datatype` is a handle on one of these.  A typemap is immutable once made, so it may be shared by any
# number of handles, requests and communicators.
from ompy.core.program cimport Program

# How a dimension of a distributed array is spread over processes; values follow Open MPI's `mpi.h`.
cdef enum:
    DISTRIBUTE_BLOCK = 0
    DISTRIBUTE_CYCLIC = 1
    DISTRIBUTE_NONE = 2
    DISTRIBUTE_DFLT_DARG = -1


cdef class Typemap:
    cdef readonly Py_ssize_t size                # bytes of data in one element
    cdef readonly Py_ssize_t extent              # step from one element to the next, in bytes
    cdef readonly Py_ssize_t lower_bound
    cdef readonly Py_ssize_t true_extent         # first to last byte of data
    cdef readonly Py_ssize_t true_lower_bound
    cdef readonly bint contiguous                # n elements are n * size bytes from offset 0: memcpy will do
    cdef readonly int basic                      # code of the predefined type of every entry when all are alike, else -1
    cdef readonly Py_ssize_t alignment           # largest alignment of an entry, in bytes

    cdef readonly Program program                # the bytes of one element as nested loops
    cdef readonly bint bounded                   # lower_bound and extent were given by a `create_resized`
    cdef public bint committed                   # ready for communication: a predefined one, or by the program's `Commit`
    cdef tuple mixture                           # the signature where entries differ, else None: `basic` and `size` tell
    cdef public object description               # what the MPI layer keeps: name, combiner, arguments, attributes

    # Basic entries in order, as pairs (unit, repeat): unit is a code of `ompy.core.basic`, or again such a tuple.
    # Equal signatures are the same tuple tree, except for the way in which constructors nested them.
    cdef tuple entries(self)

    # Building: begin(), any number of place(), then finish().
    cdef list units                              # the signature so far, where entries differ
    cdef Py_ssize_t first, last                  # of data so far
    cdef Py_ssize_t low, high                    # bounds so far
    cdef bint empty                              # no entry so far
    cdef int place(self, Typemap element, Py_ssize_t offset, Py_ssize_t count, Py_ssize_t stride) except -1
    cdef int sign(self, Typemap element, Py_ssize_t count, Py_ssize_t before) except -1
    cdef Typemap finish(self)
    cdef Typemap copied(self)
    cdef Typemap indexed(self, blocklengths, displacements, Py_ssize_t unit)
    cdef Typemap indexed_block(self, Py_ssize_t blocklength, displacements, Py_ssize_t unit)
    cdef bint is_one_block(self)
    # A subarray; as many numbers each as there are dimensions.
    cdef Typemap box(self, int dimensions, const Py_ssize_t *sizes, const Py_ssize_t *subsizes, const Py_ssize_t *starts,
                     bint fortran)
    cdef Typemap moved(self, Py_ssize_t offset, Py_ssize_t extent)
    cdef Typemap cyclic(self, Py_ssize_t owned, Py_ssize_t block, Py_ssize_t stride, Py_ssize_t block_stride)

    # The constructors of MPI-4.1, 5.1.2.  They raise MPIError(ERR_COUNT or ERR_ARG) for numbers that make no sense.
    cpdef Typemap create_dup(self)
    cpdef Typemap create_contiguous(self, Py_ssize_t count)
    cpdef Typemap create_vector(self, Py_ssize_t count, Py_ssize_t blocklength, Py_ssize_t stride)
    cpdef Typemap create_hvector(self, Py_ssize_t count, Py_ssize_t blocklength, Py_ssize_t stride)
    cpdef Typemap create_indexed(self, blocklengths, displacements)
    cpdef Typemap create_hindexed(self, blocklengths, displacements)
    cpdef Typemap create_indexed_block(self, Py_ssize_t blocklength, displacements)
    cpdef Typemap create_hindexed_block(self, Py_ssize_t blocklength, displacements)
    cpdef Typemap create_resized(self, Py_ssize_t lower_bound, Py_ssize_t extent)
    cpdef Typemap create_subarray(self, sizes, subsizes, starts, bint fortran)
    cpdef Typemap create_darray(self, int size, int rank, gsizes, distributions, arguments, psizes, bint fortran)

    # Basic elements in the first `nbytes` bytes of data of a run of elements, -1 when they end within one; a pair counts
    # as two (MPI-4.1, 5.1.11).
    cpdef Py_ssize_t elements_in(self, Py_ssize_t nbytes) except -2
    # Bytes of data of the first `count` basic elements.
    cpdef Py_ssize_t bytes_of(self, Py_ssize_t count) except -1


# The typemap of a predefined type, by its code; always the same object.
cpdef Typemap predefined(int code)
cpdef Typemap create_struct(blocklengths, displacements, typemaps)

# Number of bytes from the first to the last byte of data of `count` elements; `first` is where it begins.  MPIError(ERR_ARG)
# where that, or the number of bytes of data, is more than an address can tell.
cdef Py_ssize_t span(Typemap typemap, Py_ssize_t count, Py_ssize_t *first) except -1
# Whether the data of `count` elements, the first at `offset`, lies within `nbytes` bytes.
cdef bint lies_within(Typemap typemap, Py_ssize_t count, Py_ssize_t offset, Py_ssize_t nbytes) noexcept
# A distance and a place in bytes; MPIError(ERR_ARG) when it is farther than an address can tell.
cdef Py_ssize_t times(Py_ssize_t number, Py_ssize_t nbytes) except? -1
cdef Py_ssize_t plus(Py_ssize_t offset, Py_ssize_t nbytes) except? -1
