"""Collective accesses in which each rank moves its own bytes, and waits for nobody."""

from __future__ import annotations

from ompy.mca.fcoll import FcollModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.file import Access


class Individual(FcollModule):
    """One file."""

    def read_all(self, access: Access) -> int:
        """As if it were an independent access."""
        moved: int = self.file.parts["fbtl"].preadv(access)
        return moved

    def write_all(self, access: Access) -> int:
        """As if it were an independent access."""
        moved: int = self.file.parts["fbtl"].pwritev(access)
        return moved
