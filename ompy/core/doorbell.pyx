# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""How a process that sleeps is woken by its peers on this host."""
import os

from libc.stdint cimport uint32_t

from ompy.core.segment cimport attach, create

cdef extern from "<unistd.h>" nogil:
    int close_descriptor "close"(int descriptor)
cdef extern from *:
    """
    #include <limits.h>
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    #ifndef SYS_membarrier
    #define SYS_membarrier -1
    #endif
    #define OMPY_MEMBARRIER_GLOBAL_EXPEDITED 2
    #define OMPY_MEMBARRIER_REGISTER_GLOBAL_EXPEDITED 4

    static int ompy_register_membarrier(void) {
        return syscall(SYS_membarrier, OMPY_MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    }
    static void ompy_fence_everywhere(void) {
        if (syscall(SYS_membarrier, OMPY_MEMBARRIER_GLOBAL_EXPEDITED, 0, 0))
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
    static void ompy_futex_wait(uint32_t *word, uint32_t seen, long nanoseconds) {
        struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
    }
    static void ompy_futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }
    static uint32_t ompy_exchange(uint32_t *word, uint32_t value) {
        return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
    }
    static uint32_t ompy_load(uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
    static void ompy_increment(uint32_t *word) { __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST); }
    static void ompy_signal_pipe(int writer) { if (write(writer, "", 1) < 0) { /* full: it is readable already */ } }
    static void ompy_drain_pipe(int reader) { char bytes[64]; while (read(reader, bytes, sizeof bytes) > 0) ; }
    """
    bint register_membarrier "ompy_register_membarrier"() noexcept nogil
    void fence_everywhere "ompy_fence_everywhere"() noexcept nogil
    void wait_on_word "ompy_futex_wait"(uint32_t *word, uint32_t seen, long nanoseconds) noexcept nogil
    void futex_wake "ompy_futex_wake"(uint32_t *word) noexcept nogil
    uint32_t exchange "ompy_exchange"(uint32_t *word, uint32_t value) noexcept nogil
    uint32_t load "ompy_load"(uint32_t *word) noexcept nogil
    void increment "ompy_increment"(uint32_t *word) noexcept nogil
    void signal_pipe "ompy_signal_pipe"(int writer) noexcept nogil
    void drain_pipe "ompy_drain_pipe"(int reader) noexcept nogil

peers_fence = not register_membarrier()


cdef uint32_t arm(Bell *bell, uint32_t how) noexcept nogil:
    cdef uint32_t word = load(&bell.word)
    exchange(&bell.armed, how)
    fence_everywhere()
    return word


cdef void futex_wait(Bell *bell, uint32_t word, long nanoseconds) noexcept nogil:
    wait_on_word(&bell.word, word, nanoseconds)


cdef void ring_bell(Bell *bell, int writer) noexcept nogil:
    cdef uint32_t how = exchange(&bell.armed, ARMED_NOT)
    if how == ARMED_NOT:
        return
    increment(&bell.word)
    futex_wake(&bell.word)
    if how == ARMED_PIPE and writer >= 0:
        signal_pipe(writer)


cdef class Doorbell:
    def __cinit__(self):
        self.reader = self.writer = -1

    def __init__(self, str backing="auto"):
        self.segment = create("ompy-doorbell", sizeof(Bell), backing)
        self.bell = <Bell *> self.segment.address
        self.reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    cpdef bytes card(self):
        return f"{self.segment.location().decode()} {os.getpid()}:{self.writer}".encode()

    cpdef int finalize(self) except -1:
        if self.bell != NULL:
            self.bell = NULL
            self.segment.close()
            os.close(self.reader)
            os.close(self.writer)
            self.reader = self.writer = -1
        return 0

    cdef void disarm(self) noexcept nogil:
        exchange(&self.bell.armed, ARMED_NOT)

    cdef void drain(self) noexcept nogil:
        drain_pipe(self.reader)

    cdef void ring(self) noexcept nogil:
        ring_bell(self.bell, self.writer)


cdef class RemoteDoorbell:
    def __cinit__(self):
        self.writer = -1

    def __dealloc__(self):
        if self.writer >= 0:
            close_descriptor(self.writer)

    def __init__(self, bytes card):
        bell, pipe = card.split(b" ")
        self.segment = attach(bell, sizeof(Bell))
        self.bell = <Bell *> self.segment.address
        pid, number = pipe.decode().split(":")
        try:
            self.writer = os.open(f"/proc/{int(pid)}/fd/{int(number)}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            pass                                 # a peer that sleeps in poll(2) then waits for its back-stop

    cdef void ring_now(self) noexcept nogil:
        ring_bell(self.bell, self.writer)

    cpdef int close(self) except -1:
        if self.bell != NULL:
            self.bell = NULL
            self.segment.close()
            if self.writer >= 0:
                os.close(self.writer)
                self.writer = -1
        return 0

cdef Doorbell mine = None


cpdef Doorbell own(str backing="auto"):
    """This process's doorbell, made at the first call."""
    global mine
    cdef Doorbell made
    if mine is None:
        made = Doorbell(backing)
        if mine is None:
            mine = made
        else:                                    # another thread's, who may sleep on it
            made.finalize()
    return mine


cpdef int disown() except -1:
    """Gives this process's doorbell back."""
    global mine
    if mine is not None:
        mine.finalize()
        mine = None
    return 0
