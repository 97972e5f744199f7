"""What a person has set: algorithms by name, with their segment sizes and fan-outs, and a rules file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy_coll_tuned.rules import Rule, Rules

BY_NAME = "asked for by name"


class Settings:
    """One communicator's, the same on every rank.

    Parameters:
        forced: function -> name of the algorithm to use wherever it can serve.
        tunings: function -> {"segmentsize": ..., "tree_fanout": ..., "chain_fanout": ...} of those.
        file: rules that go before those that come with the component.
    """

    __slots__ = ("file", "forced", "tunings")

    def __init__(
        self,
        forced: Mapping[str, str] | None = None,
        tunings: Mapping[str, Mapping[str, int]] | None = None,
        file: Rules | None = None,
    ) -> None:
        self.forced = forced or {}
        self.tunings = tunings or {}
        self.file = file

    def rules(self, function: str, size: int) -> tuple[list[Rule], str]:
        """The rules of a function on so many ranks, and where they come from."""
        from ompy_coll_tuned.rules import make_rule

        if function in self.forced:
            return [make_rule(function, 0, self.forced[function], self.tunings.get(function, {}))], BY_NAME
        source = self.file if self.file and function in self.file.tables else built_in(size)
        return source.of(function, size), source.source


# By their source.
kept: dict[str, Rules] = {}


def built_in(size: int) -> Rules:
    """The rules that come with the component, for so many ranks."""
    from ompy_coll_tuned.published import FROM_RANKS, PUBLISHED

    name = "measured" if size < FROM_RANKS else "Thakur et al. 2005"
    if name not in kept:
        from ompy_coll_tuned.measured import MEASURED
        from ompy_coll_tuned.rules import parse

        kept[name] = parse(MEASURED if size < FROM_RANKS else PUBLISHED, name)
    return kept[name]


def read_once(path: str) -> Rules:
    """The rules of a file, which is read for the first communicator."""
    if path not in kept:
        from ompy_coll_tuned.rules import read

        kept[path] = read(path)
    return kept[path]
