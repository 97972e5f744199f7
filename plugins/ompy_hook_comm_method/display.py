"""The table of transports.

Each rank looks up its own row, and publishes it; rank 0 collects the rows and prints them:

    ompy: transports of 3 ranks, from row to column
     rank  0     1     2     host
        0  self  sm    sm    node1
        1  sm    self  sm    node1
        2  sm    sm    self  node1
"""

from __future__ import annotations

import sys

from ompy.core.errors import MPIError
from ompy.core.proc import process_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.mca.pml import Pml
    from ompy.mca.rte import Rte

KEY = "hook.comm_method"
NONE = "-"


def method(pml: Pml, index: int) -> str:
    """The transports towards one process, `+` between them; `-` for none.  A PML without BTLs is shown itself."""
    proc = process_table().get(index)
    try:
        pml.add_proc(proc)
    except MPIError:
        return NONE
    if proc.routes is None:
        return pml.name
    return "+".join(route.btl.name for route in proc.routes.eager) or NONE


def full(rows: Sequence[Sequence[str]], hosts: Sequence[str]) -> str:
    """The table, rank by rank."""
    ranks = [str(rank) for rank in range(len(rows))]
    cells = [["rank", *ranks, "host"], *([ranks[i], *rows[i], hosts[i]] for i in range(len(rows)))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for row in cells:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {row[0]:>{len(first)}}  {'  '.join(others)}".rstrip())
    return f"ompy: transports of {len(rows)} ranks, from row to column\n" + "\n".join(lines)


def summary(rows: Sequence[Sequence[str]], hosts: Sequence[str]) -> str:
    """How many pairs of ranks use each transport, for jobs whose table nobody would read."""
    pairs: dict[tuple[str, str], int] = {}
    for source, row in enumerate(rows):
        for target, name in enumerate(row):
            where = "to itself" if source == target else "within a host" if hosts[source] == hosts[target] else "between hosts"
            pairs[where, name] = pairs.get((where, name), 0) + 1
    lines = [f"  {where}: {name} for {count} pairs" for (where, name), count in sorted(pairs.items())]
    return f"ompy: transports of {len(rows)} ranks, by pairs\n" + "\n".join(lines)


def display(rte: Rte, pml: Pml, most: int) -> None:
    """Gather every rank's row on rank 0, which prints; every rank of the job must call this."""
    host = process_table().get(rte.rank).host
    row = [method(pml, rank) for rank in range(rte.size)]
    rte.put(KEY, " ".join([host, *row]).encode())
    rte.commit_and_fence()
    if rte.rank == 0:
        hosts, rows = [], []
        for rank in range(rte.size):
            host, *row = rte.get(rank, KEY).decode().split(" ")
            hosts.append(host)
            rows.append(row)
        text = full(rows, hosts) if rte.size <= most else summary(rows, hosts)
        print(text, file=sys.stderr, flush=True)
