"""r2: which BTLs lead to a peer, decided at first contact.

asked in order of exclusivity       sm 1024   sm2 1024   zmq 256
reach the peer?                     yes       yes        not asked: of lower exclusivity
eager list, lowest latency          sm
send list, shares by bandwidth      sm 0.6    sm2 0.4
rdma list, can put or get           sm
"""

from __future__ import annotations

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mca.bml import Bml, PeerRoutes, Route
from ompy.mca.btl import GET, PUT, SEND
from ompy.mca.errors import UnreachableError
from ompy.mca.verdicts import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.core.proc import Proc
    from ompy.mca.btl import Btl, Endpoint


def shared_by_bandwidth(ways: Sequence[tuple[Btl, Endpoint]]) -> list[Route]:
    """Routes whose weights add up to one, the widest first."""
    total = sum(max(btl.bandwidth, 1) for btl, _ in ways)
    routes = [Route(btl, endpoint, max(btl.bandwidth, 1) / total) for btl, endpoint in ways]
    return sorted(routes, key=lambda route: -route.weight)


class R2(Bml):
    """Routes over the BTLs that were chosen.

    Parameters:
        btls: the chosen BTLs.
    """

    def __init__(self, btls: Sequence[Btl]) -> None:
        self.btls.extend(sorted(btls, key=lambda btl: -btl.exclusivity))

    def add_proc(self, proc: Proc) -> PeerRoutes:
        """Ask every BTL for the peer; raises UnreachableError with each one's reason when none reaches it."""
        ways: list[tuple[Btl, Endpoint]] = []
        verdicts: list[tuple[str, bool, str]] = []
        for btl in self.btls:
            if ways and btl.exclusivity < ways[0][0].exclusivity:
                best = ways[0][0]
                reason = f"exclusivity {btl.exclusivity} is below {best.name}'s {best.exclusivity}"
                verdicts.append((btl.name, False, reason))
                continue
            (answer,) = btl.add_procs([proc])
            if isinstance(answer, str):
                verdicts.append((btl.name, False, answer))
            else:
                ways.append((btl, answer))
                reason = f"reaches it: exclusivity {btl.exclusivity}, latency {btl.latency} ns"
                verdicts.append((btl.name, True, ", ".join(filter(None, (reason, btl.remark())))))
        for name, chosen, reason in verdicts:
            record.say("bml", 1, f"to rank {proc.rank}: {name} {'chosen' if chosen else 'not chosen'}: {reason}")
        if not any(btl.flags & SEND for btl, _ in ways):
            refused = [(verdict.component, False, verdict.reason) for verdict in record.of("btl") if not verdict.chosen]
            reasons = "; ".join(f"{name}: {reason}" for name, _, reason in verdicts + refused) or "no BTL was chosen"
            raise UnreachableError(
                f"no BTL reaches rank {proc.rank} of {proc.job} (host {proc.host}, pid {proc.pid}): {reasons}. "
                f"Name more transports with --mca btl, or leave the parameter out to allow all",
                verdicts,
            )
        return self.listed(proc, ways, verdicts)

    def listed(self, proc: Proc, ways: list[tuple[Btl, Endpoint]], verdicts: list[tuple[str, bool, str]]) -> PeerRoutes:
        """The three lists over the given ways."""
        carriers = [way for way in ways if way[0].flags & SEND]
        quickest = min(btl.latency for btl, _ in carriers)
        eager = shared_by_bandwidth([way for way in carriers if way[0].latency == quickest])
        rdma = shared_by_bandwidth([way for way in ways if way[0].flags & (PUT | GET)])
        return PeerRoutes(proc, eager, shared_by_bandwidth(carriers), rdma, verdicts)

    def del_proc(self, proc: Proc) -> int:
        """Give the routes to a peer back."""
        routes = proc.routes
        if routes is not None:
            proc.routes = None
            for route in {route.btl: route for route in (*routes.send, *routes.rdma)}.values():
                route.btl.del_procs([route.endpoint])
        return 0

    def drop_route(self, proc: Proc, btl: Btl) -> int:
        """Go on without one BTL; raises MPIError when it was the last."""
        routes = proc.routes
        kept = {route.btl: (route.btl, route.endpoint) for route in (*routes.send, *routes.rdma) if route.btl is not btl}
        if not any(other.flags & SEND for other in kept):
            raise MPIError(ERR_OTHER, f"btl {btl.name} was the last route to rank {proc.rank} of {proc.job}")
        proc.routes = self.listed(proc, list(kept.values()), routes.verdicts)
        return 0

    def finalize(self) -> int:
        """Close every BTL."""
        for btl in self.btls:
            btl.release_registrations()
            btl.finalize()
        self.btls.clear()
        return 0
