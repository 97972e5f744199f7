# Who hears what the launcher says unasked, such as that a process is gone, while ranks wait for each other or only test.

# Let the listener hear.  Inside the engine: an exception from a signal handler would lose what was heard, or leave a lock
# behind.  Where another thread is there now, the next time will do.
cdef int listen() except -1
# The same, and the sources look at their peers, unless that was so a moment ago.
cdef int listen_in_time() except -1

cdef unsigned int calls
cdef enum:
    CALLS_BETWEEN = 16                           # looks at the clock

# For who waits for nothing, only tests or only sends, and would not hear otherwise.
cdef inline int listen_now_and_then() except -1:
    global calls
    calls += 1
    return listen_in_time() if calls % CALLS_BETWEEN == 0 else 0

# In a child made by fork: there is none.
cdef void forget_listener() noexcept
