"""Ways to get routes wrong, over the tree's own; each class has one."""

from __future__ import annotations

from ompy_bml_r2.module import R2

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mca.bml import PeerRoutes, Route
from ompy.mca.btl import SEND
from ompy.mca.component import Context, Offer


def offer(context: Context, fault: str) -> Offer:
    made = globals()[fault] if fault else R2
    return Offer(modules=[made(context.chosen("btl"))])


class NoEagerRoute(R2):
    def add_proc(self, proc):
        routes = super().add_proc(proc)
        routes.eager.clear()
        return routes


class SendsOverReaders(R2):
    def listed(self, proc, ways, verdicts):
        routes = super().listed(proc, ways, verdicts)
        routes.send.extend(Route(btl, endpoint, 0.0) for btl, endpoint in ways if not btl.flags & SEND)
        return routes


class AnothersEndpoint(R2):
    endpoints: dict[object, object] = {}

    def listed(self, proc, ways, verdicts):
        return super().listed(proc, [(btl, self.endpoints.setdefault(btl, endpoint)) for btl, endpoint in ways], verdicts)


class EachCarriesAll(R2):
    def listed(self, proc, ways, verdicts):
        routes = super().listed(proc, ways, verdicts)
        send = [Route(route.btl, route.endpoint, 1.0) for route in routes.send]
        return PeerRoutes(proc, routes.eager, send, routes.rdma, routes.verdicts)


class VerdictsOfTheChosen(R2):
    def add_proc(self, proc):
        routes = super().add_proc(proc)
        routes.verdicts[:] = [verdict for verdict in routes.verdicts if verdict[1]]
        return routes


class VerdictsWithoutReasons(R2):
    def add_proc(self, proc):
        routes = super().add_proc(proc)
        routes.verdicts[:] = [(name, chosen, "") for name, chosen, _ in routes.verdicts]
        return routes


class UnreachableWithoutReasons(R2):
    def add_proc(self, proc):
        try:
            return super().add_proc(proc)
        except MPIError:
            raise MPIError(ERR_OTHER, f"rank {proc.rank} can't be reached") from None


class UnreachableIsEmpty(R2):
    def add_proc(self, proc):
        try:
            return super().add_proc(proc)
        except MPIError:
            return PeerRoutes(proc, [], [], [], [])


class DropsNothing(R2):
    def drop_route(self, proc, btl):
        if len(proc.routes.send) == 1:
            raise MPIError(ERR_OTHER, "the last one")
        # As if it was: the next one is asked for.
        return 0


class DropsFromOneList(R2):
    def drop_route(self, proc, btl):
        eager = proc.routes.eager
        super().drop_route(proc, btl)
        routes = proc.routes
        proc.routes = PeerRoutes(proc, eager, routes.send, routes.rdma, routes.verdicts)
        return 0


class DropsTheLast(R2):
    def drop_route(self, proc, btl):
        try:
            return super().drop_route(proc, btl)
        except MPIError:
            proc.routes = None
            return 0


class GivesNothingBack(R2):
    def del_proc(self, proc):
        proc.routes = None
        return 0


class GivesBackTwice(R2):
    def del_proc(self, proc):
        for route in proc.routes.send if proc.routes is not None else ():
            route.btl.del_procs([route.endpoint])
        return super().del_proc(proc)


class RemembersRoutes(R2):
    def del_proc(self, proc):
        routes = proc.routes
        super().del_proc(proc)
        proc.routes = routes
        return 0


class WrapsTheFirst(R2):
    def wrap(self, around):
        self.btls[:1] = [around(self.btls[0])]
        return 0


class RegistersWithTheBest(R2):
    def register(self, tag, receiver):
        self.btls[0].register(tag, receiver)
        return 0


class ErrorsOfTheBest(R2):
    def register_error(self, handler):
        self.btls[0].register_error(handler)
        return 0


class ClosesTheFirst(R2):
    def finalize(self):
        del self.btls[1:]
        return super().finalize()
