"""`ompy bench`: how fast a component is, beside those of the tree."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ompy.cli.output_file import PICTURES, OutputFile

PEERS = ("sm", "zmq")


@click.group()
def bench() -> None:
    """How fast a component is, beside those of ompy's own."""


@bench.command()
@click.argument("name")
@click.option("--beside", default=",".join(PEERS), show_default=True, help="Transports to compare it with.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Jobs of each; medians are told.")
@click.option("--plot", type=OutputFile(PICTURES), help="A picture too, in this file (png, svg, pdf).")
@click.option("--mca", "mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompyrun.")
def btl(name: str, beside: str, rounds: int, plot: Path | None, mca: tuple[tuple[str, str], ...]) -> None:
    """Latency, bandwidth and rate of the transport NAME between two ranks of this host.

    \b
    ompy bench btl pigeon
    ompy bench btl pigeon --beside sm --rounds 5 --plot pigeon.png

    Exit status: 0, or 1 when NAME could not be measured.
    """
    from importlib.util import find_spec

    from rich.console import Console
    from rich.progress import Progress

    from ompy.mca.params import use
    from ompy.testing.bench import rounds as jobs
    from ompy.testing.bench import show
    from ompy.testing.conformance.kit import component

    if plot is not None and find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs matplotlib: pip install matplotlib")
    use(mca)
    transports = list(dict.fromkeys([name, *(peer.strip() for peer in beside.split(",") if peer.strip())]))
    for transport in transports:
        component("btl", transport)
    samples: list[jobs.Sample] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=rounds * len(transports))
        for sample in jobs.run(transports, rounds, mca):
            samples.append(sample)
            progress.update(task, advance=1, description=sample.transport)
    found = jobs.medians(samples)
    for problem in dict.fromkeys((sample.transport, sample.problem) for sample in samples if sample.problem):
        click.echo(f"ompy bench: btl {problem[0]} could not be measured: {problem[1]}", err=True)
    if found:
        console = Console(width=None if sys.stdout.isatty() else 100)
        console.print(show.table(found))
        console.print(f"between two ranks of this host; medians of {rounds} rounds", highlight=False)
    if plot is not None and found:
        show.picture(found, plot)
        click.echo(f"{plot}")
    sys.exit(0 if name in found else 1)
