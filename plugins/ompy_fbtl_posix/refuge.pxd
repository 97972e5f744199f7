# A copy to or from pages of a file that ends, with -1, where the kernel has no page to give: SIGBUS.
#
# The handler is the process's, and only of faults in pages that the thread is copying to or from; whatever else there is goes
# to the handler that was there before.  Who has come since is found by `stand_ready`, and is the one before from then on.
cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <setjmp.h>
    #include <signal.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/types.h>

    struct ompy_refuge {
        sigjmp_buf back;
        char *low, *high;  /* of the pages */
    };

    /* This model needs no allocation at a thread's first look, which may be a handler's. */
    static __thread struct ompy_refuge *volatile ompy_refuge __attribute__((tls_model("initial-exec")));
    static struct sigaction ompy_bus_before;

    static void ompy_on_bus(int number, siginfo_t *info, void *context) {
        struct ompy_refuge *refuge = ompy_refuge;
        struct sigaction before = ompy_bus_before;
        char *place = info->si_addr;
        if (refuge && info->si_code > 0 && place >= refuge->low && place < refuge->high) siglongjmp(refuge->back, 1);
        /* It would come back here if it did the same. */
        memset(&ompy_bus_before, 0, sizeof ompy_bus_before);
        sigaction(SIGBUS, &before, NULL);
        if (info->si_code <= 0) raise(number);  /* somebody sent it: going on does not meet it again */
        (void) context;
    }

    static inline int ompy_stand_ready(void) {
        struct sigaction now, mine;
        if (sigaction(SIGBUS, NULL, &now) < 0) return -1;
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == ompy_on_bus) return 0;
        memset(&mine, 0, sizeof mine);
        mine.sa_sigaction = ompy_on_bus;
        mine.sa_flags = SA_SIGINFO | SA_NODEFER;
        ompy_bus_before = now;
        return sigaction(SIGBUS, &mine, NULL);
    }

    typedef ssize_t (*ompy_move)(void *pieces, char *memory, ssize_t nbytes, int reading);

    static ssize_t ompy_plain_move(void *place, char *memory, ssize_t nbytes, int reading) {
        if (reading) memcpy(memory, place, nbytes); else memcpy(place, memory, nbytes);
        return nbytes;
    }

    static ssize_t ompy_move_safely(char *low, char *high, void *move, void *pieces, char *memory, ssize_t nbytes,
                                    int reading) {
        struct ompy_refuge refuge;
        ssize_t moved;
        refuge.low = low;
        refuge.high = high;
        if (sigsetjmp(refuge.back, 0)) {
            ompy_refuge = NULL;
            return -1;
        }
        ompy_refuge = &refuge;
        moved = ((ompy_move) move)(pieces, memory, nbytes, reading);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        ompy_refuge = NULL;
        return moved;
    }
    """
    # Before copies, with the GIL; negative where there is no handler to be had.
    int stand_ready "ompy_stand_ready"()
    # `move`(pieces, memory, nbytes, reading) returns bytes moved; of what it touches, pages in [low, high) alone may be gone.
    Py_ssize_t move_safely "ompy_move_safely"(char *low, char *high, void *move, void *pieces, char *memory, Py_ssize_t nbytes,
                                              bint reading) noexcept nogil
    # For which `pieces` is where the bytes are.
    Py_ssize_t plain_move "ompy_plain_move"(void *place, char *memory, Py_ssize_t nbytes, bint reading) noexcept nogil
