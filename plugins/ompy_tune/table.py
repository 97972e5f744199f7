"""From times to rules: the fastest way for each number of ranks and bytes, and as few changes as that allows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from math import log, log2
from pathlib import Path

from ompy_tune.ways import Way

# Seconds of a call, in all ways, by function, ranks and bytes.
Times = dict[str, dict[int, dict[int, dict[str, float]]]]

# Besides the component's own ways: what serves now, and what would serve without it.
AUTO, WITHOUT = "auto", "basic"

# A change of algorithm must be worth so much (10% of a call): less is noise.
CHANGE = log(1.1)
# No rank knows the bytes of these: one algorithm for all.
UNKNOWN_BYTES = ("alltoallv", "alltoallw")
UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"))


def load(path: Path) -> Times:
    """The times of a file that `save` wrote; none of one that does not exist.  Errors: ValueError for any other file."""
    if not path.exists():
        return {}
    try:
        return {
            function: {int(ranks): {int(size): dict(seconds) for size, seconds in sizes.items()} for ranks, sizes in of.items()}
            for function, of in json.loads(path.read_text(encoding="utf-8")).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} holds no times of `ompy tune`: {error}") from None


def save(path: Path, times: Times) -> None:
    """Whoever is interrupted here leaves the file as it was."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def own(seconds: Mapping[str, float]) -> dict[str, float]:
    """Those of the component's ways."""
    return {label: second for label, second in seconds.items() if label not in (AUTO, WITHOUT)}


def best(function: str, sizes: Mapping[int, Mapping[str, float]]) -> dict[int, str]:
    """A way for each size: the path of least time, in which a change costs as much as 10% of a call.

    bytes     8      64     512        of each way the logarithm of its time against the fastest; between
    ring      .9 --- .2 --- 0          two sizes, CHANGE for another way: Viterbi's algorithm
    bruck     0  --- 0 -/-- .3
    """
    change = float("inf") if function in UNKNOWN_BYTES else CHANGE
    paths: dict[str, tuple[float, list[str]]] = {}
    for seconds in sizes.values():
        mine = own(seconds)
        fastest = min(mine.values())
        least = min(paths.values(), default=(0.0, []))
        paths = {
            label: extended(paths.get(label), least, change, log(second / fastest), label) for label, second in mine.items()
        }
    _, path = min(paths.values())
    return dict(zip(sizes, path, strict=True))


def extended(
    same: tuple[float, list[str]] | None, least: tuple[float, list[str]], change: float, cost: float, label: str
) -> tuple[float, list[str]]:
    """The cheaper of the path that stays and the one that changes to a way, with that way at its end."""
    changed = (least[0] + change if least[1] else 0.0, least[1])
    before, path = min(same, changed) if same else changed
    return before + cost, [*path, label]


def thresholds(choices: Mapping[int, str]) -> dict[int, Way]:
    """From which size on each way serves: half way between the sizes on both sides of a change, a power of two."""
    found: dict[int, Way] = {}
    previous, size_before = "", 0
    for size, label in choices.items():
        if label != previous:
            found[1 << round(log2(size_before * size) / 2) if found else 0] = Way.parse(label)
        previous, size_before = label, size
    return found


def rules(times: Times) -> dict[str, dict[int, dict[int, Way]]]:
    """By function, ranks and first byte; a number of ranks with the rules of the one before has none of its own."""
    found: dict[str, dict[int, dict[int, Way]]] = {}
    for function, by_ranks in times.items():
        found[function] = {}
        last = ""
        for ranks in sorted(by_ranks):
            table = thresholds(best(function, dict(sorted(by_ranks[ranks].items()))))
            words = str({size: str(way) for size, way in table.items()})
            if words != last:
                found[function][ranks] = table
            last = words
    return found


def readable(size: int) -> str:
    for unit, name in UNITS:
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def entry(way: Way) -> str | dict[str, str | int]:
    """A way as a rules file has it."""
    if not way.numbers:
        return way.algorithm
    numbers = {name: readable(number) if name == "segmentsize" else number for name, number in way.numbers.items()}
    return {"algorithm": way.algorithm, **numbers}


def toml(value: str | int | dict[str, str | int]) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(it)}" for name, it in value.items()) + " }"
    return json.dumps(value)


def as_toml(times: Times, heading: Sequence[str]) -> str:
    """A rules file."""
    lines = [f"# {words}" for words in heading]
    for function, by_ranks in rules(times).items():
        for ranks, table in by_ranks.items():
            lines += ["", f"[{function}.{ranks}]"]
            lines += [f"{readable(size)} = {toml(entry(way))}" for size, way in table.items()]
    return "\n".join(lines) + "\n"


def as_python(times: Times, heading: Sequence[str]) -> str:
    """The same as a Python module: the form of the tables that come with the component."""
    lines = ['"""' + "\n".join(heading) + '\n"""', "", "from __future__ import annotations", ""]
    lines += ["RULES: dict[str, dict[str, dict[str, str | dict[str, str | int]]]] = {"]
    for function, by_ranks in rules(times).items():
        lines.append(f'    "{function}": {{')
        for ranks, table in by_ranks.items():
            entries = (f"{json.dumps(readable(size))}: {json.dumps(entry(way))}" for size, way in table.items())
            lines.append(f'        "{ranks}": {{{", ".join(entries)}}},')
        lines.append("    },")
    return "\n".join([*lines, "}", ""])
