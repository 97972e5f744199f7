"""What stands in a datagram.

code         16 bytes that only a holder of the job's secret can make, over all that follows
kind         DATA, ACKNOWLEDGEMENT or PROBE (which only asks whether somebody listens)
tag          of the message that the fragment belongs to
last         1 for the last fragment of a message
source, destination   ranks; a datagram that is turned back, or sent on to another rank, is nobody's
sequence     of the fragment, counted from 0 for each direction of a pair
expected     all fragments before this one have arrived here
beyond       a bit for each of the 64 fragments after `expected`: it has arrived, too
payload      the rest, for DATA
"""

from __future__ import annotations

import hmac
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

DATA, ACKNOWLEDGEMENT, PROBE = 1, 2, 3
CODE_SIZE = 16
FIELDS = Struct("<BBHIIQQQ")
HEADER_SIZE = CODE_SIZE + FIELDS.size


class Header(NamedTuple):
    kind: int
    tag: int
    last: int
    source: int
    destination: int
    sequence: int
    expected: int
    beyond: int


class Seal:
    """Makes and checks the codes of one job's datagrams.

    Parameters:
        secret: known to the job's ranks alone; at most 64 bytes count.
        job: its name, so that jobs with one secret stay apart.
    """

    def __init__(self, secret: bytes, job: str) -> None:
        self.keyed = blake2b(b"ompy btl/udp\0" + job.encode() + b"\0", digest_size=CODE_SIZE, key=secret[:64])

    def code(self, *parts: bytes | memoryview) -> bytes:
        hashing = self.keyed.copy()
        for part in parts:
            hashing.update(part)
        return hashing.digest()

    def pack(self, header: Header, payload: bytes) -> bytes:
        fields = FIELDS.pack(*header)
        return self.code(fields, payload) + fields + payload

    def unpack(self, datagram: memoryview) -> tuple[Header, memoryview] | None:
        """Header and payload; None for what no rank of this job has made."""
        if len(datagram) < HEADER_SIZE or not hmac.compare_digest(self.code(datagram[CODE_SIZE:]), datagram[:CODE_SIZE]):
            return None
        return Header._make(FIELDS.unpack_from(datagram, CODE_SIZE)), datagram[HEADER_SIZE:]
