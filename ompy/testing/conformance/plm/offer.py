"""What the component answers: a module, and command lines."""

from __future__ import annotations

from ompy.mca.plm import Agent
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.plm.rank import PlmRank

check = Collection()

COMMAND = ("env", "python", "-m", "proxy")


@check("query", "launcher")
def a_query_makes_a_module_and_nothing_else(rank: PlmRank) -> None:
    """Twice, as in two launchers."""
    before = rank.belongings()
    if rank.asked() is rank.module:
        raise Breach("query", "two queries answer with one module")
    unchanged(before, rank.belongings(), "`query`")


@check("agents", "launcher")
def every_host_has_one_agent(rank: PlmRank) -> None:
    before = rank.belongings()
    agents = rank.module.agents(list(rank.hosts), list(COMMAND))
    unchanged(before, rank.belongings(), "`agents`")
    if not isinstance(agents, list) or not all(isinstance(agent, Agent) for agent in agents):
        raise Breach("agents", f"`agents` answers {agents!r}, no list of agents")
    if found := [agent for agent in agents if not agent.words or not all(isinstance(word, str) for word in agent.words)]:
        raise Breach("agents", f"{found[0].words} is no command line")
    named = sorted(host for agent in agents for host in agent.hosts)
    if named != sorted(rank.hosts):
        raise Breach("agents", f"for the hosts {rank.hosts} there are agents of {[agent.hosts for agent in agents]}")


def unchanged(before: dict[str, object], after: dict[str, object], what: str) -> None:
    if changed := [name for name, value in before.items() if after[name] != value]:
        raise Breach("launcher", f"{what} changes {', '.join(changed)}")
