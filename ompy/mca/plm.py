"""The contract of process launchers: how ompyrun's proxy is started on another host.

    ompyrun ---- agent (ssh n2 ...) ----> proxy on n2 ---> its ranks
       ^                                    |
       +------------ one connection --------+

LIFE CYCLE
  query      In the launcher, where some rank is to run on another host.  A component offers itself when what it needs is here
             (a program, an allocation), and says what is missing otherwise.  The highest priority serves the whole job.
  agents     Once: the command lines that start a proxy on each host.  The launcher runs them, gives each on its standard input
             what the proxies must know, shows what they write, and takes one that ends before its proxies have called back as
             the failure of its hosts.  An agent may end when the proxies run, or stay until they have ended.

What must arrive on the host: the command's words, one for one, and the agent's standard input to its end, the latter unseen by
others, because the job's secret is there; nothing secret is among the words.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERFACE = 1
interface = INTERFACE  # as the compiled contracts have it


class Agent:
    """A command line of this machine that starts proxies.

    Parameters:
        words: the command line.
        hosts: names of the hosts whose proxies it starts.
    """

    def __init__(self, words: Sequence[str], hosts: Sequence[str]) -> None:
        self.words = list(words)
        self.hosts = list(hosts)


class Plm:
    """Starts proxies on hosts.

    A component has `agent`, for one host; one whose engine starts many at once has `agents` instead.
    """

    def agent(self, host: str, command: Sequence[str]) -> Agent:
        """What starts `command` on a host."""
        raise NotImplementedError

    def agents(self, hosts: Sequence[str], command: Sequence[str]) -> list[Agent]:
        """What starts a proxy on each host.

        Parameters:
            hosts: as they are called on the command line or by the allocation; each once.
            command: words of the proxy.  `--name HOST` goes behind them, or `--name-from VARIABLE`, where the proxy finds its
                host's name in its environment.
        """
        return [self.agent(host, [*command, "--name", host]) for host in hosts]
