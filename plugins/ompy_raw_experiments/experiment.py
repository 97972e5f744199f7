"""What an experiment is: jobs, the rows and the picture made of their results, and the claims of the thesis about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ompy_raw_experiments.job import Job, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Sequence[Any]
Gathered = Mapping[str, Results]


class Claim:
    """Something that the thesis says, and what came out here.

    Parameters:
        says: in words.
        where: section, figure or table.
        theirs, ours: the figures.
        holds: whether ours agrees.
        note: what a reader must know besides.
    """

    def __init__(self, says: str, where: str, theirs: object, ours: object, holds: bool, note: str = "") -> None:
        self.says = says
        self.where = where
        self.theirs = theirs
        self.ours = ours
        self.holds = bool(holds)
        self.note = note

    def as_dict(self) -> dict[str, Any]:
        return {
            "claim": self.says,
            "where": self.where,
            "thesis": self.theirs,
            "here": self.ours,
            "holds": self.holds,
            "note": self.note,
        }


def within(ours: float, theirs: float, tolerance: float) -> bool:
    """Is `ours` at most that part of `theirs` away from it?"""
    return abs(ours - theirs) <= tolerance * abs(theirs)


class Experiment:
    """One figure or table.

    Parameters:
        name: as for `--only`, and of the files.
        title: of the picture.
        jobs: what has to run.
        header: of the CSV file.
        rows: from the jobs' results, by name.
        draw: the picture, from the rows.
        claims: from the rows.
    """

    def __init__(
        self,
        name: str,
        title: str,
        *,
        header: Row,
        rows: Callable[[Gathered], list[Row]],
        draw: Callable[[Axes, list[Row]], None],
        jobs: Sequence[Job] = (),
        claims: Callable[[list[Row]], list[Claim]] = lambda rows: [],
    ) -> None:
        self.name = name
        self.title = title
        self.jobs = tuple(jobs)
        self.header = header
        self.rows = rows
        self.draw = draw
        self.claims = claims
