"""Decision rules of collective components: which named algorithm serves a function, by number of ranks and by bytes.

A component has a *catalogue* of its algorithms, from which its parameters follow too.  A rules file is TOML; the tables that
come with a component hold the same as Python:

    [bcast.4]                                      from 4 ranks on, up to the next table of bcast
    0 = "binomial"                                 from 0 bytes on
    64KiB = { algorithm = "chain", segmentsize = "16KiB", chain_fanout = 2 }

`ompy.mca.scheduled_coll` says whose bytes decide for each function.
"""

from __future__ import annotations

from ompy.mca.component import Parameter
from ompy.mca.errors import ParameterError, suggestion
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy.mca.component import Context

AUTO = "auto"
ANY, EVEN, POWER_OF_TWO = "any", "even", "a power of two"
BY_NAME = "asked for by name"
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# What can be set of some algorithms beside which of them: default, least and most; and in words.
TUNINGS = {
    "segmentsize": (0, 0, 1 << 40),
    "tree_fanout": (2, 2, 16),
    "chain_fanout": (4, 1, 32),
}
HELP = {
    "segmentsize": "bytes of a piece of a long message, where {function}_algorithm names one that takes it; 0: in one piece",
    "tree_fanout": "radix of a k-nomial tree, where {function}_algorithm names one, {least} to {most}",
    "chain_fanout": "chains from the root, where {function}_algorithm names them, {least} to {most}",
}


class Algorithm:
    """One way to carry a collective out.

    Attributes:
        name: as the parameter takes it.
        summary: one line for people.
        ordered: keeps the ranks' order in a reduction, and so serves operations that don't commute.
        sizes: numbers of ranks that it can serve: any, even ones, powers of two.
        otherwise: the algorithm that serves a call which this one can't: for its number of ranks, or for its operation.
        segmented: takes a segment size: a long message then travels in pieces.
        fanout: how the parameter of its fan-out is called, "tree_fanout" or "chain_fanout"; empty when it takes none.
    """

    __slots__ = ("fanout", "name", "ordered", "otherwise", "segmented", "sizes", "summary")

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        ordered: bool = True,
        sizes: str = ANY,
        otherwise: str = "",
        segmented: bool = False,
        fanout: str = "",
    ) -> None:
        self.name = name
        self.summary = summary
        self.ordered = ordered
        self.sizes = sizes
        self.otherwise = otherwise
        self.segmented = segmented
        self.fanout = fanout

    @property
    def tunings(self) -> tuple[str, ...]:
        """What can be set of it."""
        return (("segmentsize",) if self.segmented else ()) + ((self.fanout,) if self.fanout else ())

    def serves(self, size: int) -> bool:
        """Whether it can serve so many ranks."""
        return self.sizes == ANY or (size % 2 == 0 if self.sizes == EVEN else size & (size - 1) == 0)


class Rule:
    """What serves from so many bytes on.

    Attributes:
        from_bytes: the first size.
        algorithm: its name.
        segment: bytes of a piece of a message on its way; 0: in one piece.
        fanout: of its tree, where it has one.
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


class Catalogue:
    """The algorithms of a component, by function.

    Parameters:
        component: its name.
        algorithms: of each function, those that it has.
    """

    def __init__(self, component: str, algorithms: Mapping[str, tuple[Algorithm, ...]]) -> None:
        self.component = component
        self.algorithms = algorithms
        self.files: dict[str, Rules] = {}

    def algorithm(self, function: str, name: str) -> Algorithm:
        return next(it for it in self.algorithms[function] if it.name == name)

    def tunings(self, function: str) -> list[str]:
        """What can be set of a function's algorithms."""
        return [name for name in TUNINGS if any(name in it.tunings for it in self.algorithms[function])]

    # -- what a component declares

    def parameters(self) -> list[Parameter]:
        """Those by which a person chooses: of each function the algorithm and what can be set of it, and a file of rules."""
        return [
            Parameter(
                "use_dynamic_rules",
                bool,
                True,
                level=6,
                scope="all",
                help="heed the file of rules that dynamic_rules_filename names",
            ),
            Parameter(
                "dynamic_rules_filename",
                str,
                "",
                level=6,
                scope="all",
                help="file of rules, the same on every rank, that go before the component's; `ompy tune` writes one",
            ),
            *(parameter for function in self.algorithms for parameter in self.parameters_of(function)),
        ]

    def parameters_of(self, function: str) -> list[Parameter]:
        words = "; ".join(f"{it.name}: {it.summary}" for it in self.algorithms[function])
        found = [
            Parameter(
                f"{function}_algorithm",
                str,
                AUTO,
                level=5,
                scope="all",
                choices=(AUTO, *(it.name for it in self.algorithms[function])),
                help=f"algorithm of {function}, wherever it can serve, whatever the rules say. {words}",
            )
        ]
        for tuning in self.tunings(function):
            default, least, most = TUNINGS[tuning]
            unit = "bytes" if tuning == "segmentsize" else "branches"
            words = HELP[tuning].format(function=function, least=least, most=most)
            name, bounds = f"{function}_{tuning}", (least, most)
            found.append(Parameter(name, int, default, unit=unit, range=bounds, level=5, help=words, scope="all"))
        return found

    def capabilities(self) -> dict[str, object]:
        """What it declares of them: names, what can be set of each, and which numbers of ranks it serves."""
        return {
            "algorithms": {function: tuple(it.name for it in its) for function, its in self.algorithms.items()},
            "tunings": {function: {it.name: it.tunings for it in its} for function, its in self.algorithms.items()},
            "sizes": {function: {it.name: it.sizes for it in its} for function, its in self.algorithms.items()},
        }

    # -- what a person has set

    def forced(self, context: Context) -> dict[str, str]:
        """Function -> algorithm that the component's own parameters name, or those that all components heed."""
        forced = {}
        for function, known in self.algorithms.items():
            own: str = context.value(f"{function}_algorithm")
            of_all: str = registry.value(f"coll_{function}_algorithm")
            if own != AUTO:
                forced[function] = own
            elif any(it.name == of_all for it in known):
                forced[function] = of_all
        return forced

    def numbers(self, context: Context, forced: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """What is set of those: {"segmentsize": ..., "tree_fanout": ..., "chain_fanout": ...}, by function."""
        return {function: {name: context.value(f"{function}_{name}") for name in self.tunings(function)} for function in forced}

    def file(self, context: Context) -> Rules | None:
        """The rules of the file that a person names, read once; None where there is none."""
        path = context.value("dynamic_rules_filename") if context.value("use_dynamic_rules") else ""
        if path and path not in self.files:
            self.files[path] = self.read(path)
        return self.files.get(path)

    # -- rules

    def make_rule(self, function: str, from_bytes: int, name: str, settings: Mapping[str, int]) -> Rule:
        """A rule with what its algorithm takes of the settings (`segmentsize`, `tree_fanout`, `chain_fanout`), or the
        defaults."""
        taken = self.algorithm(function, name)
        segment = settings.get("segmentsize", 0) if taken.segmented else 0
        fanout = settings.get(taken.fanout, TUNINGS[taken.fanout][0]) if taken.fanout else 0
        return Rule(from_bytes, name, segment, fanout)

    def read(self, path: str) -> Rules:
        """The rules of a file.  Raises ParameterError, which names the file, the entry, and what was expected."""
        import tomllib

        try:
            with open(path, "rb") as stream:
                return self.parse(tomllib.load(stream), f"rules file {path}")
        except OSError as error:
            named = f"named by coll_{self.component}_dynamic_rules_filename"
            raise ParameterError(f"rules file {path}: {error.strerror} ({named})") from None
        except tomllib.TOMLDecodeError as error:
            raise ParameterError(f"rules file {path} is no TOML: {error}") from None

    def parse(self, document: Mapping[str, object], source: str) -> Rules:
        """Rules from the nested mappings that a file holds."""
        tables: dict[str, dict[int, list[Rule]]] = {}
        for function, by_ranks in document.items():
            if function not in self.algorithms:
                known = list(self.algorithms)
                words = f"is no collective of coll/{self.component}; known: {', '.join(known)}"
                raise wrong(source, f"[{function}]", words, function, known)
            tables[function] = {}
            if not by_ranks:
                raise wrong(source, f"[{function}]", "no tables such as [bcast.4]")
            for ranks, by_bytes in mapping(by_ranks, source, f"[{function}]", "tables such as [bcast.4]").items():
                where = f"[{function}.{ranks}]"
                if not ranks.isdecimal() or int(ranks) < 1:
                    raise wrong(source, where, f"{ranks!r} is no number of ranks, such as 4")
                entries = mapping(by_bytes, source, where, 'entries such as 64KiB = "ring"')
                rules = sorted((self.parse_rule(function, *it, source, where) for it in entries.items()), key=first_byte)
                if not rules or rules[0].from_bytes:
                    raise wrong(source, where, 'no entry for the smallest messages: there must be one such as 0 = "binomial"')
                tables[function][int(ranks)] = rules
        return Rules(source, tables)

    def parse_rule(self, function: str, size: str, entry: object, source: str, table: str) -> Rule:
        where = f"{table} {size}"
        given = {"algorithm": entry} if isinstance(entry, str) else entry
        settings = dict(mapping(given, source, where, "an algorithm's name"))
        name = settings.pop("algorithm", None)
        names = [it.name for it in self.algorithms[function]]
        if name not in names:
            raise wrong(source, where, f"{function} has no algorithm {name!r}; known: {', '.join(names)}", str(name), names)
        taken = self.algorithm(function, str(name)).tunings
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
        return self.make_rule(function, from_bytes, str(name), numbers)


class Settings:
    """What decides on one communicator, the same on every rank: algorithms by name, a file, and what comes with a component.

    Parameters:
        catalogue: the component's.
        forced: function -> name of the algorithm to use wherever it can serve.
        tunings: function -> {"segmentsize": ..., "tree_fanout": ..., "chain_fanout": ...} of those.
        file: rules that go before those that come with the component.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        forced: Mapping[str, str] | None = None,
        tunings: Mapping[str, Mapping[str, int]] | None = None,
        file: Rules | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.forced = forced or {}
        self.tunings = tunings or {}
        self.file = file

    def built_in(self, size: int) -> Rules:
        """The rules that come with the component, for so many ranks."""
        raise NotImplementedError(f"coll/{self.catalogue.component} comes without rules")

    def rules(self, function: str, size: int) -> tuple[list[Rule], str]:
        """The rules of a function on so many ranks, and where they come from."""
        if function in self.forced:
            settings = self.tunings.get(function, {})
            return [self.catalogue.make_rule(function, 0, self.forced[function], settings)], BY_NAME
        source = self.file if self.file and function in self.file.tables else self.built_in(size)
        return source.of(function, size), source.source


def first_byte(rule: Rule) -> int:
    return rule.from_bytes


def byte_count(value: object) -> int | None:
    """A number of bytes, written as one or with a unit, such as 64KiB; None when it is none."""
    unit = str(value).lstrip("0123456789")
    digits = str(value).removesuffix(unit)
    return int(digits) * UNITS[unit.strip()] if digits.isdecimal() and unit.strip() in UNITS else None


def mapping(value: object, source: str, where: str, expected: str) -> Mapping[str, object]:
    if isinstance(value, dict):
        return {str(key): entry for key, entry in value.items()}
    raise wrong(source, where, f"expected {expected}, not {value!r}")


def wrong(source: str, where: str, words: str, name: str = "", known: list[str] | None = None) -> ParameterError:
    return ParameterError(f"{source}: {where}: {words}.{suggestion(name, known) if known else ''}")
