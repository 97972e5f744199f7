"""What a rank has attached to a dynamic window: stretches of its memory, none of which overlap (MPI-4.1, 12.2.4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from ompy.core.errors import ERR_ARG, ERR_RMA_ATTACH, MPIError


class Attachments:
    """By address.  What has no bytes is attached, and serves nothing."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.starts: list[int] = []
        self.empty: list[int] = []

    def add(self, address: int, size: int) -> None:
        """Raises ERR_RMA_ATTACH for what overlaps something."""
        if size == 0:
            self.empty.append(address)
            return
        place = bisect_right(self.starts, address + size - 1)
        near = self.starts[place - 1] if place else 0
        if place and address < near + self.sizes[near]:
            raise MPIError(
                ERR_RMA_ATTACH,
                f"Attach: the {size} bytes at {address:#x} overlap the {self.sizes[near]} at {near:#x} that are attached",
            )
        self.sizes[address] = size
        insort(self.starts, address)

    def remove(self, address: int) -> int:
        """Returns how many bytes there were; ERR_ARG where nothing is attached at the address."""
        if address in self.empty:
            self.empty.remove(address)
            return 0
        if address not in self.sizes:
            raise MPIError(ERR_ARG, f"Detach: nothing is attached at {address:#x}")
        del self.starts[bisect_left(self.starts, address)]
        return self.sizes.pop(address)

    def holding(self, address: int) -> tuple[int, int]:
        """The stretch that the address lies in, (address, bytes); (0, 0) where there is none."""
        place = bisect_right(self.starts, address)
        start = self.starts[place - 1] if place else 0
        return (start, self.sizes[start]) if place and address < start + self.sizes[start] else (0, 0)


def not_attached(rank: int, address: int, nbytes: int) -> str:
    """What is said of an access whose piece of so many bytes begins where its target has attached nothing."""
    return (
        f"rank {rank} has attached no memory at address {address:#x}, where {nbytes} bytes are accessed in one piece: Attach "
        "it there, and send the address that Get_address gives"
    )
