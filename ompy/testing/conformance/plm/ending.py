"""Agents of proxies that end, well or not, and of hosts that can't be reached."""

from __future__ import annotations

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.plm.launch import Launch
from ompy.testing.conformance.plm.processes import children, command_of
from ompy.testing.conformance.plm.rank import PlmRank

check = Collection()

FAILURE, KILLED = 7, -9  # how a proxy ends
NO_PROGRAM = "/no/such/folder/no-such-program"


def finish(launch: Launch, *statuses: int) -> list[list[str]]:
    """Have the probes end so; returns the hosts of agents that were there until then."""
    launch.gather()
    launch.read()
    stayed = [running.agent.hosts for running in launch.stay]
    launch.end(statuses)
    if not launch.has_ended():
        stay = [running.hosts for running in launch.stay]
        raise Breach("end", f"{launch.rank.patience:g} s after the last proxy has ended the agents of {stay} run on")
    return stayed


@check("end", "status")
def agents_end_with_their_proxies(rank: PlmRank) -> None:
    with Launch(rank, rank.hosts) as launch:
        finish(launch)
        if wrong := [running for running in launch.running if running.status]:
            words = f"all proxies have ended with 0, and the agent of {wrong[0].hosts} with wait status {wrong[0].status}"
            raise Breach("status", words)


@check("status", "end")
def a_proxy_that_fails_is_told_of(rank: PlmRank) -> None:
    """By exiting, and by being killed."""
    for status in (FAILURE, KILLED):
        with Launch(rank, rank.hosts) as launch:
            stayed = finish(launch, status)
            for running in launch.running:
                has_failed = rank.hosts[0] in running.agent.hosts
                if running.agent.hosts in stayed and bool(running.status) != has_failed:
                    how = f"of {running.hosts} {'one' if has_failed else 'none'} has failed"
                    raise Breach("status", f"{how}, and their agent has ended with wait status {running.status}")


@check("left")
def nothing_is_left(rank: PlmRank) -> None:
    before = set(rank.temporary.rglob("*"))
    with Launch(rank, rank.hosts) as launch:
        finish(launch)
        if not launch.until(lambda: not children()):
            raise Breach("left", f"all proxies have ended, and {[command_of(pid) for pid in children()]} run on")
        if more := set(rank.temporary.rglob("*")) - before:
            raise Breach("left", f"all proxies have ended, and these files are left: {sorted(map(str, more))}")


@check("unreachable")
def a_command_that_is_not_there_is_told_of(rank: PlmRank) -> None:
    with Launch(rank, rank.hosts, command=["env", NO_PROGRAM]) as launch:
        failed(launch, rank.hosts, f"the command {NO_PROGRAM}")


@check("unreachable", needs="unreachable")
def a_host_that_can_t_be_reached_is_told_of(rank: PlmRank) -> None:
    with Launch(rank, [*rank.hosts, rank.unreachable]) as launch:
        failed(launch, [rank.unreachable], f"the host {rank.unreachable}")
        others = [running for running in launch.running if rank.unreachable not in running.agent.hosts]
        count = sum(len(running.agent.hosts) for running in others)
        if not launch.until(lambda: len(launch.came) >= count) or any(running.status is not None for running in others):
            words = f"{rank.unreachable} can't be reached, and of {count} proxies of other agents {len(launch.came)} run"
            raise Breach("unreachable", words)


def failed(launch: Launch, hosts: list[str], what: str) -> None:
    """Raises Breach unless every agent of these hosts fails, and says why."""
    concerned = [running for running in launch.running if set(hosts) & set(running.agent.hosts)]
    if not launch.until(lambda: all(running.status is not None for running in concerned)):
        raise Breach("unreachable", f"{what} is not there, and after {launch.rank.patience:g} s the agent still runs")
    for running in concerned:
        launch.until(lambda running=running: running.output < 0)  # type: ignore[misc]
        if not running.status:
            raise Breach("unreachable", f"{what} is not there, and the agent of {running.hosts} has ended with 0")
        if not any(line.startswith(running.hosts) for line in launch.lines):
            raise Breach("unreachable", f"{what} is not there, and the agent of {running.hosts} does not say so")
