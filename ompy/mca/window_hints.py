"""What a program may ask of a window, or promise of how it uses one, by info keys (MPI-4.1, 12.2)."""

from __future__ import annotations

import os

from ompy.mca.hints import Hint, Hints, whole
from ompy.mca.memory_kinds import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TRUE, FALSE = "true", "false"
ORDERINGS = ("rar", "raw", "war", "waw")


def truth(text: str) -> int:
    """Reads a boolean, as MPI has it and as people write it."""
    if text.lower() in (TRUE, "1", "yes"):
        return 1
    if text.lower() in (FALSE, "0", "no"):
        return 0
    raise ValueError(text)


def ordering(text: str) -> str:
    """Reads the orders that accumulates keep: some of four, or none."""
    words = {word.strip().lower() for word in text.split(",")}
    if words == {"none"}:
        return "none"
    if not words <= set(ORDERINGS):
        raise ValueError(text)
    return ",".join(word for word in ORDERINGS if word in words)


def operations(text: str) -> str:
    if text not in ("same_op", "same_op_no_op"):
        raise ValueError(text)
    return text


def alignment(text: str) -> int:
    """Reads an alignment that our memory has."""
    number = int(text)
    if number < 1 or number & (number - 1) or number > os.sysconf("SC_PAGESIZE"):
        raise ValueError(text)
    return number


def shown(value: int | str) -> str:
    return TRUE if value else FALSE


WINDOW_HINTS: dict[str, Hint] = {
    "no_locks": Hint(0, truth, "the window refuses locks", shown),
    "accumulate_ordering": Hint(
        ",".join(ORDERINGS), ordering, "which accumulates of one origin at one target need to keep their order"
    ),
    "accumulate_ops": Hint("same_op_no_op", operations, "operations that meet at one element at a time"),
    "mpi_accumulate_granularity": Hint(
        0, whole(0, 1 << 62), "bytes of an accumulate longer than 4 KiB after which others have their turn; 0: all of them"
    ),
    "same_size": Hint(0, truth, "every rank gives the same size; another one is ERR_SIZE", shown),
    "same_disp_unit": Hint(0, truth, "every rank gives the same displacement unit; another one is ERR_DISP", shown),
    "alloc_shared_noncontig": Hint(0, truth, "each rank's part of a shared window begins on a page of its own", shown),
    "mpi_minimum_memory_alignment": Hint(
        16, alignment, "bytes that the address of allocated memory is a multiple of, up to a page"
    ),
    "mpi_assert_memory_alloc_kinds": Hint(
        "", kinds, "kinds of memory that the program uses with the window, those of them that there are"
    ),
}
# Those that may change while there is a window: they take effect where accumulates are called.
LIVELY = ("accumulate_ordering", "accumulate_ops", "mpi_accumulate_granularity")


class WindowHints(Hints):
    """Those in force on one window."""

    def __init__(self) -> None:
        super().__init__(WINDOW_HINTS)

    def change(self, info: Mapping[str, str], source: str) -> None:
        """Take over what may change after the window was made."""
        self.update({name: text for name, text in info.items() if name in LIVELY}, source)

    def info(self) -> dict[str, str]:
        """As `Hints`; what nobody has asserted is left out."""
        return {name: text for name, text in super().info().items() if text}
