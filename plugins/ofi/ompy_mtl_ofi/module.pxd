# MPI's messages over an endpoint of libfabric's.
from ompy.mca.mtl cimport Mtl

from ompy_mtl_ofi.engine cimport Engine

cdef class OfiMtl(Mtl):
    cdef readonly Engine engine
