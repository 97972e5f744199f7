"""One step of the allocation, a task on each host."""

from __future__ import annotations

from ompy.mca.plm import Agent, Plm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SlurmPlm(Plm):
    """All proxies by one srun, which hands its standard input to each.

    Parameters:
        arguments: further options of srun.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)

    def agents(self, hosts: Sequence[str], command: Sequence[str]) -> list[Agent]:
        count = str(len(hosts))
        # The ranks' processors are for the proxies to share out, and a step of the ranks' own may run beside.
        words = ["srun", "--nodes", count, "--ntasks", count, "--ntasks-per-node=1", "--nodelist", ",".join(hosts)]
        words += ["--mpi=none", "--cpu-bind=none", "--overlap", "--kill-on-bad-exit=0", "--quiet", *self.arguments]
        return [Agent([*words, *command, "--name-from", "SLURMD_NODENAME"], hosts)]
