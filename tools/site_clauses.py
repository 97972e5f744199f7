"""A hook of the site's build: `<!-- clauses: btl -->` becomes the table of that contract's clauses, from its own prose."""

from __future__ import annotations

import re
from typing import Any

from ompy.testing.conformance.clauses import read

PLACE = re.compile(r"<!-- clauses: (\w+) -->")


def table(place: re.Match[str]) -> str:
    """The clauses of the framework that a place names, as Markdown."""
    rows = [f"| {it.number} | {it.name} | {it.text} |" for it in read(place[1]).values()]
    if not rows:
        raise ValueError(f"the contract of {place[1]} has no numbered clauses")
    return "\n".join(["| | clause | |", "| --- | --- | --- |", *rows])


def on_page_markdown(markdown: str, **_: Any) -> str:
    return PLACE.sub(table, markdown)
