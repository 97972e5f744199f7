"""Programs and libraries that use mpi4py, over ompy and over Open MPI's wheel: what passes, and in what time.

\b
python tools/clients                       every client on its numbers of ranks; the first time installs for some minutes
python tools/clients schwimmbad -n 2       these clients, these numbers of ranks
python tools/clients --quick               a few, over ompy only, once: part of the checks before a change goes in
python tools/clients --python python3.13 --wheel dist/ompy-0.1.0-cp313-cp313-linux_x86_64.whl
python tools/clients --page                write the page from what is kept, and run nothing

pip fetches the clients into .cache/clients.  Results are kept in tools/clients/results.json, so that single clients can be
measured again; docs/users/clients.md is written from it.  The exit status is 1 where ompy passes less than Open MPI.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click
import page
import results
from client import Client, Trial, read
from environment import LIBRARIES, TOP, Environment
from rich.console import Console
from rich.markup import escape
from trial import CORES, Outcome, run
from turns import run_in_turns

from ompy.runtime.orphans import adopt_orphans

PAGE = TOP / "docs" / "users" / "clients.md"
LINES = 40
Places = dict[str, Environment]


def environments(client: Client, others: list[Client], libraries: list[str], python: str, wheel: Path | None) -> Places:
    """Where the client runs over each library, everything installed that it and those beside it need."""
    wanted = [line for it in [client, *others] if it.environment == client.environment for line in it.requirements]
    python = str(Path(python).absolute()) if "/" in python else python
    if client.separate:
        places = {it: Environment(f"{client.environment}-{it.lower().replace(' ', '')}", python, wheel) for it in libraries}
        for library, place in places.items():
            place.prepare(wanted, [library])
        return places
    shared = Environment(client.environment, python, wheel)
    shared.prepare(wanted, libraries)
    return dict.fromkeys(libraries, shared)


def measure(client: Client, trial: Trial, places: Places, rounds: int, console: Console) -> Any:
    """One row: the libraries one after the other, A B, B A, ..., and in short turns once their times are near."""
    found: dict[str, list[Outcome]] = {library: [] for library in places}
    in_turns: dict[str, list[Outcome]] = {library: [] for library in places}
    orders = [dict(places), dict(reversed(places.items()))]
    may_take_turns = trial.ranks > 0 and len(places) > 1 and rounds > 1
    cores = min(trial.ranks, CORES)
    for number in range(rounds):
        for library, place in orders[number % 2].items():
            found[library].append(outcome := run(client, trial, place, library))
            quote(console, client, trial, library, outcome)
        near = may_take_turns and results.is_near(*found.values())
        if near and all(results.computes(it, cores) for it in found.values()):
            break
    else:
        return {library: results.summary(found[library], client.clocked) for library in places}
    for number in range(rounds):
        for library, outcome in run_in_turns(client, trial, orders[number % 2]).items():
            in_turns[library].append(outcome)
            quote(console, client, trial, library, outcome)
    return {library: results.summary(found[library], client.clocked, in_turns[library]) for library in places}


def quote(console: Console, client: Client, trial: Trial, library: str, outcome: Outcome) -> None:
    """What did not pass, in its own words."""
    if outcome.output:
        console.print(f"[bold]{client.name} on {trial.ranks or 'its own'} ranks over {library}:")
        for line in outcome.output.splitlines()[-LINES:]:
            console.print(f"  | {escape(line)}", highlight=False, soft_wrap=True)


def tell(console: Console, client: Client, trial: Trial, summary: dict[str, Any]) -> None:
    for library, told in summary.items():
        words = f"{told['passed']} passed, {told['skipped']} skipped, {len(told['failed'])} failed"
        where = f"{trial.ranks} ranks" if trial.ranks else "own jobs"
        times = f"{told['seconds']:8.2f} s{' in turns' * bool(told['in_turns'])}, {told['cpu_seconds']:8.2f} of CPU"
        console.print(f"{client.name:20} {where:9} {library:9} {words:38} {times}", highlight=False)
        for name in told["failed"]:
            console.print(f"    [red]failed[/]: {escape(name)}", highlight=False)


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("-n", "ranks", type=click.IntRange(0), multiple=True, help="Numbers of ranks; 0: those that start jobs.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each; the median counts.")
@click.option("--library", "libraries", type=click.Choice(LIBRARIES), multiple=True, help="[default: both]")
@click.option("--python", default=sys.executable, help="Interpreter of the environments.  [default: this one]")
@click.option("--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="ompy's.  [default: this tree]")
@click.option("--quick", is_flag=True, help="A few clients over ompy, once; nothing is kept.")
@click.option("--page", "page_only", is_flag=True, help="Write the page from what is kept.")
@click.option("--list", "list_them", is_flag=True, help="Say what there is, and run nothing.")
def main(
    names: tuple[str, ...],
    ranks: tuple[int, ...],
    rounds: int,
    libraries: tuple[str, ...],
    python: str,
    wheel: Path | None,
    quick: bool,
    page_only: bool,
    list_them: bool,
) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    adopt_orphans()
    console = Console(width=None if sys.stdout.isatty() else 160)
    clients = read()
    if unknown := [name for name in names if name not in clients]:
        raise click.UsageError(f"no client is called {unknown[0]}; known: {', '.join(clients)}")
    if list_them:
        for client in clients.values():
            console.print(f"{client.name:20} {client.about}: {client.tests}", highlight=False, soft_wrap=True)
        return
    chosen = [clients[name] for name in names] or [it for it in clients.values() if it.quick or not quick]
    compared = list(libraries or (LIBRARIES[:1] if quick else LIBRARIES))
    found: dict[str, Any] = {}
    for client in [] if page_only else chosen:
        try:
            places = environments(client, [] if quick else [*clients.values()], compared, python, wheel)
        except RuntimeError as error:
            raise click.ClickException(str(error)) from None
        for trial in client.trials:
            if not ranks or trial.ranks in ranks:
                summary = measure(client, trial, places, 1 if quick else rounds, console)
                tell(console, client, trial, summary)
                name = results.key(client, trial, places[compared[0]].version)
                found[name] = summary
                if not quick:
                    results.merge({name: summary})
    if quick:
        everything = [told for summary in found.values() for told in summary.values()]
        sys.exit(1 if any(told["failed"] or not told["passed"] for told in everything) else 0)
    kept = results.read()
    PAGE.write_text(page.text(clients, kept))
    behind = {name: words for name in found if (words := results.verdict(kept[name]))}
    for name, words in behind.items():
        console.print(f"[bold]{name}: {'; '.join(words)}")
    sys.exit(1 if any("pass" in word or "only" in word for words in behind.values() for word in words) else 0)
