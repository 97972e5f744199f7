"""How rows are shared out."""

from __future__ import annotations


def shares(rows: int, workers: int) -> list[tuple[int, int]]:
    """First row and number of rows of each worker; the first ones have one more where they do not come out even."""
    even, more = divmod(rows, workers)
    sizes = [even + (worker < more) for worker in range(workers)]
    return [(sum(sizes[:worker]), size) for worker, size in enumerate(sizes)]
