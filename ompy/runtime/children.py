"""The proxies that one process has started, the launcher or a proxy itself, and the hosts that are reached through each.

    ompyrun --+-- a --+-- b            nine hosts, of which none starts more than three
              |       +-- c
              +-- d --+-- e
              |       +-- f
              +-- g --+-- h
                      +-- i

Each side of a link knows the other one by the job's secret.  A frame for a host further on says so in `to`, one from there in
`from`, and proxies hand both on.  Who loses a child has lost those behind it too: they hear nothing any more, and end.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial

from ompy.runtime import descriptors
from ompy.runtime.agents import Agents
from ompy.runtime.link import Link
from ompy.runtime.reception import Reception, addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from ompy.mca.plm import Agent, Plm
    from ompy.runtime.agents import Parent
    from ompy.runtime.link import Header
    from ompy.runtime.loop import Loop

    class Superior(Protocol):
        """Whose children they are."""

        def on_frame(self, host: str, header: Header, data: bytes) -> None:
            """The proxy of a host, a child's or one behind it, has said something."""

        def on_lost(self, hosts: list[str], reason: str) -> None:
            """The first of the hosts is lost, and with it the others, which are behind it."""

        def on_unreachable(self, hosts: list[str], words: str) -> None:
            """Children can't be started."""

        def say(self, text: str) -> None:
            """Lines for people."""

        def turn(self, limit: float | None = None) -> None:
            """Wait for something to happen, at most so many seconds, and deal with it."""


def branches(hosts: Sequence[str], fan_out: int) -> dict[str, list[str]]:
    """The hosts whose proxies one process starts, each with those behind it: as many as another one has, or one more.

    Parameters:
        fan_out: so many at most; 0 for all of them.
    """
    count = min(fan_out or len(hosts), len(hosts))
    begins = [len(hosts) * number // count for number in range(count)]
    return {hosts[at]: list(hosts[at + 1 : end]) for at, end in zip(begins, [*begins[1:], len(hosts)], strict=True)}


def proxy_command(module: str = "ompy.runtime.proxy") -> list[str]:
    """What runs a proxy, by this interpreter's path: the other hosts have ompy where this one has it."""
    path = os.environ.get("PYTHONPATH")
    words = [sys.executable, "-m", module]
    return ["env", f"PYTHONPATH={path}", *words] if path else words


class Children:
    """All of one process.

    Parameters:
        loop: watches their links.
        local: whose children their agents are.
        secret: the job's.
        limit: seconds of silence after which one is lost.
        hosts: all that are to be reached, each once.
        fan_out: as in `branches`.
        superior: is told.
    """

    def __init__(
        self,
        loop: Loop,
        local: Parent,
        secret: bytes,
        limit: float,
        hosts: Sequence[str],
        fan_out: int,
        superior: Superior,
    ) -> None:
        self.loop = loop
        self.secret = secret
        self.limit = limit
        self.superior = superior
        self.branches = branches(hosts, fan_out)
        self.child_of = {host: child for child, behind in self.branches.items() for host in (child, *behind)}
        self.links: dict[str, Link] = {}
        self.done: set[str] = set()
        self.agents = Agents(loop, local, superior.say, self.on_agent_end)
        self.reception: Reception | None = None

    @property
    def port(self) -> int:
        """At which they call; 0 where none has been started."""
        return 0 if self.reception is None else self.reception.port

    # -- start

    def start(self, plm: Plm, told: dict[str, Any]) -> None:
        """Start the proxies, which then call.

        Parameters:
            told: what they must know, but for whom to call and who is behind each.

        Errors: OSError when an agent can't be run, or there is no port.
        """
        descriptors.make_room(descriptors.A_PROXY * len(self.branches))
        self.reception = Reception(self.loop, self.secret, self.branches, self.admit)
        told = told | {"addresses": addresses(), "port": self.reception.port}
        for agent in plm.agents(list(self.branches), proxy_command()):
            told["behind"] = {host: self.branches[host] for host in agent.hosts}
            try:
                self.agents.start(agent, json.dumps(told).encode() + b"\n")
            except OSError as error:
                raise OSError(f"{agent.words[0]!r}: {error.strerror}") from None

    def admit(self, child: str, connection: socket.socket, outgoing: bytes, incoming: bytes) -> None:
        hear, lose = partial(self.hear, child), partial(self.lose, child)
        self.links[child] = Link(self.loop, connection, outgoing, incoming, self.limit, hear, lose)

    def on_agent_end(self, agent: Agent, words: str) -> None:
        """An agent may leave its proxies alone; one that ends before they have called has failed."""
        missing = [host for host in agent.hosts if host not in self.links]
        if missing:
            self.superior.on_unreachable(missing, words)

    # -- what is said

    def hear(self, child: str, header: Header, data: bytes) -> None:
        host = header.pop("from", child)
        if host == child and header["cmd"] == "done":
            self.done.add(child)
        self.superior.on_frame(host, header, data)

    def lose(self, child: str, reason: str) -> None:
        if child not in self.done:
            self.superior.on_lost([child, *self.branches[child]], reason)

    def send(self, host: str, command: str, data: bytes = b"", /, **header: Any) -> None:
        """To the proxy of one host; nothing happens where that is lost."""
        child = self.child_of[host]
        if child in self.links:
            self.links[child].send(command, data, **header if host == child else header | {"to": host})

    def send_all(self, command: str, **header: Any) -> None:
        """To every proxy."""
        for link in self.links.values():
            link.send(command, **header, is_for_all=True)

    def pause(self, is_paused: bool) -> None:
        """This process is about to be stopped, or goes on: children are not to take its silence for its end."""
        for link in self.links.values():
            link.send("pause", is_paused=is_paused)
            link.flush(1.0)
            link.pause(False)

    # -- the end

    def end(self, has_failed: Callable[[], bool], has_reader: bool) -> None:
        """Whatever runs on all those hosts ends at once, and then the proxies.

        Parameters:
            has_failed: whether the job has, as a time limit or a signal may say meanwhile.
            has_reader: somebody takes what the ranks have written.
        """
        if self.reception is not None:
            self.reception.close()
        told = self.tell_end(has_failed(), has_reader)
        while any(link.is_open and child not in self.done for child, link in self.links.items()):
            self.superior.turn()
            if has_failed() != told:
                told = self.tell_end(has_failed(), has_reader)
        for link in self.links.values():
            link.close()
        self.agents.end(self.links.keys() - self.done)

    def tell_end(self, has_failed: bool, has_reader: bool) -> bool:
        for link in self.links.values():
            link.send("end", has_failed=has_failed, has_reader=has_reader)
        return has_failed
