# A run of memory that processes of one user on one host share.
#
# Its maker names it by a *location* that peers attach to: a memfd, opened through /proc/<pid>/fd/<n>, which leaves
# nothing behind however its maker ends; or, where that is not possible, a file of mode 0600 in /dev/shm.  Its pages are
# reserved when it is made, so that want of memory is an error there and not a SIGBUS later.
#
# A ring can ask for its bytes from `mirror` on to be mapped twice, the second time right behind the first:
#
#     memory    | head | 0 1 2 3 |
#     mapping   | head | 0 1 2 3 | 0 1 2 3 |         so that 2 3 0 1 is one run

cdef size_t page_size                            # of this machine: 4 KiB, or 16 or 64 as some of aarch64 have it

cdef class Segment:
    cdef char *address                           # of the first byte; NULL once closed
    cdef readonly size_t size                    # bytes of memory; the mapping is longer when mirrored
    cdef size_t mapped
    cdef int descriptor                          # of the memfd or file, -1 once let go
    cdef readonly str path                       # of the file, "" for a memfd
    cdef bint owner
    cdef object __weakref__

    cdef int map(self, size_t mirror) except -1
    # What peers pass to `attach`.  Of use only while the descriptor is held (memfd) or until `unlink` (file).
    cpdef bytes location(self)
    # No more peers will attach: give back the descriptor, remove the file.  The memory stays mapped.
    cpdef int seal(self) except -1
    cpdef int close(self) except -1


cpdef Segment create(str name, size_t size, str backing=*, size_t mirror=*)
cpdef Segment attach(bytes location, size_t size, size_t mirror=*)
