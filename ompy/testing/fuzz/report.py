"""What a campaign found, for people: the table of a matrix, and a failure with its script."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.table import Table

from ompy.testing.fuzz import script
from ompy.testing.fuzz.campaign import Found, Outcome, Wish
from ompy.testing.fuzz.runner import Place

MOST_LINES = 60


def command(place: Place, wish: Wish, seed: int) -> str:
    """The command that runs from a seed on."""
    more = [
        f"--{name} {','.join(filter(None, value))}"
        for name, value in (("kinds", wish.kinds), ("without", wish.without))
        if any(value)
    ]
    words = ["ompy fuzz", *(f"--mca {name} {value}" for name, value in place.mca)]
    words += [f"--launcher '{place.launcher}' --python {place.python}"] * place.foreign
    return " ".join([*words, f"-n {place.ranks} --seed {seed}", *more])


def told(place: Place, wish: Wish, found: Found) -> str:
    """A failure: its seed, what was seen, and the script of the shrunk program."""
    failure = found.smallest or found.failure
    lines = [
        f"{failure.word}: program {found.failure.program.seed} on {place.ranks} ranks",
        f"to see it again: {command(place, wish, found.failure.program.seed)}",
        "",
    ]
    lines += textwrap.indent("\n".join(failure.text.splitlines()[-MOST_LINES:]), "  ").splitlines()
    if found.smallest is None:
        lines += ["", "The program does not fail alone: what ran before it in the job, or timing, has to do with it."]
    return "\n".join([*lines, "", source(place, found)])


def source(place: Place, found: Found) -> str:
    """The script of the shrunk program, or of the whole one."""
    failure = found.smallest or found.failure
    what = next((line for line in reversed(failure.text.splitlines()) if line.strip()), "") if failure.word == "wrong" else ""
    title = f"{failure.word}: {what}" if what else failure.word
    return script.script_of(failure.program, f"{title} (seed {found.failure.program.seed}).")


def table(rows: Sequence[tuple[str, Outcome]]) -> Table:
    """A line for each configuration and number of ranks."""
    shown = Table(
        "over", "parameters", "ranks", "programs", "operations", "seconds", "found", title="ompy fuzz", title_justify="left"
    )
    for column in shown.columns[2:6]:
        column.justify = "right"
    for name, outcome in rows:
        place = outcome.place
        word = (
            "[green]-"
            if outcome.found is None
            else f"[bold red]{outcome.found.failure.word}, seed {outcome.found.failure.program.seed}"
        )
        parameters = " ".join(f"{key}={value}" for key, value in place.mca)
        shown.add_row(
            name, parameters, str(place.ranks), str(outcome.programs), f"{outcome.operations:,}", f"{outcome.seconds:.0f}", word
        )
    total = sum(outcome.operations for _, outcome in rows)
    shown.add_section()
    shown.add_row("all", "", "", str(sum(o.programs for _, o in rows)), f"{total:,}", f"{sum(o.seconds for _, o in rows):.0f}",
                  str(sum(o.found is not None for _, o in rows)))  # fmt: skip
    return shown
