# pread, pwrite and range locks that finish what they began, without the GIL; errors are returned as -errno.
cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <stdint.h>
    #include <sys/uio.h>
    #include <unistd.h>

    #ifndef F_OFD_SETLK
    #define F_OFD_SETLK 37
    #define F_OFD_SETLKW 38
    #endif

    /* A call moves so many bytes at most, so that the counters tell how far a long transfer is. */
    #define OMPY_AT_A_TIME (16 << 20)

    static uint64_t ompy_file_read, ompy_file_written, ompy_file_calls, ompy_file_copies, ompy_file_sieved;

    /* Bytes moved, fewer at the end of the file. */
    static inline ssize_t ompy_fetch(int descriptor, char *memory, ssize_t length, ssize_t offset) {
        ssize_t done = 0;
        while (done < length) {
            size_t some = length - done < OMPY_AT_A_TIME ? length - done : OMPY_AT_A_TIME;
            ssize_t moved = pread(descriptor, memory + done, some, offset + done);
            if (moved < 0 && errno == EINTR) continue;
            if (moved < 0) return -errno;
            __atomic_fetch_add(&ompy_file_calls, 1, __ATOMIC_RELAXED);
            if (moved == 0) break;
            __atomic_fetch_add(&ompy_file_read, moved, __ATOMIC_RELAXED);
            done += moved;
        }
        return done;
    }

    /* One call; bytes moved, gaps included. */
    static inline ssize_t ompy_fetch_pieces(int descriptor, const struct iovec *pieces, int count, ssize_t offset) {
        ssize_t moved;
        do moved = preadv(descriptor, pieces, count, offset); while (moved < 0 && errno == EINTR);
        if (moved < 0) return -errno;
        __atomic_fetch_add(&ompy_file_calls, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&ompy_file_read, moved, __ATOMIC_RELAXED);
        return moved;
    }

    static inline ssize_t ompy_store(int descriptor, const char *memory, ssize_t length, ssize_t offset) {
        ssize_t done = 0;
        while (done < length) {
            size_t some = length - done < OMPY_AT_A_TIME ? length - done : OMPY_AT_A_TIME;
            ssize_t moved = pwrite(descriptor, memory + done, some, offset + done);
            if (moved < 0 && errno == EINTR) continue;
            if (moved < 0) return -errno;
            if (moved == 0) return -ENOSPC;
            __atomic_fetch_add(&ompy_file_calls, 1, __ATOMIC_RELAXED);
            __atomic_fetch_add(&ompy_file_written, moved, __ATOMIC_RELAXED);
            done += moved;
        }
        return done;
    }

    static inline void ompy_count_copy(ssize_t nbytes, int reading) {
        __atomic_fetch_add(&ompy_file_copies, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(reading ? &ompy_file_read : &ompy_file_written, nbytes, __ATOMIC_RELAXED);
    }

    /* Locks of the open file description: another open of the same file by this process conflicts, a close elsewhere frees
       nothing.  Waits; -EINTR when a signal came. */
    static inline int ompy_lock_range(int descriptor, short kind, ssize_t offset, ssize_t length) {
        struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = offset, .l_len = length, .l_pid = 0};
        return fcntl(descriptor, F_OFD_SETLKW, &lock) < 0 ? -errno : 0;
    }
    """
    Py_ssize_t fetch_bytes "ompy_fetch"(int descriptor, char *memory, Py_ssize_t length, Py_ssize_t offset) noexcept nogil
    Py_ssize_t fetch_pieces "ompy_fetch_pieces"(int descriptor, const iovec *pieces, int count,
                                                Py_ssize_t offset) noexcept nogil
    Py_ssize_t store_bytes "ompy_store"(int descriptor, const char *memory, Py_ssize_t length, Py_ssize_t offset) noexcept nogil
    int lock_range "ompy_lock_range"(int descriptor, short kind, Py_ssize_t offset, Py_ssize_t length) noexcept nogil
    void count_copy "ompy_count_copy"(Py_ssize_t nbytes, bint reading) noexcept nogil
    unsigned long long bytes_read "ompy_file_read"
    unsigned long long bytes_written "ompy_file_written"
    unsigned long long calls_made "ompy_file_calls"
    unsigned long long copies_made "ompy_file_copies"
    unsigned long long windows_sieved "ompy_file_sieved"
    short SHARED_RANGE "F_RDLCK"
    short EXCLUSIVE_RANGE "F_WRLCK"
    short NO_RANGE "F_UNLCK"
