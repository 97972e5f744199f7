from collections.abc import Callable

from ompy.mca.btl import Btl
from ompy_btl_sm.reservation import Reservation

interface: int
RING_COPIES: dict[str, int]

class SmBtl(Btl):
    ring_size: int
    backing: str
    on_fallback: Callable[[str], object] | None
    on_lack: Callable[[str], object] | None
    on_choice: Callable[[str], object] | None
    reservation: Reservation | None
    @property
    def in_files(self) -> bool: ...
    @property
    def ring_bytes(self) -> int: ...
    def __init__(
        self,
        ring_size: int = 262144,
        backing: str = "auto",
        slots: int = 64,
        single_copy: bool = True,
        heap: tuple[bytes, int, int] | None = None,
        joint_size: int = 0,
        ring_copy: str = "auto",
    ) -> None: ...
