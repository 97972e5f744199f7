# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-O2
"""Datatypes: predefined, derived, packed (MPI-4.1, chapter 5)."""

from cpython.array cimport array, clone
from cpython.number cimport PyNumber_Index

from ompy.core.basic cimport BASIC_TYPES
from ompy.core.typemap cimport Typemap, create_struct, predefined
from ompy.mpi.handle cimport Handle, blank, forget, predefine
from ompy.mpi.packing cimport Packing, checked

from ompy.core.basic import describe
from ompy.core.errors import ERR_ARG, ERR_TYPE, MPIError
from ompy.mpi import attributes
from ompy.mpi.description import (
    COMBINER_CONTIGUOUS,
    COMBINER_DARRAY,
    COMBINER_DUP,
    COMBINER_F90_COMPLEX,
    COMBINER_F90_INTEGER,
    COMBINER_F90_REAL,
    COMBINER_HINDEXED,
    COMBINER_HINDEXED_BLOCK,
    COMBINER_HVECTOR,
    COMBINER_INDEXED,
    COMBINER_INDEXED_BLOCK,
    COMBINER_NAMED,
    COMBINER_RESIZED,
    COMBINER_STRUCT,
    COMBINER_SUBARRAY,
    COMBINER_VECTOR,
    COMBINERS,
    Description,
)
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.fortran_kinds import complex_name, integer_name, name_of_size, real_name
from ompy.mpi.raising import hand_over
from ompy.mpi.type_codes import ALIASES, C_NAMES, F_NAMES, NAMES, codes_of

# Order of an array's dimensions in memory; values follow Open MPI's mpi.h, here and below.
ORDER_C = 0
ORDER_FORTRAN = 1
ORDER_F = ORDER_FORTRAN

DISTRIBUTE_BLOCK = 0
DISTRIBUTE_CYCLIC = 1
DISTRIBUTE_NONE = 2
DISTRIBUTE_DFLT_DARG = -1


cdef object description_of(Typemap typemap):
    cdef object kept = typemap.description
    if type(kept) is tuple:
        combiner, base, *values = kept
        typemap.description = Description(combiner, tuple(values), [base])
    elif kept is None:
        # Made by a component, not by a constructor of this layer.
        typemap.description = Description(COMBINER_DUP, (), [typemap.create_dup()])
    return typemap.description


cdef Datatype new_handle(type cls, Typemap typemap):
    cdef Datatype made = blank(cls)
    made.typemap = typemap
    return made


cdef Datatype borrow(Typemap typemap):
    cdef Datatype made = datatype_of(typemap)
    if not made.constant:
        made.borrowed = True
    return made


# A constructor of the core, called with a recipe: (combiner, base, arguments ...).
ctypedef Typemap (*Constructor)(Typemap base, tuple recipe)


cdef Datatype derive(Datatype datatype, Constructor constructor, tuple recipe):
    """What a constructor makes of the datatype.  The recipe is its description until somebody asks for that."""
    cdef Typemap made
    try:
        made = constructor(<Typemap> recipe[1], recipe)
    except MPIError as error:
        hand_over(error, None)
    made.description = recipe
    return new_handle(type(datatype), made)


cdef Typemap duplicated(Typemap base, tuple recipe):
    return base.create_dup()


cdef Typemap contiguous(Typemap base, tuple recipe):
    return base.create_contiguous(recipe[2])


cdef Typemap vector(Typemap base, tuple recipe):
    return base.create_vector(recipe[2], recipe[3], recipe[4])


cdef Typemap hvector(Typemap base, tuple recipe):
    return base.create_hvector(recipe[2], recipe[3], recipe[4])


cdef Typemap indexed(Typemap base, tuple recipe):
    return base.create_indexed(recipe[2], recipe[3])


cdef Typemap hindexed(Typemap base, tuple recipe):
    return base.create_hindexed(recipe[2], recipe[3])


cdef Typemap indexed_block(Typemap base, tuple recipe):
    return base.create_indexed_block(recipe[2], recipe[3])


cdef Typemap hindexed_block(Typemap base, tuple recipe):
    return base.create_hindexed_block(recipe[2], recipe[3])


cdef Typemap subarray(Typemap base, tuple recipe):
    cdef array sizes = recipe[2], subsizes = recipe[3], starts = recipe[4]
    return base.box(<int> len(sizes), <Py_ssize_t *> sizes.data.as_longlongs, <Py_ssize_t *> subsizes.data.as_longlongs,
                    <Py_ssize_t *> starts.data.as_longlongs, is_fortran(recipe[5]))


cdef Typemap darray(Typemap base, tuple recipe):
    return base.create_darray(recipe[2], recipe[3], recipe[4], recipe[5], recipe[6], recipe[7], is_fortran(recipe[8]))


cdef Typemap resized(Typemap base, tuple recipe):
    return base.create_resized(recipe[2], recipe[3])


cdef bint is_fortran(object order) except -1:
    if order != ORDER_C and order != ORDER_FORTRAN:
        raise MPIException(ERR_ARG, f"order: ORDER_C or ORDER_FORTRAN expected, not {order}")
    return order == ORDER_FORTRAN


cdef object integer(str name, object value):
    if type(value) is int:
        return value
    try:
        return PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"{name}: an integer expected, not {type(value).__name__}") from None


# What `integers` makes others of.
cdef array EMPTY = array("q")


cdef array integers(str name, object values, Py_ssize_t expected=-1):
    """A sequence argument as 64-bit integers, which is how a description keeps it."""
    cdef array converted
    cdef Py_ssize_t place, number
    try:
        if type(values) is list or type(values) is tuple:
            converted = clone(EMPTY, len(values), False)
            for place in range(len(converted)):
                number = values[place]
                converted.data.as_longlongs[place] = number
        else:
            converted = array("q", values)
    except TypeError:
        raise TypeError(f"{name}: a sequence of integers expected, not {values!r}") from None
    if expected >= 0 and len(converted) != expected:
        raise ValueError(f"{name}: {expected} items expected, not {len(converted)}")
    return converted


cdef class Datatype(Packing):
    """
    How data lies in memory: a predefined type, or one derived from others (MPI-4.1, 5.1).

    Sizes, extents and displacements that are not in elements are in bytes.  Constructors take any sequence of integers.
    Methods of DATATYPE_NULL raise `Exception` with ERR_TYPE; constructors raise it with ERR_COUNT or ERR_ARG for numbers
    that make no sense, and ValueError for sequences of different lengths.
    """

    def __cinit__(self, Datatype datatype=None):
        if datatype is not None:
            self.typemap = datatype.typemap

    cdef type family(self):
        return Datatype

    cdef object core(self):
        return self.typemap

    cdef int become(self, object core) except -1:
        self.typemap = core
        return 0

    cdef int dispose(self) except -1:
        if description_of(self.typemap).predefined:
            self.typemap = None
        else:
            self.Free()
        return 0

    def __reduce__(self):
        if self.typemap is None or self.is_named:
            return Handle.__reduce__(self)
        return _datatype_create, (*self.decode(), True)

    # -- what it is

    def Get_size(self) -> int:
        """Bytes of data in one element, without gaps (MPI-4.1, 5.1.5)."""
        return checked(self).size

    @property
    def size(self) -> int:
        """Bytes of data in one element (MPI-4.1, 5.1.5)."""
        return checked(self).size

    def Get_extent(self) -> tuple:
        """Lower bound, and bytes from one element to the next (MPI-4.1, 5.1.7)."""
        cdef Typemap typemap = checked(self)
        return typemap.lower_bound, typemap.extent

    @property
    def extent(self) -> int:
        """Bytes from one element to the next (MPI-4.1, 5.1.7)."""
        return checked(self).extent

    @property
    def lb(self) -> int:
        """Lower bound, in bytes (MPI-4.1, 5.1.7)."""
        return checked(self).lower_bound

    @property
    def ub(self) -> int:
        """Upper bound, in bytes (MPI-4.1, 5.1.7)."""
        cdef Typemap typemap = checked(self)
        return typemap.lower_bound + typemap.extent

    def Get_true_extent(self) -> tuple:
        """Offset of the first byte of data, and bytes from there to the last (MPI-4.1, 5.1.8)."""
        cdef Typemap typemap = checked(self)
        return typemap.true_lower_bound, typemap.true_extent

    @property
    def true_extent(self) -> int:
        """Bytes from the first to the last byte of data (MPI-4.1, 5.1.8)."""
        return checked(self).true_extent

    @property
    def true_lb(self) -> int:
        """Offset of the first byte of data (MPI-4.1, 5.1.8)."""
        return checked(self).true_lower_bound

    @property
    def true_ub(self) -> int:
        """Offset after the last byte of data (MPI-4.1, 5.1.8)."""
        cdef Typemap typemap = checked(self)
        return typemap.true_lower_bound + typemap.true_extent

    # -- constructors

    def Dup(self) -> Datatype:
        """A new datatype of the same layout; attributes are copied as their keys say (MPI-4.1, 5.1.10)."""
        cdef Datatype made = derive(self, duplicated, (COMBINER_DUP, checked(self)))
        description = description_of(self.typemap)
        description_of(made.typemap).codes = description.codes
        if description.attributes:
            attributes.copy_attrs(self, description.attributes, made.typemap.description.attributes)
        return made

    def Create_dup(self) -> Datatype:
        """A new datatype of the same layout: `Dup` (MPI-4.1, 5.1.10)."""
        return self.Dup()

    def Create_contiguous(self, count: int) -> Datatype:
        """Type of `count` elements, one after the other (MPI-4.1, 5.1.2)."""
        return derive(self, contiguous, (COMBINER_CONTIGUOUS, checked(self), integer("count", count)))

    def Create_vector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Type of `count` blocks of `blocklength` elements that begin `stride` elements apart (MPI-4.1, 5.1.2)."""
        return derive(self, vector, (COMBINER_VECTOR, checked(self), integer("count", count),
                      integer("blocklength", blocklength), integer("stride", stride)))

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Type of `count` blocks of `blocklength` elements that begin `stride` bytes apart (MPI-4.1, 5.1.2)."""
        return derive(self, hvector, (COMBINER_HVECTOR, checked(self), integer("count", count),
                      integer("blocklength", blocklength), integer("stride", stride)))

    def Create_indexed(self, blocklengths, displacements) -> Datatype:
        """Blocks of `blocklengths[i]` elements at `displacements[i]` elements (MPI-4.1, 5.1.2)."""
        lengths = integers("blocklengths", blocklengths)
        offsets = integers("displacements", displacements, len(lengths))
        return derive(self, indexed, (COMBINER_INDEXED, checked(self), lengths, offsets))

    def Create_hindexed(self, blocklengths, displacements) -> Datatype:
        """Blocks of `blocklengths[i]` elements at `displacements[i]` bytes (MPI-4.1, 5.1.2)."""
        lengths = integers("blocklengths", blocklengths)
        offsets = integers("displacements", displacements, len(lengths))
        return derive(self, hindexed, (COMBINER_HINDEXED, checked(self), lengths, offsets))

    def Create_indexed_block(self, blocklength: int, displacements) -> Datatype:
        """Blocks of `blocklength` elements at `displacements[i]` elements (MPI-4.1, 5.1.2)."""
        length = integer("blocklength", blocklength)
        offsets = integers("displacements", displacements)
        return derive(self, indexed_block, (COMBINER_INDEXED_BLOCK, checked(self), length, offsets))

    def Create_hindexed_block(self, blocklength: int, displacements) -> Datatype:
        """Blocks of `blocklength` elements at `displacements[i]` bytes (MPI-4.1, 5.1.2)."""
        length = integer("blocklength", blocklength)
        offsets = integers("displacements", displacements)
        return derive(self, hindexed_block, (COMBINER_HINDEXED_BLOCK, checked(self), length, offsets))

    @classmethod
    def Create_struct(cls, blocklengths, displacements, datatypes) -> Datatype:
        """Blocks of `blocklengths[i]` elements of `datatypes[i]` at `displacements[i]` bytes (MPI-4.1, 5.1.2)."""
        cdef Typemap made
        lengths = integers("blocklengths", blocklengths)
        offsets = integers("displacements", displacements, len(lengths))
        types = [typemap_of(datatype) for datatype in datatypes]
        if len(types) != len(lengths):
            raise ValueError(f"datatypes: {len(lengths)} items expected, not {len(types)}")
        try:
            made = create_struct(lengths, offsets, types)
        except MPIError as error:
            hand_over(error, None)
        made.description = Description(COMBINER_STRUCT, (lengths, offsets), types)
        return new_handle(cls, made)

    def Create_subarray(self, sizes, subsizes, starts, order: int = ORDER_C) -> Datatype:
        """The box of `subsizes` elements at `starts` in an array of `sizes` elements (MPI-4.1, 5.1.3)."""
        extents = integers("sizes", sizes)
        dimensions = len(extents)
        return derive(self, subarray, (COMBINER_SUBARRAY, checked(self), extents, integers("subsizes", subsizes, dimensions),
                      integers("starts", starts, dimensions), integer("order", order)))

    def Create_darray(self, size: int, rank: int, gsizes, distribs, dargs, psizes, order: int = ORDER_C) -> Datatype:
        """The part of process `rank` of `size` in an array of `gsizes` elements (MPI-4.1, 5.1.4).

        Parameters:
            distribs: DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC or DISTRIBUTE_NONE for each dimension.
            dargs: elements in a block for each dimension, or DISTRIBUTE_DFLT_DARG.
            psizes: processes in each dimension of the grid.
        """
        extents = integers("gsizes", gsizes)
        dimensions = len(extents)
        return derive(self, darray, (COMBINER_DARRAY, checked(self), integer("size", size), integer("rank", rank), extents,
                      integers("distribs", distribs, dimensions), integers("dargs", dargs, dimensions),
                      integers("psizes", psizes, dimensions), integer("order", order)))

    def Create_resized(self, lb: int, extent: int) -> Datatype:
        """The same data with another lower bound and extent, in bytes (MPI-4.1, 5.1.7)."""
        return derive(self, resized, (COMBINER_RESIZED, checked(self), integer("lb", lb), integer("extent", extent)))

    Resized = Create_resized

    @classmethod
    def Get_value_index(cls, Datatype value, Datatype index) -> Datatype:
        """The predefined pair for MINLOC and MAXLOC, or DATATYPE_NULL where there is none (MPI-4.1, 5.1.13)."""
        checked(value)
        checked(index)
        pair = value_indices.get((value.typemap.basic, index.typemap.basic))
        return new_handle(cls, None if pair is None else named_typemaps[pair])

    @classmethod
    def Create_f90_integer(cls, r: int) -> Datatype:
        """Fortran's integer of `selected_int_kind(r)` (MPI-4.1, 19.1.9)."""
        return new_handle(cls, parametrised(COMBINER_F90_INTEGER, (r,), integer_name(r)))

    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Datatype:
        """Fortran's real of `selected_real_kind(p, r)`; UNDEFINED for either leaves it open (MPI-4.1, 19.1.9)."""
        return new_handle(cls, parametrised(COMBINER_F90_REAL, (p, r), real_name(p, r)))

    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Datatype:
        """Fortran's complex of `selected_real_kind(p, r)`; UNDEFINED for either leaves it open (MPI-4.1, 19.1.9)."""
        return new_handle(cls, parametrised(COMBINER_F90_COMPLEX, (p, r), complex_name(p, r)))

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Datatype:
        """Fortran's type of a TYPECLASS_* with so many bytes (MPI-4.1, 19.1.9)."""
        return new_handle(cls, named_typemaps[name_of_size(typeclass, size)])

    def Commit(self) -> Datatype:
        """Declare the datatype ready for communication; returns it (MPI-4.1, 5.1.9)."""
        checked(self).committed = True
        return self

    def Free(self) -> None:
        """Give the datatype up; types derived from it, and operations under way, are not affected (MPI-4.1, 5.1.9).

        Raises:
            Exception: ERR_TYPE for a predefined datatype.
        """
        if type(checked(self).description) is not tuple:
            description = description_of(self.typemap)
            if description.predefined:
                raise MPIException(ERR_TYPE, f"datatype: {description.name or 'a predefined datatype'} can't be freed")
            if description.attributes and not self.borrowed:
                attributes.delete_attrs(self, description.attributes)
        if not self.borrowed:
            forget(self)
        self.typemap = None

    # -- how it was made

    def Get_envelope(self) -> tuple:
        """Numbers of integers, addresses, counts and datatypes in `Get_contents`, and the combiner (MPI-4.1, 5.1.13)."""
        description = description_of(checked(self))
        values, counts = description.contents()
        return len(values), 0, len(counts), len(description.types), description.combiner

    @property
    def envelope(self) -> tuple:
        """What `Get_envelope` returns (MPI-4.1, 5.1.13)."""
        return self.Get_envelope()

    def Get_contents(self) -> tuple:
        """Arguments of the constructor: lists of integers, addresses, counts, datatypes (MPI-4.1, 5.1.13)."""
        description = description_of(checked(self))
        if description.combiner == COMBINER_NAMED:
            raise MPIException(ERR_TYPE, f"datatype: {description.name} was made by no constructor")
        values, counts = description.contents()
        return values, [], counts, [borrow(typemap) for typemap in description.types]

    @property
    def contents(self) -> tuple:
        """What `Get_contents` returns (MPI-4.1, 5.1.13)."""
        return self.Get_contents()

    def decode(self) -> tuple:
        """What this datatype was made of, its constructor's name in capitals, and a dict of its arguments (MPI-4.1, 5.1.13).

        For several datatypes the first item is DATATYPE_NULL, and they are among the arguments; a predefined datatype
        is itself, "NAMED", and no arguments.
        """
        description = description_of(checked(self))
        if description.combiner == COMBINER_NAMED:
            return self, "NAMED", {}
        types = [borrow(typemap) for typemap in description.types]
        parameters = {name: list(value) if isinstance(value, array) else value
                      for name, value in description.parameters.items()}
        if description.combiner == COMBINER_STRUCT:
            parameters["datatypes"] = types
        return types[0] if len(types) == 1 else DATATYPE_NULL, COMBINERS[description.combiner], parameters

    @property
    def combiner(self) -> int:
        """Which constructor made it: COMBINER_* (MPI-4.1, 5.1.13)."""
        return description_of(checked(self)).combiner

    @property
    def is_named(self) -> bool:
        """Whether it is predefined and has a name (MPI-4.1, 5.1.13)."""
        return description_of(checked(self)).combiner == COMBINER_NAMED

    @property
    def is_predefined(self) -> bool:
        """Whether it is predefined; DATATYPE_NULL is (MPI-4.1, 3.2.2)."""
        return self.typemap is None or description_of(self.typemap).predefined

    # -- attributes and name

    def Get_attr(self, keyval: int):
        """Value of an attribute, None where it has none (MPI-4.1, 7.7.4)."""
        return attributes.get_attr("Datatype", description_of(checked(self)).attributes, keyval)

    def Set_attr(self, keyval: int, attrval) -> None:
        """Set the value of an attribute (MPI-4.1, 7.7.4)."""
        attributes.set_attr("Datatype", self, description_of(checked(self)).attributes, keyval, attrval)

    def Delete_attr(self, keyval: int) -> None:
        """Remove an attribute (MPI-4.1, 7.7.4)."""
        attributes.delete_attr("Datatype", self, description_of(checked(self)).attributes, keyval)

    @classmethod
    def Create_keyval(cls, copy_fn=None, delete_fn=None, nopython: bool = False) -> int:
        """A new attribute key for datatypes; the functions are called as fn(datatype, keyval, value) (MPI-4.1, 7.7.4)."""
        return attributes.create_keyval("Datatype", copy_fn, delete_fn, nopython)

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Give a key up; returns KEYVAL_INVALID (MPI-4.1, 7.7.4)."""
        return attributes.free_keyval("Datatype", keyval)

    def Get_name(self) -> str:
        """The name for people: "MPI_INT", what `Set_name` gave, or "" (MPI-4.1, 7.8)."""
        return "MPI_DATATYPE_NULL" if self.typemap is None else description_of(self.typemap).name

    def Set_name(self, name: str) -> None:
        """Give the datatype a name for people (MPI-4.1, 7.8)."""
        description_of(checked(self)).name = str(name)

    @property
    def name(self) -> str:
        """The name for people (MPI-4.1, 7.8)."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    # -- codes

    def tocode(self) -> str:
        """Character or type string that leads back to the datatype with `fromcode`, else ValueError (MPI-4.1, 3.2.2)."""
        code = "" if self.typemap is None else description_of(self.typemap).codes[2]
        if not code:
            raise ValueError(f"datatype: {self.Get_name() or 'a derived datatype'} has no character code or type string")
        return code

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """The predefined datatype of a character ("d") or type string ("f8"), else ValueError (MPI-4.1, 3.2.2)."""
        try:
            return _typedict[code]
        except KeyError:
            raise ValueError(f"code: {code!r} stands for no predefined datatype") from None

    @property
    def typestr(self) -> str:
        """NumPy's type string: "f8"; "V" and the extent for what has none (MPI-4.1, 3.2.2)."""
        if self.typemap is None:
            return ""
        return description_of(self.typemap).codes[1] or f"V{self.typemap.extent}"

    @property
    def typechar(self) -> str:
        """The buffer protocol's character: "d"; "V" for what has none (MPI-4.1, 3.2.2)."""
        return "" if self.typemap is None else description_of(self.typemap).codes[0] or "V"


cdef Typemap typemap_of(object datatype):
    if not isinstance(datatype, Datatype):
        raise TypeError(f"datatypes: a Datatype expected, not {type(datatype).__name__}")
    return checked(datatype)


# (combiner, arguments) -> the typemap that was made: MPI gives the same datatype for the same arguments.
cdef dict parametrised_typemaps = {}


cdef Typemap parametrised(int combiner, tuple values, str name):
    cdef Typemap made, base = named_typemaps[name]
    key = (combiner, *values)
    if key not in parametrised_typemaps:
        made = base.create_dup()
        character, string, _ = base.description.codes
        made.description = Description(combiner, values, [], codes=(character, string, string))
        parametrised_typemaps[key] = made
    return parametrised_typemaps[key]


def _datatype_create(Datatype datatype, combiner: str, params: dict, free: bool = False) -> Datatype:
    """The datatype that a constructor, named in capitals as by `decode`, makes of another one; how pickles are read.

    `free`: give up the datatypes it was made of.
    """
    bases = params.get("datatypes", [datatype])
    try:
        return getattr(datatype, f"Create_{combiner.lower()}")(**params).Commit()
    finally:
        if free:
            for base in bases:
                (<Datatype?> base).free()


def _datatype_decode(Datatype datatype, mark: bool = False) -> tuple:
    """As `datatype.decode()`."""
    return datatype.decode()


def _typecode(Datatype datatype):
    """Character or type string of a datatype, or None."""
    return None if datatype.typemap is None else description_of(datatype.typemap).codes[2] or None


def _typealign(Datatype datatype):
    """Alignment of a predefined datatype in bytes, or None."""
    if datatype.typemap is None or not (datatype.typechar != "V" or datatype.is_named):
        return None
    return datatype.typemap.alignment


# -- the predefined datatypes

# By its name without MPI_, and by its code in `ompy.core.basic`.
cdef dict named_typemaps = {}
cdef list handle_of_basic = []

cdef int define_predefined() except -1:
    """Make the handles, and bind each to its name in this module: names that begin with a digit have none."""
    cdef Typemap typemap
    cdef Datatype handle
    cdef int code
    public = globals()
    handles = {}
    names = {"2INT": "INT_INT"}
    for code in range(BASIC_TYPES):
        typemap = predefined(code)
        name = describe(code)[0]
        typemap.description = Description(COMBINER_NAMED, (), [], f"MPI_{name}", codes_of(code))
        named_typemaps[name] = typemap
        handle = new_handle(Datatype, typemap)
        handle_of_basic.append(handle)
        handles[name] = handle
        name = names.get(name, name)
        if not name[0].isdigit():
            public[name] = predefine(handle, name)
    for alias, name in ALIASES.items():
        public[alias] = handles[name]
    for known, names in ((_typedict, NAMES), (_typedict_c, C_NAMES), (_typedict_f, F_NAMES)):
        for string, name in names.items():
            known[string] = handles[name]
    for name in ("SHORT", "LONG", "FLOAT", "DOUBLE", "LONG_DOUBLE"):
        value_indices[named_typemaps[name].basic, named_typemaps["INT"].basic] = f"{name}_INT"
    value_indices[named_typemaps["INT"].basic, named_typemaps["INT"].basic] = "2INT"
    return 0


# (code of the value, code of the index) -> name of the pair.
cdef dict value_indices = {}

_typedict = {}
_typedict_c = {}
_typedict_f = {}

DATATYPE_NULL = predefine(Datatype(), "DATATYPE_NULL")
define_predefined()


cdef Datatype datatype_of_code(object code):
    try:
        return <Datatype> _typedict[code]
    except KeyError:
        raise KeyError(f"cannot map {code!r} to a datatype") from None


cdef Datatype datatype_of(Typemap typemap):
    if typemap is None:
        return DATATYPE_NULL
    if typemap.basic >= 0 and typemap is predefined(typemap.basic):
        return <Datatype> handle_of_basic[typemap.basic]
    return new_handle(Datatype, typemap)


__all__ = sorted(
    name
    for name, value in globals().items()
    if isinstance(value, Datatype) or name == "Datatype" or name.startswith(("DISTRIBUTE_", "ORDER_"))
)
