# Who may send where (Puma, 5 and table 1).  Made by the PCT, kept out of the processes' reach, used by index.
#
#                                   any portal           one portal
#     any process of a group        GroupCapability      -
#     one process                   -                    PortalCapability
from libc.stdint cimport uint16_t, uint32_t

from ompy_puma.link cimport Link

cdef struct Member:
    uint32_t node
    uint16_t process                             # in that node's context table

cdef class Capability:
    cdef readonly uint32_t group                 # of the process or processes that it leads to


cdef class GroupCapability(Capability):
    cdef readonly uint32_t size
    cdef Member *members                         # by rank
    cdef list links                              # by rank; None before the first message


cdef class PortalCapability(Capability):
    cdef Member member
    cdef readonly uint16_t portal
    cdef Link link
