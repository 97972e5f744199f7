# Sums and products of lengths and addresses: whether the result is too large for its type; else it is in its place.
cdef extern from *:
    bint multiply "__builtin_mul_overflow"(Py_ssize_t, Py_ssize_t, Py_ssize_t *) noexcept nogil
    bint add "__builtin_add_overflow"(Py_ssize_t, Py_ssize_t, Py_ssize_t *) noexcept nogil
    bint subtract "__builtin_sub_overflow"(Py_ssize_t, Py_ssize_t, Py_ssize_t *) noexcept nogil
