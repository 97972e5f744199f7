# Loops over two arrays of one machine type, which `Reduction` chooses from by operation and type.
from ompy.core.basic cimport BASIC_TYPES, ELEMENTS

# `inout[i] = input[i] op inout[i]` for `count` elements that lie one extent apart.
ctypedef void (*Kernel)(const void *input, void *inout, Py_ssize_t count) noexcept nogil

cdef enum Loop:
    LOOP_MAX, LOOP_MIN, LOOP_SUM, LOOP_PROD, LOOP_LAND, LOOP_LOR, LOOP_LXOR, LOOP_BAND, LOOP_BOR, LOOP_BXOR,
    LOOP_COMPLEX_SUM, LOOP_COMPLEX_PROD,
    LOOPS

cdef Kernel loops[LOOPS][ELEMENTS]
cdef Kernel backward_loops[LOOPS][ELEMENTS]      # from the last element on; NULL where there is none
# Of pairs of a value and its index: the larger, the smaller value.
cdef Kernel maximum_locations[BASIC_TYPES]
cdef Kernel minimum_locations[BASIC_TYPES]
