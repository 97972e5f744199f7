# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Datatypes as bytes.  See `flattening.pxd`."""
import marshal

from libc.stdlib cimport malloc
from libc.string cimport memcpy

from ompy.core.program cimport Program, Step
from ompy.core.typemap cimport Typemap

# Entries of each of the two memories below; a full one is emptied.
cdef enum:
    REMEMBERED = 256

cdef dict descriptions = {}
cdef dict typemaps = {}


cpdef bytes flatten(Typemap typemap):
    """All that moves data, in a form that `rebuild` reads on a machine of the same kind."""
    cdef bytes description = descriptions.get(typemap)
    cdef Program program
    if description is None:
        program = typemap.program
        description = marshal.dumps((
            typemap.size, typemap.extent, typemap.lower_bound, typemap.true_extent, typemap.true_lower_bound,
            typemap.contiguous, typemap.basic, typemap.alignment, typemap.bounded, typemap.mixture,
            program.size, program.depth,
            (<char *> program.roots)[:program.root_count * sizeof(Step)] if program.root_count else b"",
            (<char *> program.bodies)[:program.body_count * sizeof(Step)] if program.body_count else b"",
        ))
        if len(descriptions) >= REMEMBERED:
            descriptions.clear()
        descriptions[typemap] = description
    return description


cpdef Typemap rebuild(bytes description):
    """The typemap of a description that `flatten` has made."""
    cdef Typemap made = typemaps.get(description)
    cdef Program program
    if made is None:
        made = Typemap.__new__(Typemap)
        program = Program.__new__(Program)
        (
            made.size, made.extent, made.lower_bound, made.true_extent, made.true_lower_bound,
            made.contiguous, made.basic, made.alignment, made.bounded, made.mixture,
            program.size, program.depth, roots, bodies,
        ) = marshal.loads(description)
        program.root_count = <int> (<size_t> len(roots) // sizeof(Step))
        program.make_room(program.root_count)
        memcpy(program.roots, <char *> <bytes> roots, len(roots))
        program.bodies = copied(bodies, &program.body_count)
        program.body_capacity = program.body_count
        made.program = program
        if len(typemaps) >= REMEMBERED:
            typemaps.clear()
        typemaps[description] = made
    return made


cdef Step *copied(bytes steps, int *count) except? NULL:
    cdef Step *made
    count[0] = <int> (<size_t> len(steps) // sizeof(Step))
    if count[0] == 0:
        return NULL
    made = <Step *> malloc(len(steps))
    if made == NULL:
        raise MemoryError(f"no memory for {count[0]} steps of a datatype")
    memcpy(made, <char *> steps, len(steps))
    return made
