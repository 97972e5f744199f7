"""What mpi4py's pure-Python packages (`mpi4py.util`, `mpi4py.futures`) ask of the MPI module besides its public names."""

from __future__ import annotations

from ompy.mpi.point_to_point import _comm_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.mpi.comm import Comm
    from ompy.mpi.intercomm import Intercomm
    from ompy.mpi.intracomm import Intracomm

LAST_TAG = 1 << 20

# The attribute of communicators under which their contexts live and die with them; made at first use.
context_keyval: int | None = None


class Context:
    """A duplicate of a communicator for the library's own messages, and the tag for the next of them."""

    def __init__(self, duplicate: Comm, local: Intracomm | None, low_group: bool) -> None:
        self.duplicate = duplicate
        self.local = local
        self.low_group = low_group
        self.tag = 0

    def next_tag(self) -> int:
        tag = self.tag
        self.tag = tag + 1 if tag < LAST_TAG else 0
        return tag


def free_context(_comm: Comm, _keyval: int, context: Context) -> None:
    context.duplicate.Free()
    if context.local is not None:
        context.local.Free()


def context_of(comm: Comm) -> Context:
    global context_keyval
    with _comm_lock(comm, "context"):
        if context_keyval is None:
            context_keyval = comm.Create_keyval(delete_fn=free_context)
        context: Context | None = comm.Get_attr(context_keyval)
        if context is None:
            context = duplicate_inter(comm) if comm.is_inter else Context(comm.Dup(), None, True)
            comm.Set_attr(context_keyval, context)
        return context


def duplicate_inter(comm: Comm) -> Context:
    """The local group comes from a merge, in which the members of the low group keep their ranks."""
    merged = comm.Merge(high=False)  # type: ignore[attr-defined]
    low_group = merged.rank == comm.rank
    local = merged.Split(0 if low_group else 1, merged.rank)
    merged.Free()
    return Context(comm.Dup(), local, low_group)


def _commctx_intra(comm: Intracomm) -> tuple[Intracomm, int]:
    """A duplicate of an intra-communicator, made once, and a tag: all processes get the same in the same order."""
    context = context_of(comm)
    return context.duplicate, context.next_tag()  # type: ignore[return-value]


def _commctx_inter(comm: Intercomm) -> tuple[Intercomm, int, Intracomm, bool]:
    """A duplicate of an inter-communicator, a tag, its local group as a communicator, and whether that is the low group."""
    context = context_of(comm)
    assert context.local is not None
    return context.duplicate, context.next_tag(), context.local, context.low_group  # type: ignore[return-value]
