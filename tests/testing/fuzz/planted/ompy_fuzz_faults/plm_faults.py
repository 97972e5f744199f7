"""Ways to get a launcher of processes wrong, over the one that `ompy new plm` writes; each class has one."""

from __future__ import annotations

import os
import subprocess
import tempfile

from ompy_plm_planted import module as good

from ompy.mca.component import Offer, Refusal
from ompy.mca.plm import Agent

NOWHERE = "nowhere.invalid"
SHARED = None


def offer(fault: str) -> Offer | Refusal:
    global SHARED
    if fault == "RefusesWithoutReason":
        return Refusal("")
    made = globals()[fault] if fault else Planted
    if fault == "OffersTwo":
        return Offer(modules=[made(), made()])
    if fault == "OneForAllLaunchers":
        SHARED = SHARED or made()
        return Offer(modules=[SHARED])
    return Offer(modules=[made()])


class Planted(good.PlantedPlm):
    """Every host but one is this machine.

    Attributes:
        unreachable: what a shell does for that one.
        line: what a shell does with the command, which is its arguments; empty: no shell.
    """

    unreachable = f"echo there is no {NOWHERE} >&2; exit 255"
    line = ""

    def __init__(self) -> None:
        super().__init__(["env"])

    def agent(self, host, command):
        if host == NOWHERE:
            return Agent(["sh", "-c", self.unreachable], [host])
        return Agent(["sh", "-c", self.line, "agent", *command], [host]) if self.line else super().agent(host, command)


class RefusesWithoutReason(Planted):
    """See `offer`."""


class OffersTwo(Planted):
    """See `offer`."""


class OneForAllLaunchers(Planted):
    """See `offer`."""


class ForgetsAHost(Planted):
    def agents(self, hosts, command):
        return super().agents(hosts, command)[1:]


class StartsTwice(Planted):
    def agents(self, hosts, command):
        return 2 * super().agents(hosts, command)


class EachSpeaksForAll(Planted):
    def agents(self, hosts, command):
        return [Agent(agent.words, hosts) for agent in super().agents(hosts, command)]


class AnswersWithWords(Planted):
    def agents(self, hosts, command):
        return [agent.words for agent in super().agents(hosts, command)]


class SetsVariables(Planted):
    def agents(self, hosts, command):
        os.environ["HOSTS_OF_THE_JOB"] = ",".join(hosts)
        return super().agents(hosts, command)


class Moves(Planted):
    def agents(self, hosts, command):
        os.chdir("/")
        return super().agents(hosts, command)


class StartsAlready(Planted):
    def agents(self, hosts, command):
        self.daemon = subprocess.Popen(["sleep", "60"])
        return super().agents(hosts, command)


class KeepsAFileOpen(Planted):
    def agents(self, hosts, command):
        self.file = os.open(os.devnull, os.O_RDONLY)
        return super().agents(hosts, command)


class QuotesNothing(Planted):
    line = 'eval "$*"'


class SplitsAtBlanks(Planted):
    line = "exec $*"


class LosesEmptyWords(Planted):
    def agent(self, host, command):
        return super().agent(host, [word for word in command if word])


class StartsProxiesTwice(Planted):
    # What is started in the background has no input: this one gets the other descriptor.
    line = 'exec 3<&0; "$@" <&3 & exec "$@"'


class OneNameForAll(Planted):
    def agents(self, hosts, command):
        return [self.agent(host, [*command, "--name", hosts[0]]) for host in hosts]


class NameOfNoVariable(Planted):
    def agents(self, hosts, command):
        return [self.agent(host, [*command, "--name-from", "HOST_OF_THIS_STEP"]) for host in hosts]


class OneAfterTheOther(Planted):
    """Each waits for a lock that the others hold."""

    def agents(self, hosts, command):
        lock = os.path.join(tempfile.gettempdir(), "faulty.lock")
        return [Agent(["flock", lock, *agent.words], agent.hosts) for agent in super().agents(hosts, command)]


class NoInput(Planted):
    line = 'exec "$@" < /dev/null'


class CutsLongInput(Planted):
    line = 'head -c 65536 | "$@"'


class TextAlone(Planted):
    line = 'tr -d "\\000" | "$@"'


class InputHasNoEnd(Planted):
    line = '{ cat; sleep 60; } | "$@"'


class SecretInTheEnvironment(Planted):
    line = 'TOLD=$(head -n 1); export TOLD; echo "$TOLD" | "$@"'


class SecretOnACommandLine(Planted):
    line = 'exec sh -c \'told=$1; shift; echo "$told" | "$@"\' agent "$(head -n 1)" "$@"'


class SecretInTheOutput(Planted):
    line = 'tee /dev/stderr | "$@"'


class SecretInAFile(Planted):
    line = 'cat > "$TMPDIR/told.$$"; "$@" < "$TMPDIR/told.$$"; status=$?; rm "$TMPDIR/told.$$"; exit $status'


class NoOutput(Planted):
    line = 'exec "$@" > /dev/null'


class NoErrors(Planted):
    line = 'exec "$@" 2> /dev/null'


class OutputAtTheEnd(Planted):
    line = 'said=$("$@"); status=$?; echo "$said"; exit $status'


class CutsLongLines(Planted):
    line = '"$@" 2>&1 | cut -c 1-500'


class Chats(Planted):
    line = 'echo welcome; exec "$@"'


class NowhereIsWell(Planted):
    unreachable = f"echo there is no {NOWHERE} >&2"


class NowhereIsPassedOver(Planted):
    unreachable = "exit 1"


class TriesNowhereForEver(Planted):
    unreachable = "echo trying again >&2; sleep 60"


class NoProgramIsWell(Planted):
    line = '"$@"; status=$?; [ $status = 127 ] && exit 0; exit $status'


class AlwaysWell(Planted):
    line = '"$@"; exit 0'


class NeverWell(Planted):
    line = '"$@"; exit 1'


class KilledIsWell(Planted):
    line = '"$@" 2> /dev/stderr; status=$?; [ $status -gt 128 ] && exit 0; exit $status'


class StaysOn(Planted):
    line = '"$@"; status=$?; sleep 60; exit $status'


class LeavesAProcess(Planted):
    line = 'setsid sleep 60 > /dev/null 2>&1 < /dev/null & exec "$@"'


class LeavesAFile(Planted):
    line = 'echo "$#" > "$TMPDIR/faulty.$$"; exec "$@"'


class Talks(Planted):
    def agents(self, hosts, command):
        print(f"starting proxies on {', '.join(hosts)}", flush=True)
        return super().agents(hosts, command)
