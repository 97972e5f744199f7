"""What the command line says of where ranks run: hosts, how ranks go round them, and their processors."""

from __future__ import annotations

import os

from ompy.cli.command_line import Segment, UsageError
from ompy.runtime import hostfile, mapping
from ompy.runtime.binding import POLICIES, Binding
from ompy.runtime.topology import KINDS, Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ompy.runtime.job import Job

# How ranks go round: objects of a host, while the hosts fill one after the other, or hosts.
ORDERS = ("slot", *KINDS, "node", "seq")
RANK_ORDERS = ("slot", "node", "fill", *KINDS)
# Open MPI's former words.
FORMER = {"socket": "package"}


def number(text: str, name: str, kind: type[int] | type[float], least: float) -> float:
    """An option's value as a number."""
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if not least <= value < float("inf"):
        words = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} takes {words} of at least {least:g}, found {text!r}")
    return value


class Policy:
    """What `--map-by` says.

    Attributes:
        order: one of `ORDERS`.
        a_host: ranks on each host; 0: not said.
        an_object: ranks on each object that `order` names; 0: not said.
        processors: for each rank; 0: not said.
    """

    def __init__(self, text: str) -> None:
        self.a_host = 0
        self.an_object = 0
        self.processors = 0
        self.order = "slot"
        self.oversubscribe = self.nooversubscribe = False
        words = [FORMER.get(word, word) for word in text.lower().split(":")]
        if words[0] == "ppr":
            if len(words) < 3 or words[2] not in ("node", *KINDS):
                raise UsageError(f"--map-by {text}: expected ppr:N:OBJECT, where OBJECT is node, {', '.join(KINDS)}")
            each = int(number(words[1], f"--map-by ppr:N:{words[2]}", int, 1))
            if words[2] == "node":
                self.a_host = each
            else:
                self.order, self.an_object = words[2], each
            words = words[2:]
        elif words[0] in ORDERS:
            self.order = words[0]
        elif words[0]:
            raise UsageError(f"--map-by takes {', '.join(ORDERS)}, ppr:N:OBJECT, found {text!r}; --rankfile places each rank")
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name == "pe":
                self.processors = int(number(value, "--map-by ...:PE=N", int, 1))
            elif name in ("oversubscribe", "nooversubscribe"):
                setattr(self, name, True)
            else:
                raise UsageError(f"--map-by {text}: PE=N, OVERSUBSCRIBE and NOOVERSUBSCRIBE can stand here, found {word!r}")


class Placement:
    """Where the ranks of a job run.

    Parameters:
        segment: every option of the command line.

    Attributes:
        hosts: each once, in order; none where nothing says more than "here".
    """

    def __init__(self, segment: Segment) -> None:
        given = segment.options
        self.policy = Policy((segment.last("map-by") or [""])[0])
        self.rankfile = segment.last("rankfile")
        self.lines = hosts_given(segment)
        self.hosts = hostfile.merged(self.lines)
        self.topology = Topology.here()
        self.a_host = self.policy.a_host
        if self.policy.an_object:
            # Hosts are taken to be like this one: how many ranks there are is said before another one has been asked.
            self.a_host = self.policy.an_object * len(self.topology.objects(self.policy.order))
        if a_host := segment.last("npernode"):
            self.a_host = int(number(a_host[0], "--npernode", int, 1))
        self.oversubscribe = "oversubscribe" in given or self.policy.oversubscribe
        self.nooversubscribe = "nooversubscribe" in given or self.policy.nooversubscribe
        self.rank_order = word_of(segment, "rank-by", RANK_ORDERS).partition(":")[0]
        self.binding = binding(segment, self.policy, self.rank_order)

    @property
    def default_ranks(self) -> int:
        """How many ranks there are when nobody says so."""
        if self.policy.order == "seq" and self.lines:
            return len(self.lines)
        if self.a_host:
            return self.a_host * max(1, len(self.hosts))
        return sum(host.slots for host in self.hosts) or len(self.topology.processors)

    @property
    def is_here(self) -> bool:
        """No other host is given."""
        return all(hostfile.is_local(host.name) for host in self.hosts)

    def place(self, ranks: int) -> list[mapping.Place]:
        """A host for each rank, and processors for those here.

        Errors: UsageError, ValueError, OSError.
        """
        here = os.uname().nodename
        if self.rankfile:
            names = [host.name for host in self.hosts]
            found = mapping.read_rank_file(self.rankfile[0], ranks, names)
        else:
            found = [mapping.Place(here if hostfile.is_local(name) else name) for name in self.names(ranks)]
        self.bind(found, {here: self.topology})
        return found

    def names(self, ranks: int) -> list[str]:
        """The name of each rank's host."""
        if self.policy.order == "seq" and self.lines:
            if ranks > len(self.lines):
                raise UsageError(
                    f"{ranks} ranks do not fit: --map-by seq takes one for each of the {len(self.lines)} hosts listed"
                )
            return [host.name for host in self.lines[:ranks]]
        hosts = self.hosts
        if not hosts:
            processors = len(self.topology.processors)
            if self.a_host and ranks > self.a_host:
                raise UsageError(f"{ranks} ranks do not fit: there is one host, and it is to have at most {self.a_host}")
            if ranks > processors and self.nooversubscribe:
                raise UsageError(f"{ranks} ranks do not fit onto {processors} processors, and --nooversubscribe is given")
            hosts = [hostfile.Host("localhost", ranks)]
        names = mapping.spread(hosts, ranks, self.policy.order, self.a_host, self.oversubscribe)
        if self.rank_order in ("slot", "node"):
            counts = {host.name: names.count(host.name) for host in hosts if host.name in names}
            names = mapping.numbered(counts, self.rank_order)
        return names

    def bind(self, places: Sequence[mapping.Place], hosts: Mapping[str, Topology]) -> None:
        """Give the ranks of hosts whose processors are known theirs.

        Errors: ValueError when there are too few.
        """
        for host, topology in hosts.items():
            mine = [place for place in places if place.host == host]
            if self.rankfile:
                mapping.resolve(mine, topology, self.rankfile[0])
            elif mine:
                self.binding.give(mine, topology)

    def give_to(self, job: Job) -> None:
        """Have the job's ranks on other hosts bound when these have said which processors they have."""
        job.bind = lambda hosts: self.bind(job.places, hosts)


def word_of(segment: Segment, name: str, known: Sequence[str], more: Sequence[str] = ()) -> str:
    """What an option says, one of the known words and, behind `:`, of what there is more; "" where it is not given."""
    given = segment.last(name)
    if given is None:
        return ""
    word, _, rest = given[0].lower().partition(":")
    word = FORMER.get(word, word)
    if word not in known or (rest and rest not in more):
        behind = f", and :{' or :'.join(more)} behind it" if more else "; --rankfile orders ranks freely"
        raise UsageError(f"--{name} takes {', '.join(known)}{behind}, found {given[0]!r}")
    return f"{word}:{rest}"


def binding(segment: Segment, policy: Policy, rank_order: str) -> Binding:
    """Which processors ranks get."""
    found = Binding()
    word, _, rest = word_of(segment, "bind-to", POLICIES, ("overload-allowed", "if-supported")).partition(":")
    found.policy = word or "share"
    found.overload = rest == "overload-allowed"
    found.around = policy.order if policy.order in KINDS else ""
    found.a_turn = policy.an_object
    found.order = rank_order
    text = segment.last("cpus-per-rank")
    found.each = int(number(text[0], "--cpus-per-rank", int, 1)) if text else policy.processors
    return found


def hosts_given(segment: Segment) -> list[hostfile.Host]:
    """The hosts of --hostfile or of the allocation, and of them those of --host."""
    among: list[hostfile.Host] = []
    for (path,) in segment.options.get("hostfile", []):
        among += hostfile.read(path)
    chosen = segment.options.get("host", [])
    if not among and not (chosen and all("+" not in text for (text,) in chosen)):
        among = hostfile.allocated(os.environ)
    if not chosen:
        return among
    return [host for (text,) in chosen for host in hostfile.parse_list(text, hostfile.merged(among))]
