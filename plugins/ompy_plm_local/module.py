"""A child of the launcher for each host."""

from __future__ import annotations

from ompy.mca.plm import Agent, Plm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LocalPlm(Plm):
    """Runs the proxies' command as it is."""

    def agent(self, host: str, command: Sequence[str]) -> Agent:
        return Agent(command, [host])
