# Memory of another process read and written by the kernel, without a copy in between (cross memory attach).

# Why this process can't (a sentence), or None.  What a particular peer allows is known only by trying.
cpdef str refusal()
# Whether one copy by the kernel is quicker than two through a ring: measured.
cpdef bint pays() except -1
# Lets the job's other processes of this user attach where the kernel's Yama module asks for consent.
cpdef int allow_peers() except -1
# True when `pid` lets its memory be read: the eight bytes at `address` are `expected`.
cpdef bint can_read(int pid, size_t address, bytes expected) except -1
# 0, or the error number.
cdef int read_memory(int pid, size_t local, size_t remote, size_t size) noexcept nogil
cdef int write_memory(int pid, size_t local, size_t remote, size_t size) noexcept nogil
