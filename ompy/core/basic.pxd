# The predefined datatypes, as numbers that C code can index tables with (MPI-4.1, 3.2.2, 5.1, 6.9.2).

# One code for each predefined datatype.  `Typemap.basic` holds one of these, or -1 for a mixture.
cdef enum BasicType:
    BASIC_PACKED, BASIC_BYTE, BASIC_AINT, BASIC_OFFSET, BASIC_COUNT,
    BASIC_CHAR, BASIC_WCHAR, BASIC_SIGNED_CHAR, BASIC_SHORT, BASIC_INT, BASIC_LONG, BASIC_LONG_LONG,
    BASIC_UNSIGNED_CHAR, BASIC_UNSIGNED_SHORT, BASIC_UNSIGNED, BASIC_UNSIGNED_LONG, BASIC_UNSIGNED_LONG_LONG,
    BASIC_FLOAT, BASIC_DOUBLE, BASIC_LONG_DOUBLE,
    BASIC_C_BOOL, BASIC_INT8_T, BASIC_INT16_T, BASIC_INT32_T, BASIC_INT64_T,
    BASIC_UINT8_T, BASIC_UINT16_T, BASIC_UINT32_T, BASIC_UINT64_T,
    BASIC_FLOAT16_T, BASIC_BFLOAT16_T,
    BASIC_C_FLOAT_COMPLEX, BASIC_C_DOUBLE_COMPLEX, BASIC_C_LONG_DOUBLE_COMPLEX,
    BASIC_CXX_BOOL, BASIC_CXX_FLOAT_COMPLEX, BASIC_CXX_DOUBLE_COMPLEX, BASIC_CXX_LONG_DOUBLE_COMPLEX,
    BASIC_CHARACTER, BASIC_LOGICAL, BASIC_INTEGER, BASIC_REAL, BASIC_DOUBLE_PRECISION, BASIC_COMPLEX, BASIC_DOUBLE_COMPLEX,
    BASIC_LOGICAL1, BASIC_LOGICAL2, BASIC_LOGICAL4, BASIC_LOGICAL8, BASIC_LOGICAL16,
    BASIC_INTEGER1, BASIC_INTEGER2, BASIC_INTEGER4, BASIC_INTEGER8, BASIC_INTEGER16,
    BASIC_REAL2, BASIC_REAL4, BASIC_REAL8, BASIC_REAL16,
    BASIC_COMPLEX4, BASIC_COMPLEX8, BASIC_COMPLEX16, BASIC_COMPLEX32,
    BASIC_SHORT_INT, BASIC_2INT, BASIC_LONG_INT, BASIC_FLOAT_INT, BASIC_DOUBLE_INT, BASIC_LONG_DOUBLE_INT,
    BASIC_2REAL, BASIC_2DOUBLE_PRECISION, BASIC_2INTEGER,
    BASIC_TYPES

# The groups of MPI-4.1, 6.9.2, which say what operations a type has.
cdef enum TypeGroup:
    GROUP_NONE, GROUP_C_INTEGER, GROUP_FORTRAN_INTEGER, GROUP_FLOATING, GROUP_LOGICAL, GROUP_COMPLEX, GROUP_BYTE,
    GROUP_MULTI_LANGUAGE, GROUP_PAIR

# What the machine computes with.  For a complex type: its parts; for a pair: its value.
cdef enum Element:
    ELEMENT_NONE,
    ELEMENT_INT8, ELEMENT_INT16, ELEMENT_INT32, ELEMENT_INT64, ELEMENT_INT128,
    ELEMENT_UINT8, ELEMENT_UINT16, ELEMENT_UINT32, ELEMENT_UINT64,
    ELEMENT_FLOAT16, ELEMENT_FLOAT, ELEMENT_DOUBLE, ELEMENT_LONG_DOUBLE, ELEMENT_FLOAT128,
    ELEMENTS

cdef struct Basic:
    const char *name                             # as MPI spells it, without MPI_
    TypeGroup group
    Element element
    Py_ssize_t size                              # bytes of data
    Py_ssize_t extent                            # sizeof, padding included
    Py_ssize_t alignment
    Py_ssize_t value_size                        # bytes of a pair's first member; of anything else, `size`
    Py_ssize_t index_offset                      # of a pair's second member, else 0

# The description of each code.
cdef Basic basics[BASIC_TYPES]
