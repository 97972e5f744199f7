"""Decision rules: which algorithm serves a function, by number of ranks and by bytes.

A rules file is TOML; the tables that come with the component hold the same as Python (`tables/`):

    [bcast.4]                                      from 4 ranks on, up to the next table of bcast
    0 = "binomial"                                 from 0 bytes on
    64KiB = { algorithm = "chain", segmentsize = "16KiB", chain_fanout = 2 }

`ompy.mca.scheduled_coll` says whose bytes decide for each function.
"""

from __future__ import annotations

from ompy.mca.errors import ParameterError, suggestion
from ompy_coll_tuned.algorithms import ALGORITHMS, TUNINGS, algorithm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Rule:
    """What serves from so many bytes on.

    Attributes:
        from_bytes: the first size.
        algorithm: its name.
        segment, fanout: as `Tuning` has them.
    """

    __slots__ = ("algorithm", "fanout", "from_bytes", "segment")

    def __init__(self, from_bytes: int, algorithm: str, segment: int = 0, fanout: int = 0) -> None:
        self.from_bytes = from_bytes
        self.algorithm = algorithm
        self.segment = segment
        self.fanout = fanout

    def __repr__(self) -> str:
        return f"<from {self.from_bytes} bytes {self.algorithm}, segment {self.segment}, fanout {self.fanout}>"


class Rules:
    """Rules of some functions.

    Attributes:
        source: where they come from, for people.
        tables: function -> number of ranks from which on -> rules by ascending bytes, the first from 0.
    """

    __slots__ = ("source", "tables")

    def __init__(self, source: str, tables: dict[str, dict[int, list[Rule]]]) -> None:
        self.source = source
        self.tables = tables

    def of(self, function: str, size: int) -> list[Rule]:
        """Those for so many ranks: of the table for the most ranks up to that, else of the first."""
        table = self.tables[function]
        return table[max((ranks for ranks in table if ranks <= size), default=min(table))]


def make_rule(function: str, from_bytes: int, name: str, settings: Mapping[str, int]) -> Rule:
    """A rule with what its algorithm takes of the settings (`segmentsize`, `tree_fanout`, `chain_fanout`), or the defaults."""
    taken = algorithm(function, name)
    segment = settings.get("segmentsize", 0) if taken.segmented else 0
    fanout = settings.get(taken.fanout, TUNINGS[taken.fanout][0]) if taken.fanout else 0
    return Rule(from_bytes, name, segment, fanout)


def read(path: str) -> Rules:
    """The rules of a file.  Raises ParameterError, which names the file, the entry, and what was expected."""
    import tomllib

    try:
        with open(path, "rb") as stream:
            return parse(tomllib.load(stream), f"rules file {path}")
    except OSError as error:
        raise ParameterError(f"rules file {path}: {error.strerror} (named by coll_tuned_dynamic_rules_filename)") from None
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"rules file {path} is no TOML: {error}") from None


def parse(document: Mapping[str, object], source: str) -> Rules:
    """Rules from the nested mappings that a file holds."""
    tables: dict[str, dict[int, list[Rule]]] = {}
    for function, by_ranks in document.items():
        if function not in ALGORITHMS:
            known = list(ALGORITHMS)
            raise wrong(source, f"[{function}]", f"is no collective of coll/tuned; known: {', '.join(known)}", function, known)
        tables[function] = {}
        if not by_ranks:
            raise wrong(source, f"[{function}]", "no tables such as [bcast.4]")
        for ranks, by_bytes in mapping(by_ranks, source, f"[{function}]", "tables such as [bcast.4]").items():
            where = f"[{function}.{ranks}]"
            if not ranks.isdigit() or int(ranks) < 1:
                raise wrong(source, where, f"{ranks!r} is no number of ranks, such as 4")
            entries = mapping(by_bytes, source, where, 'entries such as 64KiB = "ring"')
            rules = sorted((parse_rule(function, *it, source, where) for it in entries.items()), key=first_byte)
            if not rules or rules[0].from_bytes:
                raise wrong(source, where, 'no entry for the smallest messages: there must be one such as 0 = "binomial"')
            tables[function][int(ranks)] = rules
    return Rules(source, tables)


def first_byte(rule: Rule) -> int:
    return rule.from_bytes


def parse_rule(function: str, size: str, entry: object, source: str, table: str) -> Rule:
    where = f"{table} {size}"
    settings = dict(mapping({"algorithm": entry} if isinstance(entry, str) else entry, source, where, "an algorithm's name"))
    name = settings.pop("algorithm", None)
    names = [it.name for it in ALGORITHMS[function]]
    if name not in names:
        raise wrong(source, where, f"{function} has no algorithm {name!r}; known: {', '.join(names)}", str(name), names)
    chosen = algorithm(function, str(name))
    taken = chosen.tunings
    numbers = {}
    for key, value in settings.items():
        if key not in taken:
            listing = ", ".join(taken) or "nothing"
            raise wrong(source, where, f"{name} takes no {key}; it takes {listing}", key, list(taken))
        number = byte_count(value) if key == "segmentsize" else value
        _, least, most = TUNINGS[key]
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            expected = "bytes, such as 16KiB" if key == "segmentsize" else f"{least} to {most}"
            raise wrong(source, where, f"{key} is {value!r}; expected {expected}")
        numbers[key] = number
    from_bytes = byte_count(size)
    if from_bytes is None:
        raise wrong(source, where, f"{size!r} is no number of bytes, such as 0, 8192 or 64KiB")
    return make_rule(function, from_bytes, str(name), numbers)


def byte_count(value: object) -> int | None:
    """A number of bytes, written as one or with a unit, such as 64KiB; None when it is none."""
    unit = str(value).lstrip("0123456789")
    digits = str(value).removesuffix(unit)
    return int(digits) * UNITS[unit.strip()] if digits.isdigit() and unit.strip() in UNITS else None


def mapping(value: object, source: str, where: str, expected: str) -> Mapping[str, object]:
    if isinstance(value, dict):
        return {str(key): entry for key, entry in value.items()}
    raise wrong(source, where, f"expected {expected}, not {value!r}")


def wrong(source: str, where: str, words: str, name: str = "", known: list[str] | None = None) -> ParameterError:
    return ParameterError(f"{source}: {where}: {words}.{suggestion(name, known) if known else ''}")
