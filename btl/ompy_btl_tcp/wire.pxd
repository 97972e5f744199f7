# One connected socket, without Python: what has come, and gathered writes.  None of this waits, and none of it needs the GIL.
#
#     begin            end                room
#       v               v                  v
#     | frames to look at | room for more  |         `pull` adds behind `end`; who looks at frames moves `begin`
#
#     target ----------------> target + left         the rest of a put, which is received where it is to be; what comes after
#                                                    it goes into the buffer by the same system call
cdef enum:
    ENDED = -1                                   # Wire.over: the peer has closed its side
    SLICE = 512 << 10                            # bytes of a put taken by one system call
    BEHIND = 4 << 10                             # and of what follows it: maybe of the next one, which has its own place
    SEALED_ROOM = 256 << 10                      # bytes of records taken by one

cdef struct Wire:
    int number                                   # the socket's descriptor
    char *buffer
    size_t begin, end, room
    char *target                                 # NULL: the rest of this put is dropped
    size_t left                                  # bytes of the put that are still to come
    char *sealed                                 # for records of TLS, to be opened (`seal.pxd`); NULL: all comes in clear
    size_t sealed_begin, sealed_size             # those that have come and are not opened; room is for SEALED_ROOM
    int over                                     # 0, ENDED, or the error number by which the connection broke
    bint fresh                                   # there is something for whoever has the GIL
    bint aside                                   # epoll is not to tell of it (`poller.pxd`)

cdef struct Part:
    void *iov_base
    size_t iov_len

# Take what has come; True when there was anything, the end included.  Of what is sealed nothing more comes before it is opened.
cdef bint pull(Wire *wire) noexcept nogil
# Bytes of the parts that the system took: 0 for none now; below 0, minus an error number.
cdef ssize_t push(int number, Part *parts, int count) noexcept nogil
# The same, of what may leave with what follows: with `send_gathered` at the latest, or when the system has waited for long.
cdef ssize_t gather(int number, Part *parts, int count) noexcept nogil
cdef void send_gathered(int number) noexcept nogil
# What has come and was not looked at is for nobody.
cdef void drop(Wire *wire) noexcept nogil
# Bytes that the system has taken and the peer's has not acknowledged.
cdef int unacknowledged(int number) noexcept nogil
# Milliseconds for which the peer's system has answered nothing, though it was asked again; 0: nothing is amiss.
cdef unsigned int silence(int number) noexcept nogil
# Nothing more is sent: the peer sees the end behind what is on its way.
cdef void end_of_sending(int number) noexcept nogil

# A bit for each descriptor, of 32 at most, at which something has come, be it the end.  Unlike `pull` this takes no socket's
# lock, which the system wants while it delivers: to ask in vain keeps no sender waiting.
cdef unsigned int arrived(const int *numbers, int count) noexcept nogil

# Which descriptors of several are ready.
cdef struct Ready:
    int number
    bint readable, writable

cdef int watch(int epoll, int number, bint writable, bint anew) noexcept nogil
cdef int forget(int epoll, int number) noexcept nogil
# Fills in at most `most`, 64 at most; returns how many.
cdef int look_around(int epoll, Ready *found, int most) noexcept nogil

cdef extern from *:
    """
    #include <sched.h>
    static inline int ompy_tcp_try_lock(int *word) { return !__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE); }
    static inline void ompy_tcp_unlock(int *word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }
    static inline void ompy_tcp_lock(int *word) { while (!ompy_tcp_try_lock(word)) sched_yield(); }
    """
    bint try_lock "ompy_tcp_try_lock"(int *word) noexcept nogil
    void unlock "ompy_tcp_unlock"(int *word) noexcept nogil
    void lock "ompy_tcp_lock"(int *word) noexcept nogil
