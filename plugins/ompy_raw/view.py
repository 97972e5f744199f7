"""`ompy raw view`: a record of a run on the chip, in words and as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from ompy_raw.picture import link_name, links, utilisation
from ompy_raw.trace import SIDES, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Links named in words.
BUSIEST = 5


def summary(trace: dict[str, Any]) -> list[str]:
    """Lines for people: how long, where the words went, and who is stuck."""
    seconds = trace["cycles"] / trace["cycles_per_second"]
    lines = [
        f"Raw chip of {trace['width']} x {trace['height']} tiles, {trace['cycles']} simulated cycles ({seconds:.6g} s), "
        f"{sum(trace['crossed'][SIDES * tile + side] for tile, side in links(trace))} words over links"
    ]
    used = [link for link in links(trace) if utilisation(trace, *link)]
    used.sort(key=lambda link: -utilisation(trace, *link))
    lines += [f"  link {link_name(trace, *link)}: {utilisation(trace, *link):.3f} words a cycle" for link in used[:BUSIEST]]
    if trace["words_seen"] > len(trace["words"]):
        lines.append(
            f"  of {trace['words_seen']} words on wires the first {len(trace['words'])} are kept: machine_raw_trace_words"
        )
    return lines + (trace["deadlock"].splitlines() if trace["deadlock"] else [])


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--out", type=click.Path(dir_okay=False), help="The picture, PNG, PDF or SVG. [default: FILE with .png]")
@click.option("--words", is_flag=True, help="List the words that crossed wires too: cycle, tile, side, word.")
def command(file: str, out: str | None, words: bool) -> None:
    """Draw a run on the simulated Raw chip: tiles, link utilisation, buffers over time, the deadlocked state.

    \b
    ompyrun -n 4 --mca btl gdn,self --mca machine_raw_trace run.json python prog.py
    ompy raw view run.json --out run.png
    """
    try:
        trace = load(file)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    for line in summary(trace):
        click.echo(line)
    if words:
        from ompy_raw.header import SIDE_NAMES

        for cycle, tile, side, word in trace["words"]:
            click.echo(f"{cycle:10d}  tile {tile:4d}  {SIDE_NAMES[side]:9s}  {word:08x}")
    try:
        from ompy_raw.picture import draw

        picture = draw(trace)
    except ImportError:
        raise click.ClickException("the picture needs matplotlib: pip install 'ompy[plots]'") from None
    path = Path(out) if out else Path(file).with_suffix(".png")
    picture.savefig(path, dpi=120)
    click.echo(f"drawn to {path}")
