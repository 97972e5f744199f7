"""Who is blocked in what, and who waits for whom, from the job board.

rank  process  state    call   peer  tag  communicator    bytes  for
   0     4711  waiting  Ssend     1    7  MPI_COMM_WORLD     80  5.0 s
   1     4712  waiting  Ssend     0    7  MPI_COMM_WORLD     80  5.0 s

cycle of waits: rank 0 waits for rank 1 in Ssend, which waits for rank 0 in Ssend
"""

from __future__ import annotations

import os
import stat

from ompy.core.board import OPERATIONS, RECORD_BYTES, Board, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ANY = -1
MOST_RANKS = 1 << 20
COLUMNS = ("rank", "process", "state", "call", "peer", "tag", "communicator", "bytes", "for")
MESSAGES = OPERATIONS[OPERATIONS.index("Send") : OPERATIONS.index("Barrier")]
# Calls in which a rank waits until all the job's ranks have come.
MEETINGS = ("Init", "Finalize")
WORDY = ("state", "call", "communicator")


def call_of(row: Row) -> str:
    """The call that blocks.

    Tags below ANY_TAG are the library's own: such a message is part of a collective call whose name is not on the board.
    """
    if row.tag < ANY and row.operation in MESSAGES:
        return "collective"
    return row.operation or "MPI"


def cells(row: Row) -> tuple[str, ...]:
    """One rank's line of the table."""
    who = (str(row.rank), str(row.pid or "-"), row.state)
    if row.state not in ("waiting", "broken off"):
        return (*who, *("-" * (len(COLUMNS) - len(who))))
    since = f"{row.seconds:.1f} s" if row.state == "waiting" else "-"
    tag = "any" if row.tag == ANY else str(row.tag) if row.tag >= 0 else "internal"
    if row.operation in MEETINGS:
        return (*who, row.operation, "all", "-", "-", "-", since)
    peer = "any" if row.peer == ANY else str(row.peer) if row.peer >= 0 else "-"
    if row.peer_job:
        peer += " of another job"
    return (*who, call_of(row), peer, tag, row.communicator or "-", str(row.nbytes), since)


def table(rows: Sequence[Row]) -> list[str]:
    """The table's lines, columns aligned: words to the left, numbers to the right."""
    lines = [COLUMNS, *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return [
        "  ".join(
            cell.ljust(width) if column in WORDY else cell.rjust(width)
            for cell, width, column in zip(line, widths, COLUMNS, strict=True)
        ).rstrip()
        for line in lines
    ]


def waits_within(row: Row) -> bool:
    """Whether the row waits for one rank of its own job: what those of another one do is not on this board."""
    return row.state == "waiting" and row.peer >= 0 and not row.peer_job


def cycles(rows: Sequence[Row]) -> list[list[int]]:
    """Cycles of ranks each of which waits for the next.

    A rank waits for at most one other, so from each rank there is one path: follow it until it ends, meets an older
    path, or meets itself, which is a cycle.

        0 -> 1 -> 2 -> 1     from 0: the cycle 1, 2; then 1 and 2 have been seen
    """
    waits_for = {row.rank: row.peer for row in rows if waits_within(row)}
    seen: set[int] = set()
    found = []
    for start in waits_for:
        path: list[int] = []
        rank = start
        while rank in waits_for and rank not in seen:
            seen.add(rank)
            path.append(rank)
            rank = waits_for[rank]
        if rank in path:
            found.append(path[path.index(rank) :])
    return found


def sentence(cycle: Sequence[int], rows: Sequence[Row]) -> str:
    """A cycle in words."""
    calls = {row.rank: call_of(row) for row in rows}
    steps = [f"rank {rank} waits for rank {cycle[(i + 1) % len(cycle)]} in {calls[rank]}" for i, rank in enumerate(cycle)]
    return "cycle of waits: " + "; ".join(steps) + ": none of them can go on"


def dead_ends(rows: Sequence[Row]) -> list[str]:
    """Waits for a rank that has finalised, is about to, or has not begun."""
    words = {"finalized": "has finalised", "absent": "has not initialised MPI", "Finalize": "is in Finalize"}
    lines = []
    for row in rows:
        if waits_within(row) and row.peer < len(rows):
            peer = rows[row.peer]
            word = words.get(peer.state) or words.get(peer.operation)
            if word:
                lines.append(f"rank {row.rank} waits in {call_of(row)} for rank {row.peer}, which {word}")
    return lines


def waits_on_files(board: Board) -> dict[tuple[str, str], set[int]]:
    """Who waits in a call on a file for other ranks, or did so when one failed: ranks by call and file."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in board.rows():
        if row.state in ("waiting", "broken off") and row.operation.startswith("File_"):
            found.setdefault((row.operation, row.communicator), set()).add(row.rank)
    return found


def processor_time(board: Board, ranks: Sequence[int]) -> dict[int, float]:
    """Seconds of processor time that the processes of ranks on this host have used, as far as it can be asked."""
    used = {}
    for row in map(board.row, ranks):
        try:
            with open(f"/proc/{row.pid}/stat") as stream:
                # The name of the program, in parentheses, may hold anything.
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            continue
        used[row.rank] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def stuck(board: Board, seconds: float, working: Collection[int] = ()) -> list[str]:
    """What can't go on any more by itself, of the waits that are older than so many seconds.

    Parameters:
        working: ranks that use their processor: they move a long message, though they wait for its end.
    """
    rows = [row if row.seconds > seconds and row.rank not in working else idle(row) for row in board.rows()]
    return [sentence(cycle, rows) for cycle in cycles(rows)] + dead_ends(rows)


def idle(row: Row) -> Row:
    """The row as if its wait were none."""
    if row.state == "waiting":
        row.state, row.operation = "running", ""
    return row


def report(board: Board) -> str:
    """Everything that the board tells."""
    rows = board.rows()
    lines = table(rows)
    lines += [sentence(cycle, rows) for cycle in cycles(rows)]
    lines += dead_ends(rows)
    if any(row.state == "waiting" and row.peer == ANY and row.operation not in MEETINGS for row in rows):
        lines.append("a rank whose peer is `any` waits for whoever sends first")
    return "\n".join(lines)


def report_process(pid: int) -> str:
    """The report of a running job, from the process number of its launcher or of one of its ranks.

    Raises OSError when there is no such process or it may not be looked at, ValueError when it has no job board.
    """
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        raise ProcessLookupError(f"there is no process {pid}") from None
    except PermissionError:
        raise PermissionError(f"process {pid} is another user's") from None
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}").startswith("/memfd:ompy-board"):
                descriptor = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NONBLOCK)
                break
        except OSError:
            continue
    else:
        raise ValueError(f"process {pid} has no job board: it is neither ompyrun nor one of its ranks")
    try:
        check(descriptor, pid)
        return report(Board(descriptor))
    finally:
        os.close(descriptor)


def check(descriptor: int, pid: int) -> None:
    """Whether what is called a board can be looked at without harm: ValueError if not.

    It can where the process whose board it is has made it, is this user's (or this is root), and nobody can cut it off.
    """
    from fcntl import F_GET_SEALS, F_SEAL_SHRINK, fcntl

    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_RANKS * RECORD_BYTES:
        raise ValueError(f"what process {pid} calls its job board is none")
    owner = os.stat(f"/proc/{pid}").st_uid
    if status.st_uid != owner or os.geteuid() not in (0, owner):
        raise ValueError(f"the job board of process {pid} is another user's (uid {status.st_uid})")
    if not fcntl(descriptor, F_GET_SEALS) & F_SEAL_SHRINK:
        raise ValueError(f"the job board of process {pid} is not sealed: it was not made by ompyrun")
