# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Groups of processes (MPI-4.1, 7.3)."""

from ompy.core.constants cimport PROC_NULL, UNDEFINED
from ompy.core.group cimport Group as CoreGroup, make_group
from ompy.mpi.handle cimport Handle, forget, predefine

from ompy.core.errors import ERR_ARG, ERR_GROUP, ERR_RANK
from ompy.mpi.exceptions import Exception as MPIException
from ompy.runtime import identity

__all__ = ["CONGRUENT", "GROUP_EMPTY", "GROUP_NULL", "Group", "IDENT", "SIMILAR", "UNEQUAL"]

# Outcomes of Group.Compare and Comm.Compare.
IDENT = 0
CONGRUENT = 1
SIMILAR = 2
UNEQUAL = 3

cdef CoreGroup EMPTY = make_group(())


cdef CoreGroup group_of(list members):
    return make_group(members) if members else EMPTY


cdef CoreGroup checked(Group group, str name):
    """The core group of an argument that must not be GROUP_NULL."""
    if group is None or group.group is None:
        raise MPIException(ERR_GROUP, f"{name}: a group expected, not GROUP_NULL")
    return group.group


cdef list checked_ranks(CoreGroup group, object ranks):
    """`ranks` as a list: each in the group, none twice."""
    cdef list result = [int(rank) for rank in ranks]
    for rank in result:
        if not 0 <= rank < group.size:
            raise MPIException(ERR_RANK, f"ranks: {rank} is not in this group of {group.size}")
    if len(set(result)) != len(result):
        raise MPIException(ERR_RANK, f"ranks: {result} names a rank twice")
    return result


cdef list expanded(CoreGroup group, object triplets):
    """Ranks of the (first, last, stride) triplets, in their order."""
    cdef list result = []
    for triplet in triplets:
        first, last, stride = triplet
        if stride == 0:
            raise MPIException(ERR_ARG, f"ranks: stride 0 in {tuple(triplet)}")
        result += range(first, last + (1 if stride > 0 else -1), stride)
    return checked_ranks(group, result)


cdef class Group(Handle):
    """
    An ordered set of processes (MPI-4.1, 7.2.1).

    Groups are immutable: each operation makes a new one.  `Group(other)` is a second handle on the same group.
    """

    def __cinit__(self, Group group=None):
        if group is not None:
            self.group = group.group
            self.session = group.session

    cdef type family(self):
        return Group

    cdef object core(self):
        return self.group

    cdef int become(self, object core) except -1:
        self.group = core
        return 0

    def Get_size(self) -> int:
        """Number of processes in the group (MPI-4.1, 7.3.1)."""
        return checked(self, "group").size

    def Get_rank(self) -> int:
        """Rank of this process in the group, or UNDEFINED (MPI-4.1, 7.3.1)."""
        return checked(self, "group").rank

    @property
    def size(self) -> int:
        """Number of processes in the group (MPI-4.1, 7.3.1)."""
        return checked(self, "group").size

    @property
    def rank(self) -> int:
        """Rank of this process in the group, or UNDEFINED (MPI-4.1, 7.3.1)."""
        return checked(self, "group").rank

    def Translate_ranks(self, ranks=None, Group group=None) -> list:
        """Ranks of the same processes in another group (MPI-4.1, 7.3.1).

        Parameters:
            ranks: ranks in this group, or PROC_NULL; default all of them.
            group: the other group; default that of COMM_WORLD.

        Returns:
            for each of `ranks` its rank in `group`: UNDEFINED where it is not a member, PROC_NULL for PROC_NULL.

        Raises:
            Exception: ERR_RANK for a rank out of range, ERR_GROUP for GROUP_NULL.
        """
        cdef CoreGroup source = checked(self, "group")
        cdef CoreGroup target
        cdef list result = []
        if group is None:
            target = identity.world_communicator().group
        else:
            target = checked(group, "group")
        cdef int rank
        for rank in (range(source.size) if ranks is None else ranks):
            if rank == PROC_NULL:
                result.append(PROC_NULL)
            elif 0 <= rank < source.size:
                result.append(target.rank_of(source.members[rank]))
            else:
                raise MPIException(ERR_RANK, f"ranks: {rank} is not in this group of {source.size}")
        return result

    def Compare(self, Group group not None) -> int:
        """IDENT: the same members in the same order; SIMILAR: in another order; else UNEQUAL (MPI-4.1, 7.3.1)."""
        return compare(checked(self, "group"), checked(group, "group"))

    def Dup(self):
        """Another handle on an equal group (MPI-4.1, 7.3.2)."""
        cdef CoreGroup group = checked(self, "group")
        return self.made(EMPTY if group is EMPTY else make_group(group.indices()))

    @classmethod
    def Union(cls, Group group1 not None, Group group2 not None):
        """All of the first group, then those of the second that are not in the first (MPI-4.1, 7.3.2)."""
        cdef list first = checked(group1, "group1").indices()
        cdef list second = checked(group2, "group2").indices()
        cdef set seen = set(first)
        return combination(cls, first + [index for index in second if index not in seen], group1, group2)

    @classmethod
    def Intersection(cls, Group group1 not None, Group group2 not None):
        """Those of the first group that are also in the second, in the first's order (MPI-4.1, 7.3.2)."""
        cdef CoreGroup second = checked(group2, "group2")
        cdef list first = checked(group1, "group1").indices()
        return combination(cls, [index for index in first if second.rank_of(index) != UNDEFINED], group1, group2)

    Intersect = Intersection

    @classmethod
    def Difference(cls, Group group1 not None, Group group2 not None):
        """Those of the first group that are not in the second, in the first's order (MPI-4.1, 7.3.2)."""
        cdef CoreGroup second = checked(group2, "group2")
        cdef list first = checked(group1, "group1").indices()
        return combination(cls, [index for index in first if second.rank_of(index) == UNDEFINED], group1, group2)

    def Incl(self, ranks):
        """The processes of these ranks, in this order (MPI-4.1, 7.3.2)."""
        cdef CoreGroup group = checked(self, "group")
        return self.made(group_of([group.members[<int>rank] for rank in checked_ranks(group, ranks)]))

    def Excl(self, ranks):
        """The processes of all other ranks (MPI-4.1, 7.3.2)."""
        return self.without(checked_ranks(checked(self, "group"), ranks))

    def Range_incl(self, ranks):
        """As `Incl` of the ranks that (first, last, stride) triplets stand for (MPI-4.1, 7.3.2)."""
        cdef CoreGroup group = checked(self, "group")
        return self.made(group_of([group.members[<int>rank] for rank in expanded(group, ranks)]))

    def Range_excl(self, ranks):
        """As `Excl` of the ranks that (first, last, stride) triplets stand for (MPI-4.1, 7.3.2)."""
        return self.without(expanded(checked(self, "group"), ranks))

    @classmethod
    def Create_from_session_pset(cls, session, str pset_name):
        """The group of a session's process set (MPI-4.1, 7.3.2)."""
        cdef Group group = session.Create_group(pset_name)
        return new_group(cls, group_of(group.group.indices()), group.session)

    def Free(self) -> None:
        """Let go of the group; the handle becomes GROUP_NULL, unless it is GROUP_EMPTY itself (MPI-4.1, 7.3.3)."""
        if checked(self, "group") is not EMPTY:
            forget(self)
        if not self.constant:
            self.group = None

    cdef Group made(self, CoreGroup group):
        return new_group(type(self), group, self.session)

    cdef Group without(self, list ranks):
        cdef CoreGroup group = self.group
        cdef set left_out = set(ranks)
        cdef int i
        return self.made(group_of([group.members[i] for i in range(group.size) if i not in left_out]))


cdef int compare(CoreGroup first, CoreGroup second) except -1:
    cdef list a, b
    if first is second:
        return IDENT
    if first.size != second.size:
        return UNEQUAL
    a, b = first.indices(), second.indices()
    if a == b:
        return IDENT
    return SIMILAR if set(a) == set(b) else UNEQUAL


cdef Group new_group(type cls, CoreGroup core, object session=None):
    cdef Group group = cls.__new__(cls)
    group.group = core
    group.session = session
    return group


cdef Group combination(type cls, list members, Group first, Group second):
    return new_group(cls, group_of(members), first.session if first.session is not None else second.session)


GROUP_NULL = predefine(Group(), "GROUP_NULL")
GROUP_EMPTY = predefine(new_group(Group, EMPTY), "GROUP_EMPTY")
