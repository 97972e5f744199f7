"""Tables for people."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table: drawn on a terminal, aligned columns elsewhere."""
    rows = list(rows)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(*headings, title=title, title_justify="left")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    if title:
        print(title)
    for row in [headings, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
