"""The secrets of a TLS 1.3 connection from which the keys of its records are made (RFC 8446, 7).

handshake --> secret of one direction --+--> key, iv          of the records under it
                                        +--> next secret      when so many records have been made that new keys are due
                                        '--> secret for AEGIS, where both ends have that: of all records behind the handshake's
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple


class Suite(NamedTuple):
    """A cipher suite of TLS 1.3.

    Attributes:
        digest: hash function of its key schedule.
        key_size, iv_size, tag_size: bytes of a key, of a nonce and of a tag.
        most_records: after which new keys are due (RFC 8446, 5.5; there 2**24.5 for AES, none for ChaCha20).
    """

    digest: str
    key_size: int
    most_records: int
    iv_size: int = 12
    tag_size: int = 16


SUITES = {
    "TLS_AES_128_GCM_SHA256": Suite("sha256", 16, 1 << 24),
    "TLS_AES_256_GCM_SHA384": Suite("sha384", 32, 1 << 24),
    "TLS_CHACHA20_POLY1305_SHA256": Suite("sha256", 32, 1 << 62),
    # Of draft-irtf-cfrg-aegis-aead, with the key schedule of the suite that the handshake was under.
    "AEGIS_128L_SHA384": Suite("sha384", 16, 1 << 48, 16, 32),
    "AEGIS_128L_SHA256": Suite("sha256", 16, 1 << 48, 16, 32),
}


class TrafficSecret(NamedTuple):
    """Of one direction.

    Attributes:
        name: of the suite.
        value: the secret, as long as the suite's digests.
    """

    name: str
    value: bytes

    @property
    def most_records(self) -> int:
        return SUITES[self.name].most_records

    @property
    def key(self) -> bytes:
        return self.expand(b"key", SUITES[self.name].key_size)

    @property
    def iv(self) -> bytes:
        return self.expand(b"iv", SUITES[self.name].iv_size)

    @property
    def tag_size(self) -> int:
        return SUITES[self.name].tag_size

    @property
    def is_aegis(self) -> bool:
        return self.name.startswith("AEGIS")

    def next(self) -> TrafficSecret:
        """What follows it in the same direction (RFC 8446, 7.2)."""
        return TrafficSecret(self.name, self.expand(b"traffic upd", len(self.value)))

    def for_aegis(self) -> TrafficSecret:
        """Another one, so that no key is one of two ciphers."""
        digest = SUITES[self.name].digest
        return TrafficSecret(f"AEGIS_128L_{digest.upper()}", self.expand(b"ompy aegis", len(self.value)))

    def expand(self, label: bytes, size: int) -> bytes:
        """HKDF-Expand-Label without a context (RFC 8446, 7.1; RFC 5869, 2.3), for at most one digest."""
        label = b"tls13 " + label
        info = struct.pack(">HB", size, len(label)) + label + b"\0"
        return hmac.digest(self.value, info + b"\1", SUITES[self.name].digest)[:size]
