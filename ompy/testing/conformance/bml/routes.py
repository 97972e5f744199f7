"""Routes to a peer: over the transports of the job, and over those of the kit, which note what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.core.errors import MPIError
from ompy.core.proc import Proc
from ompy.mca.bml import PeerRoutes, Route
from ompy.mca.btl import GET, PUT, SEND, Btl, Receiver
from ompy.testing.conformance.bml.rank import BmlRank, Told
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.messages import complete, neighbours, same
from ompy.testing.conformance.pml.rank import STANDARD

check = Collection()

LENGTHS = (0, 8, 3000, 70_000, 1_000_003)


def several() -> list[Told]:
    """Equal ones, one that can't send, one that is not as good, and one that goes elsewhere."""
    return [
        Told("first", (1, 2), SEND, bandwidth=300),
        Told("second", (1, 2), SEND | GET, bandwidth=100),
        Told("reader", (1,), PUT, bandwidth=50),
        Told("modest", (1, 2, 3), SEND, exclusivity=0),
        Told("elsewhere", (7,), SEND),
    ]


def judge(routes: PeerRoutes, rank: int, btls: Sequence[Btl], words: str) -> None:
    """What holds for the routes to any peer."""
    for name, routed, flags in (("eager", routes.eager, SEND), ("send", routes.send, SEND), ("rdma", routes.rdma, PUT | GET)):
        if not routed and name != "rdma":
            raise Breach("routes", f"{words}: the list {name} is empty")
        for route in routed:
            if not any(route.btl is btl for btl in btls):
                raise Breach("routes", f"{words}: {name} leads over {route.btl.name}, which is none of the transports")
            if not route.btl.flags & flags:
                raise Breach("routes", f"{words}: {name} leads over {route.btl.name}, whose flags are {route.btl.flags}")
            if route.endpoint.proc.rank != rank:
                raise Breach("routes", f"{words}: {name} has the endpoint of rank {route.endpoint.proc.rank}")
            if route.weight <= 0:
                raise Breach("shares", f"{words}: {name} leads over {route.btl.name} with weight {route.weight}")
        if routed and abs(sum(route.weight for route in routed) - 1) > 1e-6:
            raise Breach("shares", f"{words}: the weights of {name} are {[route.weight for route in routed]}")
    if routes.first is not routes.eager[0]:
        raise Breach("routes", f"{words}: `first` is not the first of `eager`")
    names = sorted(name for name, _, _ in routes.verdicts)
    if names != sorted(btl.name for btl in btls):
        raise Breach("verdicts", f"{words}: there are verdicts on {names}, of {sorted(btl.name for btl in btls)}")
    used = {route.btl.name for route in (*routes.eager, *routes.send, *routes.rdma)}
    for name, chosen, reason in routes.verdicts:
        if chosen != (name in used) or not reason:
            raise Breach(
                "verdicts", f"{words}: {name} is said to be {'' if chosen else 'not '}chosen: {reason!r}; used are {used}"
            )


@check("open", "routes", "shares", "verdicts")
def the_routes_of_the_job_are_whole(rank: BmlRank) -> None:
    """To every rank, this one too."""
    if not rank.bml.btls:
        raise Breach("open", "`btls` is empty")
    for peer in range(rank.size):
        proc = rank.world.group.member(peer)
        rank.pml.add_proc(proc)
        judge(proc.routes, peer, rank.bml.btls, f"routes to rank {peer}")


@check("delivery")
def messages_arrive_over_the_routes(rank: BmlRank) -> None:
    """In the order sent, of all lengths, to every rank."""
    before, after = neighbours(rank)
    sends = [rank.isend(bytearray(rank.content(rank.rank, after, number, length)), after, 1, STANDARD, rank.world)
             for number, length in enumerate(LENGTHS)]  # fmt: skip
    for number, length in enumerate(LENGTHS):
        got = bytearray(length)
        complete(rank, "delivery", f"a message of {length} bytes", rank.irecv(got, length, before, 1, rank.world))
        same(rank, "delivery", got, rank.content(before, rank.rank, number, length), f"a message of {length} bytes")
    complete(rank, "delivery", "a send", *sends)


@check("open", "routes", "shares", "verdicts")
def the_best_of_several_transports_carry(rank: BmlRank) -> None:
    """To three peers, whom not all of them reach; and from another order of transports."""
    for btls in (several(), several()[::-1]):
        module = rank.module(btls)
        if sorted(btl.name for btl in module.btls) != sorted(btl.name for btl in btls):
            raise Breach(
                "open", f"`btls` are {[btl.name for btl in module.btls]}, of {[btl.name for btl in btls]} that were chosen"
            )
        for peer in (1, 2, 3, 7):
            judge(module.add_proc(rank.peer(peer)), peer, btls, f"routes to rank {peer} over {[btl.name for btl in btls]}")


@check("unreachable")
def a_peer_that_nobody_reaches_is_an_error_with_every_reason(rank: BmlRank) -> None:
    """And so is one that can be written to and not sent to."""
    for peer, btls in ((9, several()), (1, [Told("reader", (1,), PUT)])):
        try:
            rank.module(btls).add_proc(rank.peer(peer))
        except MPIError as error:
            if f"rank {peer}" not in str(error):
                raise Breach("unreachable", f"the error for rank {peer} does not name it: {error}") from None
            # Who can't send need not be asked.
            reasons = {btl: f"{btl.name} ends at its horizon" if btl.flags & SEND else btl.name for btl in btls}
            missing = [btl.name for btl in btls if peer not in btl.reaches and reasons[btl] not in str(error)]
            if missing:
                raise Breach("unreachable", f"the error for rank {peer} is without the reasons of {missing}: {error}") from None
        else:
            raise Breach("unreachable", f"routes to rank {peer}, which no transport can send to, raise no MPIError")


@check("drop", "routes")
def a_route_that_is_dropped_is_not_used(rank: BmlRank) -> None:
    """One after the other; the last one stays."""
    btls = several()
    module, proc = rank.module(btls), rank.peer(1)
    proc.routes = module.add_proc(proc)
    while len(carriers := {route.btl.name: route.btl for route in proc.routes.send}) > 1:
        gone = next(iter(carriers.values()))
        module.drop_route(proc, gone)
        left = [*proc.routes.eager, *proc.routes.send, *proc.routes.rdma]
        if any(route.btl is gone for route in left):
            raise Breach("drop", f"after {gone.name} was dropped, routes still lead over it")
        if abs(sum(route.weight for route in proc.routes.send) - 1) > 1e-6 or not proc.routes.eager:
            raise Breach(
                "drop", f"after {gone.name} was dropped, the weights are {[route.weight for route in proc.routes.send]}"
            )
    try:
        module.drop_route(proc, proc.routes.send[0].btl)
    except MPIError:
        return
    raise Breach("drop", "the last route to a peer can be dropped")


@check("return")
def endpoints_are_given_back_once(rank: BmlRank) -> None:
    """Then the peer may come again; a peer without routes is no error."""
    btls = several()
    module, proc = rank.module(btls), rank.peer(1)
    module.del_proc(proc)
    for turn in range(2):
        proc.routes = module.add_proc(proc)
        used = {route.btl.name for route in (*proc.routes.send, *proc.routes.rdma)}
        module.del_proc(proc)
        module.del_proc(proc)
        if proc.routes is not None:
            raise Breach("return", "a peer that was taken away still has routes")
        for btl in btls:
            if (times := len(btl.noted("given back"))) != (turn + 1) * (btl.name in used):
                raise Breach("return", f"{btl.name} was given {times} endpoints back in {turn + 1} turns; used were {used}")


@check("wrap", "register", "routes")
def what_is_wrapped_around_stands_in_their_places(rank: BmlRank) -> None:
    """Each BTL is replaced once; receivers, handlers and routes go to what replaces it."""
    btls = several()
    module = rank.module(btls)
    around: dict[str, Told] = {}

    def wrap(btl: Btl) -> Btl:
        if btl.name in around:
            raise Breach("wrap", f"{btl.name} is wrapped twice")
        around[btl.name] = Told(btl.name, next(it.reaches for it in btls if it.name == btl.name), btl.flags, btl.exclusivity)
        return around[btl.name]

    module.wrap(wrap)
    if {id(btl) for btl in module.btls} != {id(btl) for btl in around.values()} or len(around) != len(btls):
        raise Breach("wrap", f"after `wrap`, `btls` are {[btl.name for btl in module.btls]}, and {sorted(around)} were wrapped")
    receiver = Receiver()

    def lost(btl: Btl, proc: Proc, error: BaseException) -> None:
        raise error

    module.register(9, receiver)
    module.register_error(lost)
    for btl in around.values():
        if btl.noted("register") != [(9, receiver)] or btl.noted("register_error") != [lost]:
            raise Breach("register", f"{btl.name} was told of {btl.notes}, not of one receiver and one handler")
    routes: list[Route] = module.add_proc(rank.peer(1)).send
    if any(route.btl not in around.values() for route in routes):
        raise Breach("wrap", "routes lead over what was wrapped, not over what stands in its place")


@check("end", last=True)
def every_transport_is_closed_once(rank: BmlRank) -> None:
    """Of the kit's; then the job's program ends."""
    btls = several()
    module = rank.module(btls)
    module.finalize()
    for btl in btls:
        if len(btl.noted("closed")) != 1 or not btl.noted("released"):
            raise Breach("end", f"{btl.name} was closed {len(btl.noted('closed'))} times: {btl.notes}")
        if btl.notes[-1][0] != "closed":
            raise Breach("end", f"something is asked of {btl.name} after it was closed: {btl.notes}")
    if module.btls:
        raise Breach("end", "`btls` is not empty after `finalize`")
    rank.alive()
    rank.MPI.Finalize()
