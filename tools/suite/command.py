"""mpi4py's own test suite, run on ompy in mpi4py's place.

\b
python tools/suite                              every module, on 3 ranks over shared memory
python tools/suite -n 1 -n 5 comm p2p_buf       these modules, on 1 rank and on 5
python tools/suite -n 2 --mca btl self,zmq      with parameters of ompy
python tools/suite -n 2 --launcher 'mpiexec.hydra -n {ranks}'       under another launcher
python tools/suite --quick                      all modules but a few, on 2 ranks over self,sm and self,zmq; part of .ci/run
python tools/suite --chaos                      point to point and buffer collectives on 3 ranks under pml/dr, over a
                                                btl/zmq that drops and repeats 1% of all messages, delays 5%, damages 0.1%
python tools/suite --matrix                     every module on 1, 2, 3, 5 ranks over self,sm and over self,tcp, and on 2, 3
                                                over self,zmq

The tests come from mpi4py's source distribution and its pure-Python parts from its wheel, which pip fetches into
.cache/suite at the first run; nothing of them is in the repository.  A test has the worst of its ranks' outcomes.
What ompy/testing/suite/expectations.toml does not expect fails the run: a failure, a skip, a pass where none is expected,
and a test that was not run.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

import click
import disorder
import junit
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from ompy.testing.suite import job
from ompy.testing.suite.expectations import OURS, Expectations
from ompy.testing.suite.job import Result, Setting
from ompy.testing.suite.outcomes import OUTCOMES
from ompy.testing.suite.source import Unreachable, installed, sources

MATRIX = [
    *(Setting(ranks, (("btl", "self,sm"),)) for ranks in (1, 2, 3, 5)),
    *(Setting(ranks, (("btl", "self,tcp"),)) for ranks in (1, 2, 3, 5)),
    *(Setting(ranks, (("btl", "self,zmq"),)) for ranks in (2, 3)),
]
QUICK = [Setting(2, (("btl", transports),)) for transports in ("self,sm", "self,zmq")]
# Shown of a module with surprises: so many of them, and so many lines at the end of its output.
SURPRISES = 10
LINES = 60
COLOURS = dict(zip(OUTCOMES, ("green", "yellow", "red", "magenta"), strict=True))

Judged = tuple[Result, dict[str, str]]


def table(setting: Setting, judged: list[Judged]) -> Table:
    """Modules and what came of their tests."""
    shown = Table("module", *OUTCOMES, "unexpected", "seconds", title=f"mpi4py's suite on {setting}", title_justify="left")
    for column in shown.columns[1:]:
        column.justify = "right"

    def row(name: str, counts: list[int], surprises: int, seconds: float) -> None:
        cells = [f"[{COLOURS[kind]}]{count}" if count else "-" for kind, count in zip(OUTCOMES, counts, strict=True)]
        shown.add_row(name, *cells, f"[bold red]{surprises}" if surprises else "-", f"{seconds:.1f}")

    for result, surprises in judged:
        row(result.module, [result.count(kind) for kind in OUTCOMES], len(surprises), result.seconds)
    shown.add_section()
    total = [sum(result.count(kind) for result, _ in judged) for kind in OUTCOMES]
    row("all", total, sum(len(surprises) for _, surprises in judged), sum(result.seconds for result, _ in judged))
    return shown


def tell(console: Console, result: Result, surprises: dict[str, str], verbose: bool) -> None:
    """What surprised, and the end of what the ranks printed."""
    console.print(f"[bold red]test_{result.module} on {result.setting}: {len(surprises)} unexpected")
    told = list(surprises.items())
    for name, words in told if verbose else told[:SURPRISES]:
        console.print(f"  {escape(name)}: {escape(words)}", highlight=False, soft_wrap=True)
    if len(told) > SURPRISES and not verbose:
        console.print(f"  and {len(told) - SURPRISES} more; --verbose shows all")
    lines = result.output.splitlines()
    kept = lines if verbose else lines[-LINES:]
    if len(kept) < len(lines):
        console.print(f"  (the last {LINES} of {len(lines)} lines that it printed; --verbose shows all)")
    for line in kept:
        console.print(f"  | {escape(line)}", highlight=False, soft_wrap=True)


@click.command(help=__doc__)
@click.argument("modules", nargs=-1)
@click.option("-n", "ranks", type=click.IntRange(1), multiple=True, help="Number of ranks; repeatable.  [default: 3]")
@click.option("--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="MCA parameter of the jobs; repeatable.")
@click.option("--launcher", default="", metavar="WORDS", help="Another launcher's command, {ranks} for their number.")
@click.option("--quick", is_flag=True, help="All modules but a few long ones, on two ranks.")
@click.option("--matrix", is_flag=True, help="Every number of ranks over every transport.")
@click.option("--chaos", is_flag=True, help="Under pml/dr, over btl/chaos around btl/zmq.")
@click.option("--chaos-wraps", default="zmq", show_default=True, help="The transport under --chaos.")
@click.option("--seed", type=int, help="Of --chaos; told, and a new one each run, unless given.")
@click.option("--repeat", default=1, show_default=True, help="Run everything so often.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds for a module.")
@click.option("--silence", default=60.0, show_default=True, help="Seconds in which nothing happens until a module is ended.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write the results as JUnit XML.")
@click.option("--skips", is_flag=True, help="Show which tests were skipped and what they said.")
@click.option("--verbose", is_flag=True, help="Show everything that a module with a surprise printed.")
def main(
    modules: tuple[str, ...],
    ranks: tuple[int, ...],
    mca: tuple[tuple[str, str], ...],
    launcher: str,
    quick: bool,
    matrix: bool,
    chaos: bool,
    chaos_wraps: str,
    seed: int | None,
    repeat: int,
    timeout: float,
    silence: float,
    junit_file: Path | None,
    skips: bool,
    verbose: bool,
) -> None:
    begin = time.monotonic()
    # A run that is ended ends its job.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    width = None if sys.stdout.isatty() else 160
    console = Console(width=width)
    expected = Expectations(OURS)
    if (matrix or quick or chaos) and launcher:
        raise click.UsageError("--matrix, --quick and --chaos are of ompyrun")
    if (matrix or quick) and (ranks or mca):
        raise click.UsageError("--matrix and --quick have their own ranks and parameters")
    words = tuple(shlex.split(launcher))
    if words and not shutil.which(words[0]):
        raise click.UsageError(f"there is no launcher {words[0]}")
    settings = MATRIX if matrix else QUICK if quick else [Setting(count, mca, words) for count in ranks or (3,)]
    usual = expected.quick if quick else expected.modules
    if chaos:
        seed = secrets.randbelow(1 << 32) if seed is None else seed
        console.print(f"--seed {seed} repeats the faults")
        disorders = [disorder.setting(count, seed, chaos_wraps) for count in ranks or (3,)]
        settings = [Setting(it.ranks, it.mca + mca) for it in disorders]
        usual = disorder.modules(usual)
    chosen = [name.removeprefix("test_") for name in modules] or usual
    try:
        tests = sources() / "test"
        installed()
    except Unreachable as error:
        raise click.ClickException(str(error)) from None
    for module in chosen:
        if not (tests / f"test_{module}.py").exists():
            raise click.UsageError(f"mpi4py's suite has no module test_{module}")
    everything: list[Judged] = []
    with Progress(console=Console(stderr=True, width=width), transient=True) as progress:
        task = progress.add_task("", total=repeat * len(settings) * len(chosen))
        for setting in settings * repeat:
            judged: list[Judged] = []
            for module in chosen:
                progress.update(task, description=f"{setting}: {module}")
                result = job.run(module, setting, timeout, silence)
                surprises = expected.surprises(result)
                judged.append((result, surprises))
                if surprises:
                    tell(console, result, surprises, verbose)
                for test, outcome in result.outcomes.items() if skips else ():
                    if outcome.kind == "skipped":
                        console.print(f"{test}: skipped {outcome.reason!r}", highlight=False, soft_wrap=True)
                progress.advance(task)
            console.print(table(setting, judged))
            everything += judged
    if junit_file:
        junit.write(junit_file, everything)
    unexpected = sum(len(surprises) for _, surprises in everything)
    count = sum(len(result.outcomes) for result, _ in everything)
    silent = []
    if chaos:
        faults = disorder.fired([result for result, _ in everything])
        silent = disorder.silent(faults)
        console.print("faults: " + ", ".join(f"{number} {name}" for name, number in faults.items()))
        for fault in silent:
            console.print(f"[bold red]no message met the fault {fault}: nothing was shown of it")
    console.print(f"{count} outcomes, {unexpected} unexpected, in {time.monotonic() - begin:.0f} s")
    sys.exit(1 if unexpected or silent else 0)
