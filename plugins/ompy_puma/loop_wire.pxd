# Nodes of one process on a network that a person steps: for tests, and to look on.
#
#     network = Network()
#     kernels = [QKernel(node, network.wire(node)) for node in range(3)]
#     ... sends ...
#     network.run()                   packets, oldest first, until none is left
from libc.stdint cimport uint32_t, uint64_t

from ompy_puma.kernel cimport QKernel
from ompy_puma.link cimport Link, Wire

cdef struct Packet:
    Packet *next
    uint32_t source, target
    size_t length
    # the bytes follow


cdef class Network:
    cdef readonly size_t packet_size, eager_size
    cdef readonly bint can_fetch
    cdef readonly int capacity                   # packets under way to one node before it takes no more
    cdef dict wires                              # node -> LoopWire
    cdef Packet *first
    cdef Packet *last
    cdef readonly uint64_t carried
    cdef readonly bint fail_fetches              # for tests of what happens then
    cdef readonly bint calls_back                # fetches of memory that was taken back can be made to fail


cdef class LoopWire(Wire):
    cdef readonly Network network
    cdef readonly uint32_t node
    cdef dict offered                            # handle -> (address, length)
    cdef uint64_t offers
    cdef readonly list called_back               # (node that may not fetch, address, length)
    cdef int waiting                             # packets under way to this node


cdef class LoopLink(Link):
    cdef Network network
    cdef LoopWire source, target
