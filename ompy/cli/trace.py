"""`ompy trace`: run a job and draw what becomes of each message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import click

from ompy.mca.params import use
from ompy.runtime import timeline

# What the terminal sends to the command as well, and what is sent to this process and passed on.
SHARED = {signal.SIGINT, signal.SIGQUIT}
PASSED_ON = {signal.SIGHUP, signal.SIGTERM}


def run(command: tuple[str, ...]) -> int:
    """Run a command to its end, whatever asks this process to end meanwhile, and return its status."""
    # What nohup has switched off stays off; but who ignores SIGCHLD is not told of the end.
    passed_on = {number for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    watched = {*SHARED, *passed_on, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        process = subprocess.Popen(command, preexec_fn=partial(signal.pthread_sigmask, signal.SIG_SETMASK, before))
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    while process.poll() is None:
        number = signal.sigwaitinfo(watched).si_signo
        if number in passed_on:
            process.send_signal(number)
    return process.returncode


def state(path: Path) -> tuple[int, int] | None:
    """Equal as long as nobody writes the file anew."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("trace.json"), show_default=True,
              help="File to write.")  # fmt: skip
@click.option("--events", type=click.IntRange(2, 1 << 24), default=1 << 16, show_default=True,
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
    if reason := timeline.refusal(str(output)):
        raise click.UsageError(f"--output: {reason}")
    for left_over in timeline.rings(str(output)):
        os.remove(left_over)
    before = state(output)
    use((("trace_output", str(output)), ("trace_events", str(1 << (events - 1).bit_length()))))
    try:
        status = run(command)
    except OSError as error:
        raise click.UsageError(f"{command[0]} can't be run: {error.strerror}") from None
    if timeline.rings(str(output)):
        timeline.collect(str(output))
    if state(output) != before:
        click.echo(f"ompy trace: {output} ({output.stat().st_size} bytes): open it at https://ui.perfetto.dev", err=True)
    else:
        click.echo("ompy trace: nothing was recorded: no rank of ompy's ran, or the command sets trace_output itself", err=True)
    sys.exit(128 - status if status < 0 else status)
