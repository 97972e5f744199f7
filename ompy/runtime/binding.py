"""Which processors each rank of a host has.

    4 processors, "share":           2 ranks -> {0,1} {2,3}     3 ranks -> {0} {1} {2}     5 ranks -> unbound
    4 processors, "core":            2 ranks -> {0} {1}         5 ranks -> unbound, since no rank can have its own
    4 processors, 2 for each rank:   2 ranks -> {0,1} {2,3}     3 ranks -> an error
    round 2 NUMA nodes of 2:         3 ranks -> {0,1} {2,3} {0,1}

Threads of one rank (a BLAS library's, say) keep all the processors that would idle otherwise, and ranks do not wander.
"""

from __future__ import annotations

from collections import Counter

from ompy.runtime.topology import KINDS, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.runtime.mapping import Place
    from ompy.runtime.topology import Topology

POLICIES = ("share", "none", *KINDS)
# What ranks do not share unless it is said.
OWN = ("core", "hwthread")


class Binding:
    """How the ranks of one host get their processors.

        2 packages of 2 cores, each of 2 hardware threads:      {0,4} {1,5} | {2,6} {3,7}

        around core, to core            {0,4}  {1,5}  {2,6}  {3,7}
        around package, to core         {0,4}  {2,6}  {1,5}  {3,7}
        around package, filled, to core {0,4}  {1,5}  {2,6}  {3,7}
        around core, to package         {0,1,4,5}  {0,1,4,5}  {2,3,6,7}  {2,3,6,7}
        around package, each 3          {0,4,1}  {2,6,3}

    Attributes:
        policy: one of `POLICIES`: `share`: equal parts of all processors.
        around: the kind of objects that ranks go round, one a turn; "": they go round the cores, and `share` needs none.
        a_turn: ranks for an object before the next one's; 0: each object once in a turn, as often as needed.
        each: processors for each rank; 0: as many as the policy gives.
        order: how ranks are numbered: `fill`: all of one object before the next; a kind: objects of it in turn; else as they
            were placed.
        overload: ranks may share what is one's own otherwise; `a_turn` says so too.
    """

    def __init__(self) -> None:
        self.policy = "share"
        self.around = ""
        self.a_turn = 0
        self.each = 0
        self.order = ""
        self.overload = False

    def give(self, places: Sequence[Place], topology: Topology) -> None:
        """Give the ranks of one host their processors.

        Parameters:
            places: theirs, in the order of the ranks.

        Errors: ValueError when more is asked for than there is.
        """
        ranks, there = len(places), len(topology.processors)
        policy = self.around if self.policy == "share" and self.around else self.policy
        if policy == "none":
            return
        if self.each * ranks > there:
            raise ValueError(
                f"{ranks} ranks with {self.each} processors each do not fit onto the {there} that this job may use on "
                f"{places[0].host}"
            )
        if self.each:
            self.give_each(places, topology)
        elif policy == "share":
            width = there // ranks
            if width and ranks > 1:
                for index, place in enumerate(places):
                    place.processors = set(topology.ordered[index * width : (index + 1) * width])
        elif self.overload or self.a_turn or ranks <= (len(topology.objects(policy)) if policy in OWN else there):
            self.give_objects(places, topology, policy)

    def homes(self, ranks: int, host: str, topology: Topology) -> list[set[int]]:
        """The object that each rank was placed on; ValueError when an object would get more than its turn."""
        objects = topology.objects(self.around or "core")
        if self.a_turn and ranks > self.a_turn * len(objects):
            raise ValueError(
                f"{ranks} ranks do not fit onto {host}: it has {len(objects)} {self.around}, and each is to have {self.a_turn}"
            )
        found = [index // (self.a_turn or 1) % len(objects) for index in range(ranks)]
        if self.order == "fill":
            found.sort()
        elif self.order in KINDS:
            # One rank of each holder in turn: c0 c1 in p0 and c2 in p1 are taken as c0 c2 c1.
            wanted = topology.objects(self.order)
            holder_of = [next(index for index, it in enumerate(wanted) if it & home) for home in objects]
            seen: Counter[int] = Counter()
            turns = []
            for index in found:
                holder = holder_of[index]
                turns.append((seen[holder], holder, index))
                seen[holder] += 1
            found = [index for _, _, index in sorted(turns)]
        return [objects[index] for index in found]

    def give_each(self, places: Sequence[Place], topology: Topology) -> None:
        free = topology.ordered[:]
        everywhere = [topology.processors] * len(places)
        homes = self.homes(len(places), places[0].host, topology) if self.around else everywhere
        for place, home in zip(places, homes, strict=True):
            found = [number for number in free if number in home][: self.each]
            if len(found) < self.each:
                raise ValueError(
                    f"{self.each} processors for each rank: {self.around} {spans(home)} on {place.host} has too few"
                )
            place.processors = set(found)
            free = [number for number in free if number not in place.processors]

    def give_objects(self, places: Sequence[Place], topology: Topology, kind: str) -> None:
        objects = topology.objects(kind)
        users = [0] * len(objects)
        for place, home in zip(places, self.homes(len(places), places[0].host, topology), strict=True):
            index = min((it for it in range(len(objects)) if objects[it] & home), key=users.__getitem__)
            users[index] += 1
            place.processors = set(objects[index])
