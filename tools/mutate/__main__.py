"""Change a component at random, one small change at a time, and tell which changes nobody notices.

\b
    python tools/mutate coll/sm                       twenty changes
    python tools/mutate btl/zmq -n 100 --seed 7       these hundred; what was tried before is not tried again

A change is of an operator, a constant or a word, a line that is dropped or two that are swapped.  The one extension is built
again, then the conformance kit and the component's tests run.  What both let live is shown at the end: either a check is
missing, or the line has no effect.

Sources are changed in place and put back, after an interruption by the next run: use a clone in which nobody works.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from attempts import KILLED, ROOT, STILLBORN, SURVIVED, Component, Verdict, attempt, build, measured, restore
from mutants import Mutant, mutants
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

FOLDER = ROOT / ".cache" / "mutate"
console = Console()


class Notebook:
    """What became of mutants, a line of JSON each, so that a run can go on where the last one ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.entries = [(Mutant(*mutant), Verdict(*verdict)) for mutant, verdict in map(json.loads, lines)]

    def knows(self, mutant: Mutant) -> bool:
        return any(known == mutant for known, _ in self.entries)

    def note(self, mutant: Mutant, verdict: Verdict) -> None:
        self.entries.append((mutant, verdict))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as stream:
            stream.write(json.dumps((mutant, verdict)) + "\n")


def component_of(_context: click.Context, _parameter: click.Parameter, value: str) -> Component:
    framework, _, name = value.partition("/")
    component = Component(framework, name)
    try:
        component.folder  # noqa: B018
    except StopIteration:
        raise click.BadParameter(f"there is no component {value}; one is coll/sm") from None
    return component


@contextmanager
def unchanged() -> Iterator[None]:
    """Whatever happens: afterwards the tree is as it was, and built."""
    try:
        yield
    finally:
        restore()
        build()


def report(notebook: Notebook, chosen: list[Mutant]) -> int:
    """Show what became of them; the number of those that nobody noticed."""
    entries = [(mutant, verdict) for mutant, verdict in notebook.entries if mutant in chosen]
    table = Table("change", "tried", "killed", "by the kit", "survived", "does not compile")
    for kind in [*sorted({mutant.kind for mutant, _ in entries}), "all"]:
        verdicts = [verdict for mutant, verdict in entries if kind in (mutant.kind, "all")]
        counts = [sum(it.word == word for it in verdicts) for word in (KILLED, SURVIVED, STILLBORN)]
        kit = sum(it.killer == 1 for it in verdicts)
        table.add_row(kind, *map(str, (len(verdicts), counts[0], kit, counts[1], counts[2])))
    console.print(table)
    survivors = [mutant for mutant, verdict in entries if verdict.word == SURVIVED]
    for mutant in survivors:
        console.print(f"[yellow]survived[/] {escape(str(mutant))}\n", highlight=False)
    return len(survivors)


@click.command(help=__doc__)
@click.argument("component", callback=component_of)
@click.option("-n", "count", default=20, show_default=True, help="How many changes.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("-k", "words", default="", help="Only in files whose names contain this.")
def main(component: Component, count: int, seed: int, words: str) -> None:
    restore()
    every = [it for path in component.sources if words in path.name for it in mutants(path, str(path.relative_to(ROOT)))]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    notebook = Notebook(FOLDER / f"{component.framework}-{component.name}.jsonl")
    todo = [mutant for mutant in chosen if not notebook.knows(mutant)]
    console.print(f"{len(every)} changes of {component.framework}/{component.name}; {len(chosen)} chosen, {len(todo)} to try")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with unchanged(), Progress(*columns, console=console) as progress:
        if todo:
            build()
            task = progress.add_task("without a change", total=len(todo))
            limits = measured(component.killers)
        for mutant in todo:
            progress.update(task, description=f"{Path(mutant.path).name}:{mutant.line}")
            verdict = attempt(mutant, component.killers, limits)
            notebook.note(mutant, verdict)
            progress.console.print(f"{verdict.word} in {verdict.seconds:.0f} s: {mutant.path}:{mutant.line} ({mutant.kind})")
            progress.advance(task)
    sys.exit(1 if report(notebook, chosen) else 0)


if __name__ == "__main__":
    main()
