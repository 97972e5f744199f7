"""`ompy raw experiments`: the tables and figures of the thesis, from the simulated chip."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from ompy_raw_experiments.catalogue import experiments
from ompy_raw_experiments.experiment import Claim, Experiment, Row
from ompy_raw_experiments.job import Results


def update(progress: Progress, task: TaskID, count: int) -> None:
    progress.update(task, completed=count)


def run_jobs(chosen: list[Experiment], console: Console) -> dict[str, Results]:
    """All jobs of these experiments, one after the other; their results by name."""
    jobs = [job for experiment in chosen for job in experiment.jobs]
    results: dict[str, Results] = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        whole = progress.add_task("jobs on the simulated chip", total=len(jobs))
        for job in jobs:
            task = progress.add_task(job.name, total=job.results)
            results[job.name] = job.run(partial(update, progress, task))
            progress.update(task, completed=job.results)
            progress.advance(whole)
    return results


def write_table(path: Path, header: Row, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])


def write_picture(path: Path, experiment: Experiment, rows: list[Row]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    experiment.draw(axes, rows)
    kind, *number = experiment.name.split("_")
    axes.set_title(f"{experiment.title} ({kind} {('-' if kind == 'figure' else '.').join(number)})")
    figure.savefig(path, dpi=120, metadata={"Software": None})


def write(folder: Path, chosen: list[Experiment], results: Mapping[str, Results]) -> list[tuple[Experiment, Claim]]:
    """CSV, PNG, `summary.json`; the claims."""
    told = []
    for experiment in chosen:
        rows = experiment.rows({job.name: results[job.name] for job in experiment.jobs})
        write_table(folder / f"{experiment.name}.csv", experiment.header, rows)
        write_picture(folder / f"{experiment.name}.png", experiment, rows)
        told += [(experiment, claim) for claim in experiment.claims(rows)]
    summary = [{"experiment": experiment.name, **claim.as_dict()} for experiment, claim in told]
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return told


def show(told: list[tuple[Experiment, Claim]], console: Console) -> None:
    table = Table(title="What the thesis says, and what came out here")
    for heading in ("experiment", "claim", "thesis", "here", "holds"):
        table.add_column(heading)
    for experiment, claim in told:
        holds = "[green]yes" if claim.holds else "[red]no"
        table.add_row(experiment.name, claim.says, str(claim.theirs), str(claim.ours), holds)
    console.print(table)


@click.command("experiments")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for CSV, PNG and summary.json.")
@click.option("--only", multiple=True, metavar="NAME", help="This one alone, such as figure_5_4; repeatable.")
@click.option("--full", is_flag=True, help="Up to the largest sizes of the thesis: hours.")
@click.option("--list", "list_them", is_flag=True, help="Say what there is, and run nothing.")
def command(out: Path | None, only: tuple[str, ...], full: bool, list_them: bool) -> None:
    """Regenerate the tables and figures of Psota's rMPI thesis on the simulated Raw chip.

    Times are cycles of the simulated chip: two runs give the same tables.
    """
    console = Console()
    known = experiments(full)
    if list_them:
        for experiment in known.values():
            console.print(f"{experiment.name:12} {experiment.title}", highlight=False)
        return
    unknown = [name for name in only if name not in known]
    if unknown:
        raise click.UsageError(f"no experiment is called {unknown[0]}; known: {', '.join(known)}")
    chosen = [known[name] for name in only] or list(known.values())
    if out is None:
        raise click.UsageError("where to: --out DIR is missing")
    out.mkdir(parents=True, exist_ok=True)
    try:
        told = write(out, chosen, run_jobs(chosen, console))
    except RuntimeError as error:
        raise click.ClickException(str(error)) from error
    if told:
        show(told, console)
    console.print(f"{len(chosen)} tables and pictures in {out}")
