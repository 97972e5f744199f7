# Addresses as memoryviews, for components in plain Python.

cpdef object view(size_t address, Py_ssize_t nbytes, bint readonly=*)
cpdef size_t address_of(object buffer) except? 0
