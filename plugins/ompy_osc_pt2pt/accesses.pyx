# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Put, get and accumulates as orders; on this rank's own memory, at once."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.convertor cimport copy_typed, pack_all
from ompy.core.request cimport Request
from ompy.core.typemap cimport predefined
from ompy.core.window cimport FLAVOR_DYNAMIC
from ompy.mca.accumulate cimport NO_OP, check_operation, combine, swap_if_equal
from ompy.mca.osc cimport Access
from ompy.mca.pml cimport pml
from ompy_osc_pt2pt.header cimport (
    KIND_ACCUMULATE, KIND_COMPARE_AND_SWAP, KIND_GET, KIND_GET_ACCUMULATE, KIND_PUT, Order,
)
from ompy_osc_pt2pt.orders cimport Orders
from ompy_osc_pt2pt.service cimport operation_code


cdef class Accesses(Orders):
    """How this rank reads and writes the others' memory."""

    cpdef Request put(self, Access access):
        """Write to the target's memory; a short put is complete here at once."""
        cdef Order order
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        if access.target == self.rank:
            copy_typed(<char *> access.origin_address, access.origin_count, access.origin_type,
                       self.service.locate(access.displacement, access.target_count, access.target_type),
                       access.target_count, access.target_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_PUT
        return self.promise(access, self.change_there(access, &order))

    cpdef Request get(self, Access access):
        """Read the target's memory, straight into the program's."""
        cdef Order order
        cdef Request request
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        if access.target == self.rank:
            copy_typed(self.service.locate(access.displacement, access.target_count, access.target_type),
                       access.target_count, access.target_type,
                       <char *> access.origin_address, access.origin_count, access.origin_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_GET
        description = self.describe(&order, access)
        order.number = self.draw_number()
        request = pml.irecv(access.origin_address, access.origin_count, access.origin_type, access.target, order.number + 1,
                            self.window.communicator)
        request.buffer = access.owner
        self.send_order(access.target, &order, description, 0, 0, None)
        self.keep(access.target, request)
        # What a dynamic target has not attached is told with the next answer.
        self.ordered[access.target] += self.window.flavor == FLAVOR_DYNAMIC
        return self.promise(access, request)

    cpdef Request accumulate(self, Access access):
        """Combine the origin's data into the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        check_operation(access)
        if access.target == self.rank:
            return self.own_accumulate(access)
        return self.promise(access, self.order_accumulate(access, KIND_ACCUMULATE))

    cdef Request order_accumulate(self, Access access, int kind):
        cdef Order order
        memset(&order, 0, sizeof(order))
        order.kind = kind
        order.operation = operation_code(access.operation)
        return self.change_there(access, &order)

    cdef Request change_there(self, Access access, Order *order):
        """Send the order, whose only answer is a flush's."""
        cdef Request request = self.send_with_data(access, order)
        self.receive_answer(access.target, order)
        return request

    cpdef Request get_accumulate(self, Access access):
        """Combine, and fetch what was there before; with NO_OP the origin's side is not looked at."""
        cdef Order order
        cdef bint reads = access.operation is NO_OP
        cdef Py_ssize_t nbytes = access.result_count * access.result_type.size
        self.may_access(access, nbytes)
        if not reads:
            self.may_access(access, access.origin_count * access.origin_type.size)
        if nbytes == 0:
            return None
        if not reads:
            check_operation(access)
        if access.target == self.rank:
            place = <size_t> self.service.locate(access.displacement, access.target_count, access.target_type)
            # Origin and result may not overlap, so the order of the two copies is free.
            copy_typed(<char *> <size_t> place, access.target_count, access.target_type,
                       <char *> access.result_address, access.result_count, access.result_type)
            return None if reads else self.own_accumulate(access)
        memset(&order, 0, sizeof(order))
        order.kind = KIND_GET_ACCUMULATE
        order.operation = operation_code(access.operation)
        if not reads:
            # The number is drawn when the order is sent, and the answer can't come before it.
            self.send_with_data(access, &order)
        else:
            description = self.describe(&order, access)
            self.number_order(access.target, &order)
            self.send_order(access.target, &order, description, 0, 0, None)
            self.ordered[access.target] += 1
        return self.promise(access, self.fetching(access, &order))

    cdef Request fetching(self, Access access, const Order *order):
        cdef Request request = pml.irecv(access.result_address, access.result_count, access.result_type, access.target,
                                         order.number + 1, self.window.communicator)
        request.buffer = access.owner
        self.keep(access.target, request)
        self.receive_answer(access.target, order)
        return request

    cpdef Request compare_and_swap(self, Access access):
        """Replace one element if it equals another, and fetch what was there."""
        cdef Order order
        cdef Py_ssize_t nbytes = access.origin_type.size
        cdef char *place
        access.target_count = access.result_count = 1
        access.target_type = access.result_type = access.origin_type
        self.may_access(access, nbytes)
        pair = bytearray(2 * nbytes)
        pack_all(<char *> access.compare_address, 1, access.origin_type, PyByteArray_AS_STRING(pair))
        pack_all(<char *> access.origin_address, 1, access.origin_type, PyByteArray_AS_STRING(pair) + nbytes)
        if access.target == self.rank:
            place = self.service.locate(access.displacement, 1, access.origin_type)
            copy_typed(place, 1, access.origin_type, <char *> access.result_address, 1, access.origin_type)
            swap_if_equal(PyByteArray_AS_STRING(pair), PyByteArray_AS_STRING(pair) + nbytes, place, access.origin_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_COMPARE_AND_SWAP
        description = self.describe(&order, access)
        self.number_order(access.target, &order)
        order.length = 2 * nbytes
        self.send_order(access.target, &order, description, <size_t> PyByteArray_AS_STRING(pair), 2 * nbytes,
                        predefined(BASIC_BYTE))
        self.ordered[access.target] += 1
        return self.promise(access, self.fetching(access, &order))

    cdef Request own_accumulate(self, Access access):
        cdef char *place = self.service.locate(access.displacement, access.target_count, access.target_type)
        packed = bytearray(access.origin_count * access.origin_type.size)
        pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        combine(access.operation, PyByteArray_AS_STRING(packed), place, access.target_count, access.target_type)
        return None
