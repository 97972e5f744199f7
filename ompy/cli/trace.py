"""`ompy trace`: run a job and draw what becomes of each message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from ompy.mca.params import use
from ompy.runtime import timeline


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("trace.json"), show_default=True,
              help="File to write.")  # fmt: skip
@click.option("--events", type=click.IntRange(1), default=1 << 16, show_default=True,
              help="Events that each rank keeps, the latest; rounded up to a power of two.")  # fmt: skip
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def trace(output: Path, events: int, command: tuple[str, ...]) -> None:
    """Run COMMAND and record each message: posted, matched, protocol, fragments, completed, waits.

    \b
    ompy trace -o run.json -- ompyrun -n 4 python prog.py
    then open run.json at https://ui.perfetto.dev (it stays in your browser) or in chrome://tracing

    The exit status is the command's.  A rank that was killed is drawn up to its end.
    """
    output = output.resolve()
    if not os.access(output.parent, os.W_OK):
        raise click.UsageError(f"{output.parent} is no folder that can be written in")
    for left_over in timeline.rings(str(output)):
        os.remove(left_over)
    output.unlink(missing_ok=True)
    use((("trace_output", str(output)), ("trace_events", str(1 << (events - 1).bit_length()))))
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise click.UsageError(f"{command[0]} can't be run: {error.strerror}") from None
    if timeline.rings(str(output)):
        timeline.collect(str(output))
    if output.exists():
        click.echo(f"ompy trace: {output} ({output.stat().st_size} bytes): open it at https://ui.perfetto.dev", err=True)
    else:
        click.echo("ompy trace: no rank of ompy's ran, nothing was recorded", err=True)
    sys.exit(128 - status if status < 0 else status)
