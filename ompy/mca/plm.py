"""The contract of process launchers: how ompyrun's proxy is started on another host.

    ompyrun ---- agent (ssh n2 ...) ----> proxy on n2 ---> its ranks
       ^                                    |
       +------------ one connection --------+

Clauses are numbered and named: the conformance kit (`ompy conformance --mca plm NAME`) says which one was broken.

LIFE CYCLE
   1 query         In the launcher, where some rank is to run on another host; where there are more hosts than one process is
                   to start proxies for (`ompyrun_fan_out`) also in proxies, with the variables of the ranks of their hosts.  A
                   component offers one module when what it needs is here (a program, an allocation), and says what is missing
                   otherwise.  The highest priority serves.
   2 agents        Once: the command lines of this machine that start a proxy on each of some of the job's hosts, every one of
                   these in one of them.  `hosts` of each are those whose proxies it starts, and no others: where it fails,
                   these are named.
   3 launcher      `query` and `agents` start nothing, and leave the process that asks, the launcher's or a proxy's, as it is:
                   its variables, folder, signals and open files.

AN AGENT
   4 command       The launcher runs the words as they are, by no shell, in a session of their own.  On each of its hosts they
                   run the proxy's command once, whose words arrive one for one: with blanks, quotes, dollar signs, and what
                   else means something to a shell, and empty ones.
   5 name          A proxy learns from what stands behind its command what the launcher calls its host.
   6 together      The proxies of all hosts run at the same time: none waits until another one has ended.
   7 input         The agent's standard input reaches each of its proxies, to its last byte, and then ends.
   8 secret        Nobody else sees that input, for the job's secret is in it: it stands in no command line, environment or
                   output, and in no file.
   9 output        What proxies write to their standard output and error comes out of the agent's, whole, and while they run.
                   The launcher shows it to people; an agent that has nothing to complain of adds nothing.

WHAT GOES WRONG
  10 unreachable   Where a host can't be reached or the command can't be run there, its agent ends, soon, with a status other
                   than 0, and says why on its output.  Agents of other hosts go on.
  11 status        An agent that has stayed until its proxies have ended tells of one that has failed by a status other than 0,
                   and otherwise ends with 0.
  12 end           An agent may end when its proxies run; otherwise it ends soon after the last of them, whatever has ended
                   them.
  13 left          When all proxies have ended nothing is left of what an agent has started or made: no process, no file.  The
                   launcher may have been killed before; who has started a proxy does not end it, for it ends by itself.
  14 quiet         `query` and `agents` print nothing.

Which variables and folder a proxy is started with is for the agent and the host to choose: it gets those of its ranks from the
launcher, which takes an agent that ends before its proxies have called back as the failure of its hosts.  When the job is over
and an agent does not end soon, its process group is killed.
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

    Two capabilities are for the kit of conformance: `trial`, parameters under which every host is this machine, whatever it is
    called, `{python}` in their values the kit's interpreter; `unreachable`, a host that can't be reached all the same.
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
