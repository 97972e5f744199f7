"""`ompy conformance`: does a component keep its contract?"""

from __future__ import annotations

import itertools
import random
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from ompy.cli.output_file import OutputFile

SEEDS = 1 << 32


class Counts(click.ParamType):  # type: ignore[type-arg]  # which click 8.1 does not take
    """Numbers of ranks: 2,3,5."""

    name = "N,N,..."

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not a list of numbers of ranks, such as 2,3,5", parameter, context)
        return tuple(int(part) for part in parts)


class Bytes(click.ParamType):  # type: ignore[type-arg]  # as above
    """A number of bytes, with K, M or G behind it."""

    name = "BYTES"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> int:
        text = str(value).upper().removesuffix("B").removesuffix("I")
        unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
        digits = text[:-1] if unit else text
        if not digits.isdecimal():
            self.fail(f"{value!r} is no number of bytes; 5G is one", parameter, context)
        return int(digits) << unit


@click.command()
@click.option(
    "--mca",
    "mca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="btl NAME,self: NAME is under test; others as for ompyrun.",
)
@click.option("-n", "-np", "ranks", type=Counts(), default="2,3", show_default=True, help="Numbers of ranks: 2,3,5.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    help="contract, limits, mpi, mixed, programs or suite, as the framework has them; repeatable.  [default: all]",
)
@click.option(
    "-k", "words", default="", metavar="WORDS", help="Only checks with these words in their names, or of this clause."
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first failure.")
@click.option("--seed", type=click.IntRange(0), help="Of everything random.  [default: a new one]")
@click.option("--silence", default=20.0, show_default=True, help="Seconds without a sign of life that end a check.")
@click.option("--bytes", "nbytes", type=Bytes(), default=0, help="Also transfer so many bytes, such as 5G.")
@click.option("--seconds", default=20.0, show_default=True, help="Of random programs, the level `programs`.")
@click.option("--suite", "modules", multiple=True, metavar="MODULE", help="Also this module of mpi4py's tests; repeatable.")
@click.option("--junit", type=OutputFile(), help="Write the results as JUnit XML.")
def conformance(
    mca: tuple[tuple[str, str], ...],
    ranks: tuple[int, ...],
    levels: tuple[str, ...],
    words: str,
    exitfirst: bool,
    seed: int | None,
    silence: float,
    nbytes: int,
    seconds: float,
    modules: tuple[str, ...],
    junit: Path | None,
) -> NoReturn:
    """Does a component keep its contract?  Every clause of ompy/mca/<framework>.pxd is tried on real ranks.

    \b
    ompy conformance --mca btl mynet,self -n 2,3,5
    ompy conformance --mca btl mynet,self -k back-pressure --seed 7
    ompy conformance --mca pml mine            of mtl, rpi, coll, osc, ... likewise

    The first name is the component under test; the others stand beside it where whole MPI programs run.  A failure names
    the clause that is broken, and the command that shows it again.  Exit status: 0 when all is well, 1 when not.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ompy.mca.params import use
    from ompy.testing.conformance import check, clauses, kit, programs, report, suite
    from ompy.testing.conformance.job import Order

    framework, names, others = subject(mca)
    has_programs = framework in programs.FRAMEWORKS and not words
    known = check.levels(framework) + [programs.LEVEL] * has_programs + [suite.LEVEL] * bool(modules)
    if unknown := set(levels) - set(known):
        raise click.UsageError(f"--level {', '.join(sorted(unknown))}: {framework} has the levels {', '.join(known)}")
    use([(framework, ",".join(names)), *others])
    kit.component(framework, names[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    orders = [
        Order(framework, names, level, count, others, seed, silence, {"bytes": nbytes})
        for level in (levels or known)
        for count in ranks
    ]
    apart = programs.LEVEL, suite.LEVEL
    plans = [(order, kit.selected(framework, order.level, words)) for order in orders if order.level not in apart]
    fuzzed = [order for order in orders if order.level == programs.LEVEL]
    wanted = [order for order in orders if order.level == suite.LEVEL]
    total = sum(len(chosen) for _, chosen in plans) + len(fuzzed) + len(wanted) * len(modules)
    if not total and words in clauses.read(framework):
        raise click.UsageError(f"-k {words}: every check watches that clause, and none has it alone: leave -k out")
    if not total:
        raise click.UsageError(f"-k {words}: no check of {framework} has that in its name, and no clause is called so")
    results: list[kit.Result] = []
    width = None if sys.stdout.isatty() else 140
    running = [kit.run(order, chosen, exitfirst) for order, chosen in plans]
    running += [programs.run(order, seconds) for order in fuzzed] + [suite.run(order, modules) for order in wanted]
    columns = SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        for result in itertools.chain.from_iterable(running):
            results.append(result)
            progress.update(
                task, advance=1, description=f"{result.order.level}, {result.order.ranks} ranks: {result.check.title}"
            )
            if exitfirst and result.outcome.word == check.FAILED:
                break
    console = Console(width=width)
    report.show(console, results)
    if junit:
        report.write_junit(junit, results)
    failed = len(report.failures(results))
    skipped = sum(result.outcome.word == check.SKIPPED for result in results)
    console.print(
        f"{len(results) - failed - skipped} passed, {failed} failed, {skipped} left out; seed {seed}", highlight=False
    )
    sys.exit(1 if failed else 0)


def subject(mca: tuple[tuple[str, str], ...]) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Framework and names of the components that `--mca btl a,b` puts under test, and the other parameters."""
    from ompy.testing.conformance import check, programs

    frameworks = {*programs.FRAMEWORKS, *(name for name, _ in check.MODULES)}
    under_test = [(name, value) for name, value in mca if name in frameworks]
    if not under_test:
        raise click.UsageError("name what is under test: --mca btl NAME,self")
    framework, value = next((pair for pair in under_test if pair[0] != "btl"), under_test[0])
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names or any(name.startswith("^") for name in names):
        raise click.UsageError(f"--mca {framework} {value}: name the component under test first, then those beside it")
    return framework, names, tuple(pair for pair in mca if pair[0] != framework)
