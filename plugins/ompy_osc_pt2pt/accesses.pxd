# The origin's half, middle part: each access as an order.
from ompy.core.request cimport Request
from ompy.mca.osc cimport Access
from ompy_osc_pt2pt.header cimport Order
from ompy_osc_pt2pt.orders cimport Orders


cdef class Accesses(Orders):
    cdef Request order_accumulate(self, Access access, int kind)
    cdef Request change_there(self, Access access, Order *order)
    # Receives the answer to an order that fetches.
    cdef Request fetching(self, Access access, const Order *order)
    # An accumulate into this rank's own memory.
    cdef Request own_accumulate(self, Access access)
