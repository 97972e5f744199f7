"""`ompy fuzz`: random MPI programs against a model of what MPI allows."""

from __future__ import annotations

import math
import os
import random
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from ompy.cli.conformance import SEEDS, Counts

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ompy.testing.fuzz.campaign import Wish
    from ompy.testing.fuzz.runner import Place


@click.command()
@click.option("--mca", "mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompyrun: what is under test.")
@click.option("-n", "-np", "ranks", type=Counts(), default="2,3", show_default=True, help="Numbers of ranks: 2,3,5.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=60.0, show_default=True, help="Of each number of ranks; 0: no bound."
)
@click.option("--operations", type=click.IntRange(1), help="So many, over all numbers of ranks, in place of a time.")
@click.option("--seed", type=click.IntRange(0), help="Of the first program.  [default: a new one]")
@click.option("--kinds", default="", metavar="KIND,...", help="Only these kinds of actions.")
@click.option("--without", default="", metavar="FEATURE,...", help="Programs without these: threads, signals, fork, rma, ...")
@click.option("--matrix", is_flag=True, help="Over every transport, mechanism and component; ends with a table.")
@click.option("--rows", default="", metavar="NAME,...", help="Of the matrix, only rows with these words in their names.")
@click.option("--program", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run this saved program instead.")
@click.option("--repeat", type=click.IntRange(1), default=20, show_default=True, help="So many times.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Folder for each failure's program and script.")
@click.option("--shrink", default=60.0, show_default=True, help="Seconds for making a failing program small.")
@click.option("--silence", default=60.0, show_default=True, help="Seconds without a program's end that are a hang.")
@click.option("--launcher", default="", metavar="COMMAND", help="Of another library: mpiexec, with arguments, without -n.")
@click.option("--python", default="", metavar="FILE", help="The interpreter of the ranks, which has mpi4py.")
def fuzz(
    mca: tuple[tuple[str, str], ...],
    ranks: tuple[int, ...],
    seconds: float,
    operations: int | None,
    seed: int | None,
    kinds: str,
    without: str,
    matrix: bool,
    rows: str,
    program: Path | None,
    repeat: int,
    save: Path | None,
    shrink: float,
    silence: float,
    launcher: str,
    python: str,
) -> NoReturn:
    """Run random, correct MPI programs, and check in every rank what MPI promises of them.

    \b
    ompy fuzz --mca btl mynet,self -n 2,3 --seconds 60
    ompy fuzz --matrix --operations 1000000
    ompy fuzz --launcher "mpiexec --oversubscribe" --python /opt/venv/bin/python -n 3

    A failure prints the seed, and the program made small as a script that needs only mpi4py.  Exit status: 0 when all is
    well, 1 when not.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ompy.mca.params import use
    from ompy.testing.fuzz import campaign, report
    from ompy.testing.fuzz.generator import WEIGHTS

    chosen = tuple(word for word in kinds.split(",") if word)
    if unknown := set(chosen) - set(WEIGHTS):
        raise click.UsageError(f"--kinds {', '.join(sorted(unknown))}: known are {', '.join(WEIGHTS)}")
    absent = tuple(word for word in without.split(",") if word)
    if unknown := set(absent) - campaign.FEATURES:
        raise click.UsageError(f"--without {', '.join(sorted(unknown))}: known are {', '.join(sorted(campaign.FEATURES))}")
    for option, number in (("--seconds", seconds), ("--shrink", shrink), ("--silence", silence)):
        if not 0 <= number < math.inf:
            raise click.UsageError(f"{option} {number:g}: a number of seconds, 0 or more, is expected")
    try:
        launching = shlex.split(launcher)
    except ValueError as error:
        raise click.UsageError(f"--launcher {launcher}: {error}") from None
    for option, command in (("--launcher", launching[0] if launching else ""), ("--python", python)):
        if command and shutil.which(command) is None:
            raise click.UsageError(f"{option}: there is no command {command}")
    if not launcher:
        use(mca)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    if save:
        try:
            save.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"--save {save}: {error.strerror}") from None
        if not os.access(save, os.W_OK):
            raise click.UsageError(f"--save {save}: no file can be made there")
    wish = campaign.Wish(seed, 0 if operations else seconds, operations or 0, chosen, absent, shrinking=shrink)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    if program is not None:
        sys.exit(replayed(program, mca, python, launcher, silence, repeat))
    planned = list(plan(wish, mca, ranks, rows if matrix or rows else None, python, launcher, silence))
    if not planned:
        raise click.UsageError(f"--rows {rows}: no row of the matrix has that in its name")
    outcomes = []
    columns = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")
        for number, (name, place, wanted) in enumerate(planned, 1):
            where = f"{number} of {len(planned)}: {name or 'ompy'}, {place.ranks} ranks"
            try:
                outcome = campaign.run(place, wanted, partial(show, progress, task, where))
            except RuntimeError as error:
                console.print(f"{where}: {error}", markup=False)
                sys.exit(1)
            outcomes.append((name, outcome))
            if outcome.found:
                console.print(report.told(place, wanted, outcome.found), markup=False, soft_wrap=True)
                if save:
                    kept(save, name, place, outcome.found)
    if matrix or rows:
        console.print(report.table(outcomes))
    failed = sum(outcome.found is not None for _, outcome in outcomes)
    total, spent = sum(outcome.operations for _, outcome in outcomes), sum(outcome.seconds for _, outcome in outcomes)
    console.print(f"{total:,} operations in {spent:.0f} s, {failed} failures; seed {seed}")
    sys.exit(1 if failed else 0)


def show(progress: Progress, task: TaskID, where: str, words: str, done: int, spent: float) -> None:
    """What a campaign is doing."""
    progress.update(task, description=f"{where}: {done:,} operations, {words}")


def plan(
    wish: Wish,
    mca: tuple[tuple[str, str], ...],
    ranks: tuple[int, ...],
    rows: str | None,
    python: str,
    launcher: str,
    silence: float,
) -> Iterator[tuple[str, Place, Wish]]:
    """Name, place and wish of each campaign."""
    from ompy.testing.fuzz.matrix import MATRIX
    from ompy.testing.fuzz.runner import Place

    if rows is None:
        for count in ranks:
            yield "", Place(count, mca, python, launcher, silence), wish._replace(operations=-(-wish.operations // len(ranks)))
        return
    chosen = [row for row in MATRIX if not rows or any(word in row.name for word in rows.split(","))]
    shares = sum(row.share for row in chosen)
    for row in chosen:
        part = row.share / shares / len(row.ranks)
        for count in row.ranks:
            wanted = wish._replace(
                seconds=wish.seconds * row.share, operations=int(wish.operations * part), without=(*wish.without, *row.without)
            )
            yield row.name, Place(count, (*row.mca, *mca), python, launcher, silence), wanted


def replayed(file: Path, mca: tuple[tuple[str, str], ...], python: str, launcher: str, silence: float, repeat: int) -> int:
    """Run a saved program; the exit status."""
    from ompy.testing.fuzz import campaign
    from ompy.testing.fuzz.program import Program
    from ompy.testing.fuzz.runner import Place

    try:
        program = Program.loads(file.read_text())
    except (KeyError, TypeError, ValueError) as error:
        raise click.UsageError(f"{file} holds no program: {error}") from None
    failure = campaign.replay(Place(program.size, mca, python, launcher, silence), program, repeat)
    click.echo(f"{failure.word}\n{failure.text}" if failure else f"it went well {repeat} times")
    return 1 if failure else 0


def kept(folder: Path, row: str, place: Place, found: object) -> None:
    """Write a failure's program and script."""
    from ompy.testing.fuzz import report
    from ompy.testing.fuzz.campaign import Found

    assert isinstance(found, Found)
    failure = found.smallest or found.failure
    words = [*row.split(), found.failure.word, str(found.failure.program.seed), str(place.ranks)]
    name = "-".join(words)
    (folder / f"{name}.json").write_text(failure.program.dumps())
    (folder / f"{name}.py").write_text(report.source(place, found))
