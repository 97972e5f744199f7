# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The engine's owner; see `owner.pxd`."""
import os
import sys
from _thread import get_ident

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <limits.h>
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    /* Which thread handles signals is not in CPython's interface.  The one place that knows where it stands; `find_signals`
       checks what it finds. */
    #ifndef Py_BUILD_CORE
    #define Py_BUILD_CORE 1
    #define OMPY_BUILD_CORE
    #endif
    #undef _PyGC_FINALIZED
    #include "internal/pycore_runtime.h"
    #ifdef OMPY_BUILD_CORE
    #undef Py_BUILD_CORE
    #endif
    static unsigned long *ompy_handling_thread(void) { return &_PyRuntime.main_thread; }
    #if PY_VERSION_HEX >= 0x030C0000
    static int *ompy_pending_signals(void) { return (int *) &_PyRuntime.signals.is_tripped; }
    #else
    static int *ompy_pending_signals(void) { return (int *) &_PyRuntime.ceval.signals_pending; }
    #endif

    static void ompy_await_change(uint32_t *word, uint32_t seen) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    static void ompy_announce_change(uint32_t *word) {
        __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
    """
    unsigned long *handling_thread "ompy_handling_thread"() noexcept
    int *pending_signals "ompy_pending_signals"() noexcept
    void await_change "ompy_await_change"(uint32_t *word, uint32_t seen) noexcept nogil
    void announce_change "ompy_announce_change"(uint32_t *word) noexcept nogil

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*function)(void *) noexcept, void *argument)

cdef uint32_t changes = 0                        # of the owner, while somebody waits
cdef unsigned long nowhere = 0
cdef int never = 0


cdef extern from *:
    """
    /* Called by the interpreter in its main thread, before the next bytecode. */
    static int ompy_look_at_signals(void *reminded) {
        *(int *) reminded = 0;
        return PyErr_CheckSignals();
    }
    """
    int look_at_signals "ompy_look_at_signals"(void *reminded) noexcept


cdef int find_signals() except -1:
    """Where the interpreter notes who handles signals.  If it is not there, handlers are not kept out."""
    threading = sys.modules.get("threading")
    engine.main = get_ident() if threading is None else threading.main_thread().ident
    engine.handling = handling_thread()
    engine.pending = pending_signals()
    if engine.handling[0] != engine.main:
        engine.handling = &nowhere
        engine.pending = &never
    engine.outside = engine.main
    return 0


cdef void remind() noexcept:
    if not engine.reminded and Py_AddPendingCall(look_at_signals, &engine.reminded) == 0:
        engine.reminded = True


cdef void forbid_handlers() noexcept:
    if this_thread() == engine.main:
        engine.outside = NOBODY
        engine.handling[0] = NOBODY


cdef void allow_handlers() noexcept:
    if this_thread() == engine.main:
        engine.outside = engine.main
        if not is_inside():
            engine.handling[0] = engine.main


cdef void wait_for_turn(uint64_t me) noexcept:
    cdef uint64_t number = engine.drawn
    cdef uint32_t seen
    engine.drawn += 1
    while engine.owner > NEXT or engine.served != number:
        seen = changes
        with nogil:
            await_change(&changes, seen)
    engine.served += 1
    take(me)


cdef void hand_over() noexcept:
    engine.owner = NEXT
    announce_change(&changes)


def in_child():
    # It has one thread, which may have been inside when it forked.
    if not is_inside():
        engine.owner = NOBODY
        engine.depth = 0
    engine.drawn = engine.served = 0
    engine.reminded = False
    find_signals()


find_signals()
os.register_at_fork(after_in_child=in_child)


cdef class Inside:
    """`with inside:` enters the engine and leaves it, for components in plain Python; it may be nested."""

    def __enter__(self):
        enter()

    def __exit__(self, kind, error, trace):
        leave()


inside = Inside()


def is_owned() -> bool:
    """Whether any thread is inside the engine, or about to be."""
    return engine.owner != NOBODY
