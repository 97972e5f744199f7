"""What a person has set: algorithms by name, with their segment sizes and fan-outs, and a rules file."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy_coll_tuned.rules import Rule, Rules

BY_NAME = "asked for by name"
# What `tables/` holds, in words.
TABLES = {"host": "measured within a host", "network": "measured over a network", "published": "Thakur et al. 2005"}
# Ranks; for more, the published rules serve.
MOST_MEASURED = 8


class Settings:
    """One communicator's, the same on every rank.

    Parameters:
        forced: function -> name of the algorithm to use wherever it can serve.
        tunings: function -> {"segmentsize": ..., "tree_fanout": ..., "chain_fanout": ...} of those.
        file: rules that go before those that come with the component.
        within_host: whether those are to be the ones measured within one host, or over a network.
    """

    __slots__ = ("file", "forced", "tunings", "within_host")

    def __init__(
        self,
        forced: Mapping[str, str] | None = None,
        tunings: Mapping[str, Mapping[str, int]] | None = None,
        file: Rules | None = None,
        within_host: bool = False,
    ) -> None:
        self.forced = forced or {}
        self.tunings = tunings or {}
        self.file = file
        self.within_host = within_host

    def rules(self, function: str, size: int) -> tuple[list[Rule], str]:
        """The rules of a function on so many ranks, and where they come from."""
        from ompy_coll_tuned.rules import make_rule

        if function in self.forced:
            return [make_rule(function, 0, self.forced[function], self.tunings.get(function, {}))], BY_NAME
        source = self.file if self.file and function in self.file.tables else built_in(size, self.within_host)
        return source.of(function, size), source.source


# By table or file.
kept: dict[str, Rules] = {}


def built_in(size: int, within_host: bool) -> Rules:
    """The rules that come with the component, for so many ranks."""
    name = "published" if size > MOST_MEASURED else "host" if within_host else "network"
    if name not in kept:
        from ompy_coll_tuned.rules import parse

        kept[name] = parse(import_module(f"ompy_coll_tuned.tables.{name}").RULES, TABLES[name])
    return kept[name]


def read_once(path: str) -> Rules:
    """The rules of a file, which is read for the first communicator."""
    if path not in kept:
        from ompy_coll_tuned.rules import read

        kept[path] = read(path)
    return kept[path]
