"""Where the roots of collectives are, by number of tiles: near the middle of tiles 0 to N - 1 (thesis, table 5.1)."""

from __future__ import annotations

ROOTS = {1: 0, 2: 1, 4: 2, 8: 6, 16: 6}
