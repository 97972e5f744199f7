# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Algorithms as objects that Python dictionaries can hold."""


cdef class Builder:
    """A C function that writes a schedule."""


cdef Builder builder(Build build):
    cdef Builder made = Builder.__new__(Builder)
    made.build = build
    return made
