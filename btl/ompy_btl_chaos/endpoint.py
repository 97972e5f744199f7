"""A peer as btl/chaos sees it: how many messages went there, and what is held back."""

from __future__ import annotations

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint
from ompy.mca.btl_wrapper import WrapperEndpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Held:
    """Something that is done later.

    Attributes:
        attempt: does it; returns TAKEN or BACK_PRESSURE.
        due: when, in seconds of `time.monotonic`.
        overtakers: how many messages may yet pass it.
    """

    __slots__ = ("attempt", "due", "overtakers")

    def __init__(self, attempt: Callable[[], int], due: float, overtakers: int = -1) -> None:
        self.attempt = attempt
        self.due = due
        self.overtakers = overtakers


class ChaosEndpoint(WrapperEndpoint):
    """One peer.

    Attributes:
        number: messages, puts and gets so far.
        queue: messages that keep their order; only the first may be due.
        aside: what others may pass.
        shut_until: when the way is open again, in seconds of `time.monotonic`.
        stalled: the number of the message that found the way shut.
    """

    number: int
    queue: list[Held]
    aside: list[Held]
    shut_until: float
    stalled: int

    def __init__(self, btl: Btl, proc: Proc, inner: Endpoint) -> None:
        super().__init__(btl, proc, inner)
        self.number = 0
        self.queue = []
        self.aside = []
        self.shut_until = 0.0
        self.stalled = -1
