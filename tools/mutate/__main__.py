"""Change a component at random, one small change at a time, and tell which changes nobody notices.

\b
    python tools/mutate coll/sm                       twenty changes
    python tools/mutate btl/zmq -n 100 --seed 7       these hundred; what was tried before is not tried again
    python tools/mutate osc -n 30                     thirty of all components of a framework together

A change is of an operator, a constant or a word, a line that is dropped or two that are swapped.  The one extension is built
again; then come the conformance kit's contract, the tests of the framework, and the kit as a whole.  What all of them let live
is shown at the end: either a check is missing, or the line has no effect.

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
from attempts import KILLED, ROOT, STILLBORN, SURVIVED, Component, Verdict, attempt, build, measured, of_framework, restore
from mutants import Mutant, mutants
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

# Numbers of those that may notice: the kit's contract, the tests, the whole kit.
KILLERS = (1, 2, 3)
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


def components_of(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[Component]:
    """The components that a command line names, each by itself or with all others of its framework."""
    found = []
    for value in values:
        framework, _, name = value.partition("/")
        named = [it for it in of_framework(framework) if name in ("", it.name)]
        if not named:
            raise click.BadParameter(f"there is no component {value}; one is coll/sm")
        found += named
    return list(dict.fromkeys(found))


@contextmanager
def unchanged() -> Iterator[None]:
    """Whatever happens: afterwards the tree is as it was, and built."""
    try:
        yield
    finally:
        restore()
        build()


def report(entries: list[tuple[Mutant, Verdict]]) -> int:
    """Show what became of them; the number of those that nobody noticed."""
    table = Table(
        "change", "tried", "killed", "by the contract", "by tests", "by the whole kit", "survived", "does not compile"
    )
    for kind in [*sorted({mutant.kind for mutant, _ in entries}), "all"]:
        verdicts = [verdict for mutant, verdict in entries if kind in (mutant.kind, "all")]
        killed, survived, stillborn = (sum(it.word == word for it in verdicts) for word in (KILLED, SURVIVED, STILLBORN))
        killers = [sum(it.killer == killer for it in verdicts) for killer in KILLERS]
        table.add_row(kind, *map(str, (len(verdicts), killed, *killers, survived, stillborn)))
    console.print(table)
    survivors = [mutant for mutant, verdict in entries if verdict.word == SURVIVED]
    for mutant in survivors:
        console.print(f"[yellow]survived[/] {escape(str(mutant))}\n", highlight=False)
    return len(survivors)


@click.command(help=__doc__)
@click.argument("components", metavar="FRAMEWORK[/NAME]...", nargs=-1, required=True, callback=components_of)
@click.option("-n", "count", default=20, show_default=True, help="How many changes.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("-k", "words", default="", help="Only in files whose names contain this.")
def main(components: list[Component], count: int, seed: int, words: str) -> None:
    restore()
    every = [
        (component, mutant)
        for component in components
        for path in component.sources
        if words in path.name
        for mutant in mutants(path, str(path.relative_to(ROOT)))
    ]
    chosen = sorted(random.Random(seed).sample(every, min(count, len(every))))
    notebooks = {component: Notebook(FOLDER / f"{component.framework}-{component.name}.jsonl") for component in components}
    todo = [(component, mutant) for component, mutant in chosen if not notebooks[component].knows(mutant)]
    console.print(f"{len(every)} changes are possible; {len(chosen)} chosen, {len(todo)} to try")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with unchanged(), Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(todo))
        limits: dict[Component, list[list[float]]] = {}
        if todo:
            build()
        for component, mutant in todo:
            if component not in limits:
                progress.update(task, description=f"{component.framework}/{component.name} without a change")
                limits[component] = measured(component.killers)
            progress.update(task, description=f"{Path(mutant.path).name}:{mutant.line}")
            verdict = attempt(mutant, component.killers, limits[component])
            notebooks[component].note(mutant, verdict)
            progress.console.print(f"{verdict.word} in {verdict.seconds:.0f} s: {mutant.path}:{mutant.line} ({mutant.kind})")
            progress.advance(task)
    picked = {mutant for _, mutant in chosen}
    entries = [entry for notebook in notebooks.values() for entry in notebook.entries if entry[0] in picked]
    sys.exit(1 if report(entries) else 0)


if __name__ == "__main__":
    main()
