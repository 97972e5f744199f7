"""`ompy`: questions to the stack."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from ompy.cli.activate import activate, deactivate
from ompy.cli.bench import bench
from ompy.cli.conformance import conformance
from ompy.cli.fuzz import fuzz
from ompy.cli.new import new
from ompy.cli.trace import trace
from ompy.core.errors import MPIError
from ompy.mca import discovery
from ompy.mca.errors import suggestion
from ompy.mca.params import use


def launch(ranks: int, mca: tuple[tuple[str, str], ...], program: list[str]) -> NoReturn:
    """Become an `ompyrun` of a module of ours."""
    options = [word for name, value in mca for word in ("--mca", name, value)]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(ranks), *options, sys.executable, "-m", *program]
    sys.stdout.flush()
    os.execv(sys.executable, command)


class Suggesting(click.Group):
    """A group that answers a misspelt subcommand with the nearest one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            raise click.UsageError(f"no command is called {args[0]}; known: {', '.join(known)}.{suggestion(args[0], known)}")
        return super().resolve_command(ctx, args)


class Extensible(Suggesting):
    """A group that has, besides its own commands, those of installed distributions.

    An entry point of the group `ompy.command` names a module that holds a click command called `command`; it is imported
    when the command is asked for.  A dot in the entry point's name makes a group: `raw.view` is `ompy raw view`.
    """

    path = ""

    def installed(self) -> dict[str, discovery.Found]:
        """The entry points below this group, named from here on."""
        prefix = f"{self.path}." if self.path else ""
        points = discovery.installed().get("command", {})
        return {name.removeprefix(prefix): found for name, found in points.items() if name.startswith(prefix)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *(name.partition(".")[0] for name in self.installed())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        points = self.installed()
        if cmd_name in points:
            command: click.Command = import_module(points[cmd_name].module).command
            return command
        if any(name.startswith(f"{cmd_name}.") for name in points):
            nested = Extensible(cmd_name, help=f"Commands about {cmd_name}.", context_settings=self.context_settings)
            nested.path = f"{self.path}.{cmd_name}" if self.path else cmd_name
            return nested
        return super().get_command(ctx, cmd_name)


@click.group(cls=Extensible, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="ompy", message="ompy %(version)s", help="Print the version.")
def group() -> None:
    """Ask the stack what it would do, and why."""


@group.command()
@click.argument("collective", required=False)
@click.option("--peer", type=click.IntRange(0), help="Which transports lead from rank 0 to this rank, and why.")
@click.option("--file", "path", help="Which components serve this file, and why; it is opened to read.")
@click.option(
    "--bytes",
    "nbytes",
    type=click.IntRange(0, (1 << 63) - 1),
    default=8,
    show_default=True,
    help="Of the collective's message.",
)
@click.option("-n", "-np", "ranks", type=click.IntRange(1), help="Ranks of the job that is asked. [default: enough]")
@click.option("--mca", "mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompyrun.")
@click.option("--tune", "tune", multiple=True, metavar="FILE", help="As for ompyrun.")
def explain(
    collective: str | None,
    peer: int | None,
    path: str | None,
    nbytes: int,
    ranks: int | None,
    mca: tuple[tuple[str, str], ...],
    tune: tuple[str, ...],
) -> None:
    """Start a small job and let its rank 0 say why messages go the way they go.

    \b
    ompy explain --peer 3 -n 4                      transports towards rank 3
    ompy explain allreduce --bytes 65536 -n 4       who carries a collective out
    ompy explain --file run.npy -n 4                who serves a file
    """
    if sum(asked is not None for asked in (collective, peer, path)) != 1:
        raise click.UsageError("give either --peer K, --file PATH or the name of a collective, such as allreduce")
    use((), tune)
    if path is not None:
        launch(ranks or 2, mca, ["ompy.cli.answer", "file", path])
    if peer is not None:
        ranks = ranks or max(2, peer + 1)
        if peer >= ranks:
            raise click.UsageError(f"--peer {peer}: a job of {ranks} ranks has peers 0 to {ranks - 1}; raise -n")
        launch(ranks, mca, ["ompy.cli.answer", "peer", str(peer)])
    launch(ranks or 2, mca, ["ompy.cli.answer", "collective", str(collective), str(nbytes)])


group.add_command(activate)
group.add_command(bench)
group.add_command(conformance)
group.add_command(deactivate)
group.add_command(fuzz)
group.add_command(new)
group.add_command(trace)


def main() -> None:
    """The console command: exit status 0, that of the job, or 2 after saying what is wrong with the arguments."""
    try:
        group(prog_name="ompy", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except MPIError as error:
        click.echo(f"ompy: {error}", err=True)
        sys.exit(2)
