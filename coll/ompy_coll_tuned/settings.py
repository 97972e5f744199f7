"""What a person has set of coll/tuned, and the rules that come with it."""

from __future__ import annotations

from ompy.mca.coll_rules import Rules, Settings
from ompy.mca.loading import import_module
from ompy_coll_tuned.algorithms import CATALOGUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What `tables/` holds, in words.
TABLES = {"host": "measured within a host", "network": "measured over a network", "published": "Thakur et al. 2005"}
# Ranks; for more, the published rules serve.
MOST_MEASURED = 8


class TunedSettings(Settings):
    """One communicator's.

    Parameters:
        forced, tunings, file: as `Settings` has them.
        within_host: whether the rules are to be the ones measured within one host, or over a network.
    """

    def __init__(
        self,
        forced: Mapping[str, str] | None = None,
        tunings: Mapping[str, Mapping[str, int]] | None = None,
        file: Rules | None = None,
        within_host: bool = False,
    ) -> None:
        super().__init__(CATALOGUE, forced, tunings, file)
        self.within_host = within_host

    def built_in(self, size: int) -> Rules:
        return built_in(size, self.within_host)


# By table.
kept: dict[str, Rules] = {}


def built_in(size: int, within_host: bool) -> Rules:
    """The rules that come with the component, for so many ranks."""
    name = "published" if size > MOST_MEASURED else "host" if within_host else "network"
    if name not in kept:
        kept[name] = CATALOGUE.parse(import_module(f"ompy_coll_tuned.tables.{name}").RULES, TABLES[name])
    return kept[name]
