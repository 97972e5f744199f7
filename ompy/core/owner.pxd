# The engine's owner: one thread at a time is inside the engine, whatever lets the GIL go there.
#
# The GIL alone is no lock: a component in Python lets it go between any two bytecodes and in each system call, and a garbage
# collection may run a program's finaliser in the middle of anything.  So every way into the engine is a pair,
#
#     enter()                                  at once where nobody, or this thread, is inside; else waits for its turn
#     try:
#         ... requests, queues, components ...
#     finally:
#         leave()
#
# (in plain Python: `with inside:`), which costs a look and three stores where there is no contest, and may be nested.  Who
# waits sleeps without the GIL and is served in the order of arrival.  Waits (`ompy/core/progress.pxd`) are outside: they own
# the engine for one round at a time.
#
#     thread A   enter, send ... GIL goes ... sent, leave: hands over      enter: after B
#     thread B             enter: waits ........................ its turn, leave
#
# Signals: while its thread is inside, the interpreter does not take it for the one that runs signal handlers, so that no
# handler, and no exception from one, interrupts what is half done.  A signal that comes meanwhile is handled when its thread
# is next in Python outside the engine, or in a wait, between two rounds.  Between `forbid_handlers` and `allow_handlers` it is
# not taken for that one outside either.
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdint.h>
    static inline uint64_t ompy_this_thread(void) { return (uint64_t) pthread_self(); }
    """
    uint64_t this_thread "ompy_this_thread"() noexcept nogil
    bint probable "__builtin_expect"(bint condition, long expected) noexcept nogil

cdef enum:
    NOBODY = 0
    NEXT = 1                        # whoever has waited longest

cdef struct Ownership:
    uint64_t owner                  # a thread, NOBODY or NEXT
    int depth                       # of the owner's nested entries
    uint64_t drawn, served          # numbers of those who have had to wait
    uint64_t main                   # the thread that runs signal handlers
    uint64_t outside                # the same, or NOBODY while handlers are forbidden outside, too
    unsigned long *handling         # the interpreter's note of it
    int *pending                    # not zero: a signal has come
    int reminded                    # the interpreter has been told to look

cdef Ownership engine

cdef void wait_for_turn(uint64_t me) noexcept
cdef void hand_over() noexcept
cdef void remind() noexcept

# Whether the interpreter runs signal handlers in the main thread while that is outside; called by any thread.  Who allows them
# has the interpreter look for what has come meanwhile.
cdef void forbid_handlers() noexcept
cdef void allow_handlers() noexcept


cdef inline void take(uint64_t me) noexcept:
    engine.owner = me
    engine.depth = 1
    if probable(me == engine.main, 1):
        engine.handling[0] = 0


cdef inline void enter() noexcept:
    cdef uint64_t me = this_thread()
    if probable(engine.owner == NOBODY, 1):
        take(me)
    elif engine.owner == me:
        engine.depth += 1
    else:
        wait_for_turn(me)


# False where anybody, this thread too, is inside or waits for his turn.
cdef inline bint try_enter() noexcept:
    if engine.owner != NOBODY:
        return False
    take(this_thread())
    return True


cdef inline void leave() noexcept:
    engine.depth -= 1
    if probable(engine.depth == 0, 1):
        if probable(engine.owner == engine.main, 1):
            engine.handling[0] = engine.outside
            if probable(engine.pending[0] and engine.outside, 0):
                remind()
        engine.owner = NOBODY
        if probable(engine.drawn != engine.served, 0):
            hand_over()


# Is this thread inside?
cdef inline bint is_inside() noexcept:
    return engine.owner == this_thread()
