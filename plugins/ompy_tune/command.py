"""`ompy tune`: measure every algorithm of a collective component here, and write the rules that choose the fastest."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ompy.cli.output_file import OutputFile
from ompy_tune import picture, table
from ompy_tune.table import AUTO, WITHOUT, Times
from ompy_tune.ways import MEASURED, TUNED, declared, ways

UNITS = {"K": 10, "M": 20}
SIZES = "8,32,128,512,2K,8K,32K,128K,512K,1M"


def numbers(text: str, what: str) -> list[int]:
    """8,64,4K as numbers."""
    found = []
    for word in text.upper().split(","):
        unit = UNITS.get(word[-1:], 0)
        digits = word[:-1] if unit else word
        if not digits.isdecimal() or not int(digits):
            raise click.BadParameter(f"{word!r} is no {what}")
        found.append(int(digits) << unit)
    return found


def sizes_of(_context: click.Context, _parameter: click.Parameter, value: str) -> list[int]:
    # Whole doubles.
    return sorted({size + -size % 8 for size in numbers(value, "number of bytes; 8,64,4K are some")})


def ranks_of(_context: click.Context, _parameter: click.Parameter, value: str) -> list[int]:
    found = numbers(value, "number of ranks; 2,4,8 are some")
    if min(found) < 2:
        raise click.BadParameter("one rank has nothing to choose: 2 and more")
    return found


def order(functions: Sequence[str], ranks: int, sizes: list[int], rounds: int, compare: bool, component: str) -> dict[str, Any]:
    """What `program.py` is told."""
    labelled: dict[str, dict[str, dict[str, Any]]] = {}
    least: dict[str, int] = {}
    for function in functions:
        labelled[function] = {WITHOUT: {f"coll_{component}_priority": 0}}
        if compare:
            labelled[function][AUTO] = {}
            continue
        for way in ways(function, ranks, component):
            labelled[function][str(way)] = way.parameters(function, component)
            least[str(way)] = way.numbers.get("segmentsize", -1) + 1
    return {"functions": labelled, "bytes": sizes, "least": least, "rounds": rounds}


def run(order: dict[str, Any], ranks: int, mca: Sequence[tuple[str, str]], where: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The lines that a job prints; `where` are the launcher's words for its hosts.  Raises ClickException when it fails."""
    options = [word for name, value in mca for word in ("--mca", name, value)]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", *where, "-n", str(ranks), *options, sys.executable]
    command += ["-m", "ompy_tune.program", json.dumps(order)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise click.ClickException(f"the job of {ranks} ranks ended with status {process.returncode}")


def unknown_sizes(kept: Times, functions: Sequence[str], count: int, sizes: Sequence[int]) -> dict[tuple[int, ...], list[str]]:
    """Those sizes that so many ranks have no times of, with the functions of which that is so."""
    lacking: dict[tuple[int, ...], list[str]] = {}
    for name in functions:
        known = kept.get(name, {}).get(count, {})
        # A barrier has one size, which is none.
        if unknown := tuple(size for size in sizes if size not in known and known.keys() != {0}):
            lacking.setdefault(unknown, []).append(name)
    return lacking


@contextmanager
def watching(functions: int, sizes: int) -> Iterator[Callable[[str], None]]:
    """A display of progress; gives the function that takes note of one more size."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=functions * sizes)

        def advance(words: str) -> None:
            progress.update(task, advance=1, description=words)

        yield advance


def show_comparison(times: Times, component: str) -> None:
    """How much faster the component's rules in force are than what serves without it: that time as a multiple of theirs."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 160)
    for ranks in sorted({ranks for by_ranks in times.values() for ranks in by_ranks}):
        found = {function: by_ranks[ranks] for function, by_ranks in times.items() if ranks in by_ranks}
        sizes = sorted({size for by_size in found.values() for size in by_size})
        words = f"time without coll/{component} against that of the rules in force"
        shown = Table(title=f"{words}, {ranks} ranks: above 1 they are faster")
        for heading in ("function", *map(table.readable, sizes)):
            shown.add_column(heading, justify="right")
        for function, by_size in found.items():
            ratios = [by_size[size][WITHOUT] / by_size[size][AUTO] if size in by_size else None for size in sizes]
            shown.add_row(function, *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios))
        console.print(shown)


@click.command("tune")
@click.option("--mca", "mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompyrun: btl zmq,self.")
@click.option("--component", type=click.Choice(list(MEASURED)), default=TUNED, show_default=True, help="Whose algorithms.")
@click.option("--host", "hosts", metavar="HOSTS", help="As for ompyrun: the job runs there.  n1:2,n2:2")
@click.option("--hostfile", metavar="FILE", help="The same.")
@click.option("-n", "-np", "ranks", default="2,4,8", show_default=True, callback=ranks_of, help="Numbers of ranks.")
@click.option("--bytes", "sizes", default=SIZES, show_default=True, callback=sizes_of, help="Sizes of a block.")
@click.option("--only", multiple=True, metavar="FUNCTION", help="This function alone, such as bcast; repeatable.")
@click.option("--rounds", type=click.IntRange(1), default=7, show_default=True, help="Turns of which the median counts.")
@click.option("--times", type=OutputFile(), help="Keep all times here; a later run goes on from them.")
@click.option("-o", "--out", type=OutputFile(), help="The rules: TOML, or Python where it ends with .py.")
@click.option("--picture", "pictures", type=OutputFile(placeholder="{n}"), help="Time over size; {n} stands for the ranks.")
@click.option("--compare", is_flag=True, help="Measure what the rules in force gain, and write none.")
def command(
    mca: tuple[tuple[str, str], ...],
    component: str,
    hosts: str | None,
    hostfile: str | None,
    ranks: list[int],
    sizes: list[int],
    only: tuple[str, ...],
    rounds: int,
    times: Path | None,
    out: Path | None,
    pictures: Path | None,
    compare: bool,
) -> None:
    """Measure every algorithm of a collective component, and write the rules that choose the fastest.

    \b
    ompy tune --mca btl zmq,self -n 2,4,8 -o rules.toml --picture "rules-{n}.png"
    ompyrun --mca coll_tuned_dynamic_rules_filename rules.toml ...
    ompy tune --compare --mca coll_tuned_dynamic_rules_filename rules.toml -n 4
    ompy tune --component han --host node1:4,node2:4 -n 8 -o han.toml
    """
    known = list(declared(component))
    if unknown := [name for name in only if name not in known]:
        raise click.UsageError(f"--only {unknown[0]}: coll/{component} has no such function; known: {', '.join(known)}")
    if not compare and out is None and times is None:
        raise click.UsageError("where to: -o FILE for the rules, or --times FILE for the times alone")
    try:
        kept = table.load(times) if times and not compare else {}
    except ValueError as error:
        raise click.UsageError(f"--times: {error}") from None
    functions = list(only) or known
    mca = (*MEASURED[component], *mca)
    places = [*(("--host", hosts) if hosts else ()), *(("--hostfile", hostfile) if hostfile else ())]
    with watching(len(functions) * len(ranks), len(sizes)) as advance:
        for count in ranks:
            for lacking, names in unknown_sizes(kept, functions, count, sizes).items():
                asked = order(names, count, list(lacking), rounds, compare, component)
                for line in run(asked, count, mca, places):
                    advance(f"{line['function']}, {count} ranks, {table.readable(line['bytes'])} bytes")
                    measured = kept.setdefault(line["function"], {}).setdefault(count, {})
                    measured[line["bytes"]] = line["seconds"]
                    kept[line["function"]][count] = dict(sorted(measured.items()))
                    if times and not compare:
                        table.save(times, kept)
    if compare:
        show_comparison(kept, component)
        return
    where = " ".join([*places, *(f"--mca {name} {value}" for name, value in mca[len(MEASURED[component]) :])])
    heading = [
        f"Decision rules of coll/{component}, measured by `ompy tune`.",
        f"{platform.machine()}, {platform.system()}, {where or 'default transports'}.",
    ]
    if out:
        make = table.as_python if out.suffix == ".py" else table.as_toml
        out.write_text(make(kept, heading), encoding="utf-8")
    for count in sorted({count for by_ranks in kept.values() for count in by_ranks}) if pictures else ():
        path = Path(str(pictures).replace("{n}", str(count)))
        picture.draw(path, kept, count, f"{count} ranks, {where or 'default transports'}")
