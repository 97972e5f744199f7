"""The record of a run, as a file of JSON that `ompy raw view` draws.

    {"format": "ompy raw trace 1", "width": 4, "height": 4, "cycles": 1234, "cycles_per_second": 4.25e8,
     "deadlock": "" or the diagnosis, "waits": [[tile, activity, words done, words in all], ...],
     "buffers": [words in each input buffer at the end], "crossed": [words out of each output in all],
     "samples": [[cycle, [words in each input buffer], [words out of each output until then]], ...],
     "words": [[cycle, tile, side, word], ...], "words_seen": 5678}

Inputs and outputs are numbered 5 * tile + side; side 0 is the processor, then north, east, south, west.
"""

from __future__ import annotations

import json
import os

from ompy_raw.header import SIDE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ompy_raw.chip import Chip

FORMAT = "ompy raw trace 1"
SIDES = len(SIDE_NAMES)


def record(chip: Chip, cycles_per_second: float) -> dict[str, Any]:
    """What the file holds."""
    places = [(tile, side) for tile in range(chip.tiles) for side in range(SIDES)]
    recording = chip.recording
    return {
        "format": FORMAT,
        "width": chip.width,
        "height": chip.height,
        "cycles": chip.now,
        "cycles_per_second": cycles_per_second,
        "deadlock": chip.diagnosis() if chip.deadlocked else "",
        "waits": chip.waits(),
        "buffers": [chip.buffered(tile, side) for tile, side in places],
        "crossed": [chip.crossed(tile, side) for tile, side in places],
        "samples": recording.samples() if recording else [],
        "words": recording.words() if recording else [],
        "words_seen": recording.words_seen() if recording else 0,
    }


def save(chip: Chip, path: str, cycles_per_second: float) -> None:
    """Write the record of a chip's run; whoever reads the file meanwhile sees the old one, or the new one."""
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as stream:
        json.dump(record(chip, cycles_per_second), stream)
    os.replace(beside, path)


def load(path: str) -> dict[str, Any]:
    """Read a record; ValueError when the file holds none."""
    try:
        with open(path, encoding="utf-8") as stream:
            found: dict[str, Any] = json.load(stream)
    except ValueError as error:
        raise ValueError(f"{path} is no trace of the Raw chip: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{path} is no trace of the Raw chip: it does not begin with format {FORMAT!r}")
    return found
