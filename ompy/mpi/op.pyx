# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Reduction operations (MPI-4.1, 6.9)."""

from ompy.core.operation cimport Operation, failures_kept, keep_failure, predefined, raise_failure
from ompy.core.typemap cimport Typemap
from ompy.mpi.buffers cimport Spec, parse_recv, parse_send, release
from ompy.mpi.datatype cimport datatype_of
from ompy.mpi.handle cimport Handle, forget, predefine
from ompy.mpi.memory cimport buffer_over

from ompy.core.errors import ERR_OP, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over

# Operations of the program's that may exist at a time: mpi4py's limit, which programs test for.
USER_OPERATIONS = 32

cdef int user_operations = 0


cdef class UserOperation(Operation):
    """A reduction that the program wrote: function(input, inout, datatype), on buffers (MPI-4.1, 6.9.5).

    What it raises goes to whoever called the collective on this rank, when that is over (`keep_failure`).
    """
    cdef readonly object function
    cdef bint counted                            # among `user_operations`

    def __dealloc__(self):
        self.leave()

    cdef int leave(self) noexcept:
        global user_operations
        user_operations -= self.counted
        self.counted = False
        return 0

    cdef int reduce(self, char *input, char *inout, Py_ssize_t count, Typemap typemap) except -1:
        cdef Py_ssize_t nbytes = count * typemap.extent
        left = buffer_over(<size_t> input, nbytes, None, False)
        right = buffer_over(<size_t> inout, nbytes, None, False)
        try:
            self.function(left, right, datatype_of(typemap))
        except BaseException as error:
            keep_failure(error)
        return 0

    cpdef bint defined_on(self, Typemap typemap) except -1:
        return True


# -- what the predefined operations do to objects

def larger(x, y):
    return y if y > x else x


def smaller(x, y):
    return y if y < x else x


def total(x, y):
    return x + y


def product(x, y):
    return x * y


def bitwise_and(x, y):
    return x & y


def bitwise_or(x, y):
    return x | y


def bitwise_xor(x, y):
    return x ^ y


def logical_and(x, y):
    return bool(x) and bool(y)


def logical_or(x, y):
    return bool(x) or bool(y)


def logical_xor(x, y):
    return bool(x) != bool(y)


def larger_with_place(x, y):
    value, place = x
    other_value, other_place = y
    if value > other_value or (not other_value > value and not other_place < place):
        return value, place
    return other_value, other_place


def smaller_with_place(x, y):
    value, place = x
    other_value, other_place = y
    if value < other_value or (not other_value < value and not other_place < place):
        return value, place
    return other_value, other_place


def replacing(x, y):
    return y


def keeping(x, y):
    return x


cdef dict on_objects = {
    "MAX": larger,
    "MIN": smaller,
    "SUM": total,
    "PROD": product,
    "LAND": logical_and,
    "BAND": bitwise_and,
    "LOR": logical_or,
    "BOR": bitwise_or,
    "LXOR": logical_xor,
    "BXOR": bitwise_xor,
    "MAXLOC": larger_with_place,
    "MINLOC": smaller_with_place,
    "REPLACE": replacing,
    "NO_OP": keeping,
}


cdef inline Operation checked(Op op):
    if op.operation is None:
        raise MPIException(ERR_OP, "op: an operation expected, not OP_NULL")
    return op.operation


cdef class Op(Handle):
    """
    How values are combined: a predefined operation, or one of the program's (MPI-4.1, 6.9).

    Called with two objects, it returns what it makes of them; the collectives of objects do that.
    """

    def __cinit__(self, Op op=None):
        if op is not None:
            self.operation = op.operation
            self.adopted = op.adopted

    cdef type family(self):
        return Op

    cdef object core(self):
        return self.operation

    cdef int become(self, object core) except -1:
        self.operation = core
        self.adopted = True
        return 0

    def __call__(self, x, y):
        if self.operation is None:
            raise ValueError("op: OP_NULL combines nothing")
        if isinstance(self.operation, UserOperation):
            return (<UserOperation> self.operation).function(x, y, None)
        return on_objects[self.operation.name](x, y)

    def __reduce__(self):
        if not isinstance(self.operation, UserOperation):
            return Handle.__reduce__(self)
        if self.adopted:
            raise ValueError("op: an operation that came from an integer handle can't be pickled: its function may be "
                             "another library's")
        operation = <UserOperation> self.operation
        return type(self).Create, (operation.function, operation.commutative)

    @classmethod
    def Create(cls, function, commute: bool = False) -> Op:
        """An operation of the program's own (MPI-4.1, 6.9.5).

        Parameters:
            function: function(input, inout, datatype) that leaves `input[i] op inout[i]` in `inout`, both writable buffers
                of whole extents of the datatype.  For the collectives of objects it is called as function(x, y, None) and
                returns the result.  It must be associative.
            commute: whether it is commutative too; if not, operands are combined in the order of ranks.

        Raises:
            RuntimeError: so many operations exist already; `Free` those that are no longer needed.
        """
        global user_operations
        cdef UserOperation operation
        cdef Op op
        if not callable(function):
            raise TypeError(f"function: a callable expected, not {type(function).__name__}")
        if user_operations >= USER_OPERATIONS:
            raise RuntimeError(f"op: {USER_OPERATIONS} operations of the program's exist already: free some")
        operation = UserOperation.__new__(UserOperation)
        operation.function = function
        operation.commutative = bool(commute)
        operation.name = getattr(function, "__name__", type(function).__name__)
        op = cls.__new__(cls)
        op.operation = operation
        operation.counted = True
        user_operations += 1
        return op

    def Free(self) -> None:
        """Give an operation of the program's up; collectives under way are not affected (MPI-4.1, 6.9.5).

        Raises:
            Exception: ERR_OP for a predefined operation and for OP_NULL.
        """
        if checked(self).predefined:
            raise MPIException(ERR_OP, f"op: the predefined {self.operation.name} can't be freed")
        (<UserOperation> self.operation).leave()
        forget(self)
        self.operation = None

    def Is_commutative(self) -> bool:
        """Whether the order of the operands does not matter (MPI-4.1, 6.9.7)."""
        return checked(self).commutative

    @property
    def is_commutative(self) -> bool:
        """Whether the order of the operands does not matter (MPI-4.1, 6.9.7)."""
        return checked(self).commutative

    @property
    def is_predefined(self) -> bool:
        """Whether it is predefined; OP_NULL is (MPI-4.1, 6.9.2)."""
        return self.operation is None or self.operation.predefined

    def Reduce_local(self, inbuf, inoutbuf) -> None:
        """Combine two buffers of this process: `inoutbuf[i] = inbuf[i] op inoutbuf[i]` (MPI-4.1, 6.9.7).

        Raises:
            ValueError: the buffers hold different numbers of elements.
            Exception: ERR_OP for a datatype that the operation is not defined on.
        """
        cdef Operation operation = checked(self)
        cdef Spec left, right
        parse_recv(inoutbuf, &right)
        try:
            parse_send(inbuf, &left)
            try:
                if left.count != right.count or left.typemap != right.typemap:
                    raise ValueError(f"inbuf, inoutbuf: as many elements of one datatype expected, not {left.count} and "
                                     f"{right.count}")
                operation.reduce(<char *> left.address, <char *> right.address, right.count, <Typemap> right.typemap)
                if failures_kept:
                    raise_failure()
            except MPIError as error:
                hand_over(error, None)
            finally:
                release(&left)
        finally:
            release(&right)


cdef Op handle_on(str name):
    cdef Op op = Op.__new__(Op)
    op.operation = predefined(name)
    return predefine(op, name)


OP_NULL = predefine(Op.__new__(Op), "OP_NULL")
MAX = handle_on("MAX")
MIN = handle_on("MIN")
SUM = handle_on("SUM")
PROD = handle_on("PROD")
LAND = handle_on("LAND")
BAND = handle_on("BAND")
LOR = handle_on("LOR")
BOR = handle_on("BOR")
LXOR = handle_on("LXOR")
BXOR = handle_on("BXOR")
MAXLOC = handle_on("MAXLOC")
MINLOC = handle_on("MINLOC")
REPLACE = handle_on("REPLACE")
NO_OP = handle_on("NO_OP")

__all__ = ["OP_NULL", "Op", *on_objects]
