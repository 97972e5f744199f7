"""Nodes of one process, each with one process of group 1."""

from __future__ import annotations

from ompy_puma.application import Application
from ompy_puma.capability import GroupCapability
from ompy_puma.kernel import QKernel
from ompy_puma.loop_wire import Network

GROUP = 1
OWN = 0  # index of every process's capability for its own group


class Machine:
    """Nodes on a network.

    Attributes:
        network, kernels, processes: by node.
    """

    def __init__(self, nodes: int = 2, *, arrays: dict | None = None, **network) -> None:
        self.network = Network(**network)
        self.kernels = [QKernel(node, self.network.wire(node), engine=False) for node in range(nodes)]
        self.processes = [Application(GROUP, node, **(arrays or {})) for node in range(nodes)]
        for kernel, process in zip(self.kernels, self.processes, strict=True):
            kernel.create_context(process, 1)
            process.grant(GroupCapability(GROUP, [(node, 1) for node in range(nodes)]))

    def run(self) -> int:
        """Deliver everything."""
        return self.network.run()

    def send(self, portal: int, body=b"", *, source: int = 0, target: int = 1, **options):
        """A message between processes, delivered; returns what the send said."""
        verdict = self.processes[source].send(OWN, target, portal, body, **options)
        self.run()
        return verdict


def kinds(process: Application) -> list[str]:
    """What a process was told, in order."""
    return [happening.kind.name.removeprefix("EVENT_") for happening in process.events]


def drops(process: Application) -> list[str]:
    """Why messages were dropped, in order."""
    return [happening.reason.name.removeprefix("DROP_") for happening in process.events if happening.reason]
