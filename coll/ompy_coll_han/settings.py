"""The rules that come with coll/han."""

from __future__ import annotations

from ompy.mca.coll_rules import Rules, Settings
from ompy_coll_han.algorithms import CATALOGUE
from ompy_coll_han.tables import hosts

# Made once.
kept: list[Rules] = []


class HanSettings(Settings):
    """One communicator's: what a person has set, and otherwise the rules that were measured between two hosts."""

    def built_in(self, size: int) -> Rules:
        if not kept:
            kept.append(CATALOGUE.parse(hosts.RULES, "measured between two hosts"))
        return kept[0]
