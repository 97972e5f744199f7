"""Parts of a communicator, for components that carry its collectives out by levels.

Who is in which part every member knows, so that making them takes no messages, or one.  The run-time alone makes
communicators; at bring-up it says how.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ompy.core.communicator import Communicator

    Make = Callable[..., Communicator | None]
    Free = Callable[[Communicator], int]

make: Make | None = None
free: Free | None = None


def employ(maker: Make, freer: Free) -> None:
    """How the run-time makes parts and lets go of them, from now on."""
    global make, free
    make, free = maker, freer


def part(comm: Communicator, count: int, number: int, ranks: Sequence[int], placement: int) -> Communicator | None:
    """A communicator of some ranks, collective over all of `comm`; None for who is not among them.

    It fails with any process of `comm`.

    Parameters:
        count: how many disjoint ones are made at the same time, by calls like this.
        number: of this process's.
        ranks: whose it is, in order.
        placement: what all of them know of their hosts (`ompy/core/communicator.pxd`).
    """
    assert make is not None, "before bring-up there are no communicators"
    return make(comm, count, number, ranks, None, placement, comm)


def let_go(part: Communicator) -> None:
    """The part is not needed any more; what is under way there completes."""
    assert free is not None, "before bring-up there are no communicators"
    free(part)
