"""The two streams of fragments between this rank and another.

    sender                                             receiver
    add       4 5 6 7 ----------------------------->   take 4, 6, 7 (5 is lost)
                        <- expected 5, beyond .11      gives out 4; keeps 6 and 7
    acknowledged: 4, 6, 7 are done; 5 was overtaken
    due       5 again ----------------------------->   gives out 5, 6, 7

A fragment is sent again when its time is over, or when OVERTAKEN later ones have arrived before it.  The time follows the round
trips measured, and doubles while nothing is acknowledged: a peer that computes acknowledges nothing, and is not to be flooded.
How many may be under way is halved at a time-out and grows again with what arrives.

There is no socket and no clock here: the caller brings the time, in seconds.
"""

from __future__ import annotations

SHORTEST, LONGEST = 0.02, 1.0  # seconds until a fragment is sent again
OVERTAKEN = 3
FEWEST = 4
BEYOND = 64


class Sent:
    """A fragment that is not acknowledged yet."""

    __slots__ = ("last", "overtaken", "payload", "sequence", "tag", "tries", "when")

    def __init__(self, sequence: int, tag: int, last: bool, payload: bytes, when: float) -> None:
        self.sequence = sequence
        self.tag = tag
        self.last = last
        self.payload = payload
        self.when = when
        self.tries = 1
        self.overtaken = 0


class Flow:
    """One peer's streams.

    Parameters:
        window: fragments that may be under way, at most 64.

    Attributes:
        sent: what is under way, in order.
        owes: an acknowledgement is due.
        resent: fragments sent again so far.
    """

    def __init__(self, window: int) -> None:
        if not FEWEST <= window <= BEYOND:
            raise ValueError(f"a window of {window} datagrams: it must have {FEWEST} to {BEYOND}")
        self.window = window
        self.allowed = float(window)
        self.sent: dict[int, Sent] = {}
        self.next_sequence = 0
        self.round_trip = SHORTEST
        self.patience = SHORTEST
        self.resent = 0
        self.expected = 0
        self.early: dict[int, tuple[int, bool, bytes]] = {}
        self.partial = bytearray()
        self.owes = False

    @property
    def is_used(self) -> bool:
        """Whether anything has gone or come."""
        return bool(self.next_sequence or self.expected)

    # -- sending

    def has_room(self, fragments: int) -> bool:
        """Whether a message of so many fragments may go now; one that is larger than the window goes alone."""
        return not self.sent or len(self.sent) + fragments <= self.allowed

    def add(self, tag: int, last: bool, payload: bytes, now: float) -> Sent:
        """The next fragment is on its way."""
        fragment = Sent(self.next_sequence, tag, last, payload, now)
        self.sent[self.next_sequence] = fragment
        self.next_sequence += 1
        return fragment

    def acknowledged(self, expected: int, beyond: int, now: float) -> bool:
        """What the peer says has arrived; returns whether that was news."""
        arrived = [sequence for sequence in self.sent if sequence < expected or beyond >> (sequence - expected) & 1]
        for sequence in arrived:
            fragment = self.sent.pop(sequence)
            if fragment.tries == 1:  # of one sent twice nobody knows which arrived (Karn)
                self.round_trip += (now - fragment.when - self.round_trip) / 8
        if not arrived:
            return False
        self.patience = min(max(SHORTEST, 3 * self.round_trip), LONGEST)
        self.allowed = min(self.allowed + len(arrived) / 2, self.window)
        for sequence, fragment in self.sent.items():
            if sequence < arrived[-1]:
                fragment.overtaken += 1
        return True

    def due(self, now: float) -> list[Sent]:
        """What has to be sent again now."""
        late = [fragment for fragment in self.sent.values() if now - fragment.when >= self.patience]
        if late:
            self.patience = min(2 * self.patience, LONGEST)
            self.allowed = max(self.allowed / 2, FEWEST)
        again = late + [fragment for fragment in self.sent.values() if fragment.overtaken >= OVERTAKEN and fragment not in late]
        for fragment in again:
            fragment.when = now
            fragment.overtaken = 0
            fragment.tries += 1
        self.resent += len(again)
        return again

    # -- receiving

    def take(self, sequence: int, tag: int, last: bool, payload: bytes) -> list[tuple[int, bytearray]]:
        """A fragment has arrived: the messages, (tag, bytes), that it completes, in order."""
        self.owes = True  # for one that came before, too: its acknowledgement was lost
        if self.expected <= sequence <= self.expected + BEYOND:
            self.early[sequence] = tag, last, payload
        complete = []
        while self.expected in self.early:
            tag, last, payload = self.early.pop(self.expected)
            self.expected += 1
            self.partial += payload
            if last:
                complete.append((tag, self.partial))
                self.partial = bytearray()
        return complete

    def acknowledgement(self) -> tuple[int, int]:
        """`expected` and `beyond` of the header."""
        self.owes = False
        return self.expected, sum(1 << (sequence - self.expected) for sequence in self.early) & (1 << BEYOND) - 1
