"""Job boards of any content: a report is words, and nothing but words."""

from __future__ import annotations

import os
import random

from mutation import mutated

RECORD = 128


class JobBoard:
    name = "board"

    def begin(self) -> None:
        from ompy.core.board import RECORD_BYTES, Board
        from ompy.runtime.report import report, stuck

        assert RECORD_BYTES == RECORD
        self.board, self.report, self.stuck = Board, report, stuck

    def make(self, rng: random.Random) -> object:
        ranks = rng.choice((1, 2, 3, 8))
        data = bytearray()
        for rank in range(ranks):
            peer = rng.choice((-1, -2, rank, rng.randrange(ranks), 1 << 30))
            fields = (2 * rng.randrange(9), 4711, rng.choice((1, 2, 2, 2, 3)), rng.randrange(70), peer, rng.randrange(-5, 9))
            record = b"".join(field.to_bytes(4, "little", signed=True) for field in fields)
            data += (record + rng.randbytes(32) + "wörld\x1b".encode() * 8).ljust(RECORD, b"\xff")[:RECORD]
        return mutated(rng, bytes(data)) if rng.random() < 0.8 else rng.randbytes(ranks * RECORD)

    def carry_out(self, given: object) -> str:
        descriptor = os.memfd_create("ompy-board")
        try:
            os.write(descriptor, given)  # type: ignore[arg-type]
            try:
                board = self.board(descriptor)
            except ValueError:
                whole = given and len(given) % RECORD == 0  # type: ignore[arg-type]
                return "a board of whole records is refused" if whole else ""
            text = self.report(board) + "\n".join(self.stuck(board, 0.0))
        finally:
            os.close(descriptor)
        return "" if all(line.isprintable() for line in text.split("\n")) else f"not fit for a terminal: {text!r}"

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return repr(given)[:1500]
