"""Orders as Slurm's PMI server carries them out: by an srun whose last words are the command and its arguments.

    srun --mpi=pmi2 --ntasks=N [--nodelist=HOST] [--chdir=FOLDER] COMMAND ARGUMENT..

So further options of srun may stand in front of the command.  They are needed: on its own this srun waits, without an end, for
processors that no other step has.  Several programs it would start by a file that knows neither such options nor arguments with
spaces: one shell that tells the programs apart by the task's number is asked for in their place.
"""

from __future__ import annotations

from shlex import quote

from ompy.mca.rte import Order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def for_srun(orders: Sequence[Order], options: Sequence[str]) -> list[Order]:
    """The one order that starts them all.

    Parameters:
        options: of srun, at least one.
    """
    order = orders[0] if len(orders) == 1 else together(orders)
    first, *further = options
    return [Order(first, [*further, order.command, *order.arguments], order.count, order.info)]


def together(orders: Sequence[Order]) -> Order:
    """Several programs as one, of which each task takes its part.  The hints are the first one's: srun has one set."""
    lines, end = [], 0
    for order in orders:
        end += order.count
        words = " ".join(quote(word) for word in (order.command, *order.arguments))
        lines.append(f"[ $SLURM_PROCID -ge {end} ] || exec {words}")
    return Order("/bin/sh", ["-c", " && ".join(lines)], end, orders[0].info)
