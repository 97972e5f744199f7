# One file, by components of four frameworks:
#
#     access --- pointer: INDIVIDUAL here, SHARED by sharedfp ---> position in the view
#                 |
#                 |-- independent ------------------> fbtl       atomic mode: under a lock of the bytes' whole reach
#                 `-- collective ----> fcoll -------> fbtl
#     open, close, sizes, sync -----> fs
from ompy.core.file cimport Access
from ompy.mca.fbtl cimport FbtlModule
from ompy.mca.fcoll cimport FcollModule
from ompy.mca.fs cimport FsModule
from ompy.mca.io cimport IoModule
from ompy.mca.sharedfp cimport SharedfpModule


cdef class Ompio(IoModule):
    cdef FsModule fs
    cdef FbtlModule fbtl
    cdef FcollModule fcoll
    cdef SharedfpModule sharedfp
    cdef Py_ssize_t pointer                      # this process's, in etypes

    # Find the access's bytes in the view, and move the pointer that it goes by.
    cdef int place(self, Access access) except -1
    # What goes on by itself is over, as far as what comes must stand behind it.
    cdef int drain(self) except -1
    cdef Py_ssize_t together(self, Access access) except -1
    # Both pointers, while nobody writes yet.
    cdef int go_to_end(self) except -1
    cdef int select(self) except -1
    cdef int abandon(self) except -1
