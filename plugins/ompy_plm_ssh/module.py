"""A shell's line on each host."""

from __future__ import annotations

import shlex

from ompy.mca.plm import Agent, Plm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SshPlm(Plm):
    """One agent a host.

    Parameters:
        words: command to which host and line are added.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)

    def agent(self, host: str, command: Sequence[str]) -> Agent:
        return Agent([*self.words, host, "exec " + shlex.join(command)], [host])
