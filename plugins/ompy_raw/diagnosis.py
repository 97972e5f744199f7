"""A deadlock in words: which tiles wait for what, and which buffers are full."""

from __future__ import annotations

from ompy_raw.header import SIDE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy_raw.chip import Chip

BUFFER_WORDS = 4
WORDS_OF = {
    4: "computes until a later cycle",
    5: "waits for a word",
    6: "is stalled writing, {done} of {count} words written",
    7: "is stalled reading, {done} of {count} words read",
    8: "reads what there is",
}


def deadlock(chip: Chip) -> str:
    """Several lines: the cycle, a line for each tile that waits, and the full buffers."""
    lines = [f"deadlock on the Raw chip in cycle {chip.now}: no tile can ever go on"]
    for tile, activity, done, count in chip.waits():
        full = [
            f"{name} {BUFFER_WORDS}/{BUFFER_WORDS}"
            for side, name in enumerate(("output ($CGNO)", *(f"input from {name}" for name in SIDE_NAMES[1:])))
            if chip.buffered(tile, side) == BUFFER_WORDS
        ]
        what = WORDS_OF[activity].format(done=done, count=count)
        place = f"({tile % chip.width}, {tile // chip.width})"
        lines.append(f"  tile {tile} at {place} {what}; full buffers: {', '.join(full) or 'none'}")
    lines.append(
        "  read what arrives before writing more than the buffers hold (8 words between neighbours), receive by interrupt, "
        "or turn the watchdog on"
    )
    return "\n".join(lines)
