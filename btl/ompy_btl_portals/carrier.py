"""The one BTL below, as the BML that the portals' kernel asks for routes."""

from __future__ import annotations

from ompy.mca.bml import Bml, PeerRoutes, Route
from ompy.mca.btl import GET
from ompy.mca.errors import UnreachableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.proc import Proc
    from ompy.mca.btl import Btl


class Carrier(Bml):
    """Routes over a single BTL.

    Parameters:
        btl: carries everything.
    """

    def __init__(self, btl: Btl) -> None:
        self.btls.append(btl)

    def add_proc(self, proc: Proc) -> PeerRoutes:
        """The way to a peer; raises UnreachableError with the BTL's reason."""
        btl = self.btls[0]
        (answer,) = btl.add_procs([proc])
        if isinstance(answer, str):
            raise UnreachableError(f"btl portals rides on {btl.name}, which does not reach rank {proc.rank}: {answer}", [])
        way = [Route(btl, answer, 1.0)]
        return PeerRoutes(proc, way, way, way if btl.flags & GET else [], [])

    def finalize(self) -> int:
        """Close the BTL."""
        return self.btls[0].finalize()
