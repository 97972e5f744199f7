# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Memory of another process read and written by the kernel (process_vm_readv and process_vm_writev)."""
import os

from libc.string cimport memcmp

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/prctl.h>
    #include <sys/uio.h>

    #ifndef PR_SET_PTRACER
    #define PR_SET_PTRACER 0x59616d61
    #endif
    #ifndef PR_SET_PTRACER_ANY
    #define PR_SET_PTRACER_ANY ((unsigned long) -1)
    #endif

    static int ompy_allow_peers(void) { return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

    /* A transfer may stop half-way: go on behind it. */
    static int ompy_transfer(int pid, size_t local, size_t remote, size_t size, int writing) {
        while (size) {
            struct iovec here = {(void *) local, size}, there = {(void *) remote, size};
            ssize_t moved = writing ? process_vm_writev(pid, &here, 1, &there, 1, 0)
                                    : process_vm_readv(pid, &here, 1, &there, 1, 0);
            if (moved < 0 && errno == EINTR)
                continue;
            if (moved <= 0)
                return moved ? errno : EFAULT;
            local += moved;
            remote += moved;
            size -= moved;
        }
        return 0;
    }
    """
    int set_ptracer_any "ompy_allow_peers"() noexcept nogil
    int transfer "ompy_transfer"(int pid, size_t local, size_t remote, size_t size, bint writing) noexcept nogil

YAMA = "/proc/sys/kernel/yama/ptrace_scope"


cpdef str refusal():
    """Why this process can't use it, or None."""
    probe = b"8 bytes."
    cdef size_t address = <size_t> <char *> probe
    cdef char copy[8]
    cdef int error = transfer(os.getpid(), <size_t> copy, address, 8, False)
    if error:
        return f"process_vm_readv: {os.strerror(error)}"
    try:
        with open(YAMA) as scope:
            level = int(scope.read())
    except (OSError, ValueError):
        return None                              # no Yama: peers of the same user may
    if level >= 2 and os.geteuid() != 0:
        return f"{YAMA} is {level}: only administrators may read another process's memory"
    return None


cpdef int allow_peers() except -1:
    """Consents to being read by processes of the same user; without Yama there is nothing to consent to."""
    set_ptracer_any()
    return 0


cpdef bint can_read(int pid, size_t address, bytes expected) except -1:
    """Whether the memory of `pid` at `address` can be read and is `expected`, eight bytes."""
    cdef char found[8]
    if transfer(pid, <size_t> found, address, 8, False):
        return False
    return memcmp(found, <char *> expected, 8) == 0


cdef int read_memory(int pid, size_t local, size_t remote, size_t size) noexcept nogil:
    return transfer(pid, local, remote, size, False)


cdef int write_memory(int pid, size_t local, size_t remote, size_t size) noexcept nogil:
    return transfer(pid, local, remote, size, True)
