"""plm/ssh: proxies through ssh, or whatever is called as ssh is."""

from __future__ import annotations

import shlex
import shutil

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="plm",
    name="ssh",
    version="0.1.0",
    interface=1,
    summary="proxies through ssh, which must need no password there, or through another command of the same form",
    parameters=(
        Parameter(
            "agent",
            str,
            "ssh -x -T -o BatchMode=yes",
            level=2,
            help="command that is called with a host and a line for its shell, as ssh is; `--launch-agent` sets it",
        ),
    ),
    # For the kit of conformance: a command of ssh's form that reaches this machine alone, and a name that no network has.
    capabilities={"trial": {"agent": "{python} -m ompy.testing.conformance.plm.shell"}, "unreachable": "nowhere.invalid"},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    agent = context.value("agent")
    try:
        words = shlex.split(agent)
    except ValueError as error:
        return Refusal(f"plm_ssh_agent {agent!r} is no command line: {error}")
    if not words or shutil.which(words[0]) is None:
        return Refusal(f"there is no command {words[0] if words else agent!r} here (plm_ssh_agent)")
    from ompy_plm_ssh.module import SshPlm

    return Offer(modules=[SshPlm(words)], priority=10)
