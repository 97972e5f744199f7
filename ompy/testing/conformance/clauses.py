"""The clauses of a framework's contract, read from the prose at the top of `ompy/mca/<framework>.pxd`, or of its `.py`.

The numbered paragraphs there are the one place where a clause stands; the kit's messages and the developers' table quote it:

    #   15 completion    A descriptor's callback runs exactly once: perhaps inside `send`, `put` or `get`, perhaps from
    #                    a later `progress`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

FIRST_LINE = re.compile(r"#?\s+(\d+) ([a-z][a-z -]*?) {2,}(\S.*)")
NEXT_LINE = re.compile(r"#? {12,}(\S.*)")


class Clause(NamedTuple):
    """One demand of a contract.

    Attributes:
        framework: `btl`, `coll`.
        number, name: how the contract's prose calls it.
        text: the prose, on one line.
    """

    framework: str
    number: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"clause {self.number} of ompy/mca/{contract(self.framework).name}, {self.name}"


def contract(framework: str) -> Traversable:
    """The file whose prose it is: of a framework whose classes are plain Python there is no other."""
    folder = files("ompy.mca")
    compiled = folder / f"{framework}.pxd"
    return compiled if compiled.is_file() else folder / f"{framework}.py"


@cache
def read(framework: str) -> dict[str, Clause]:
    """The clauses of a contract by name, in their order."""
    found: dict[str, Clause] = {}
    name = ""
    for line in contract(framework).read_text(encoding="utf-8").splitlines():
        if first := FIRST_LINE.fullmatch(line):
            name = first[2]
            found[name] = Clause(framework, int(first[1]), name, first[3])
        elif name and (more := NEXT_LINE.fullmatch(line)):
            found[name] = found[name]._replace(text=f"{found[name].text} {more[1]}")
        else:
            name = ""
    return found
