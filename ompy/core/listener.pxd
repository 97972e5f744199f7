# Who hears what the launcher says unasked, such as that a process is gone, while ranks wait for each other or only test.

# Let the listener hear.  Inside the engine: an exception from a signal handler would lose what was heard, or leave a lock
# behind.  Where another thread is there now, the next time will do.
cdef int listen() except -1
# The same, and the sources look at their peers, unless that was so a moment ago; for who only tests.
cdef int listen_in_time() except -1
# In a child made by fork: there is none.
cdef void forget_listener() noexcept
