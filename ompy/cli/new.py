"""`ompy new`: a component of one's own, as a distribution that installs and works."""

from __future__ import annotations

from pathlib import Path

import click

from ompy.mca import discovery
from ompy.scaffold import distribution


@click.command()
@click.argument("framework", type=click.Choice(distribution.frameworks()))
@click.argument("name")
@click.option("--cython", is_flag=True, help="The compiled form.")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder to write it in. [default: .]"
)
def new(framework: str, name: str, cython: bool, into: Path) -> None:
    """Write ompy-FRAMEWORK-NAME: a component that installs and works as it is, for you to change.

    \b
    ompy new btl pigeon && pip install ./ompy-btl-pigeon
    ompyrun -n 2 --mca btl pigeon,self python prog.py
    """
    if reason := distribution.problem(name):
        raise click.UsageError(reason)
    taken = discovery.installed().get(framework, {}).get(name)
    if taken is not None:
        raise click.UsageError(f"{taken.distribution} already has a {framework} component {name}: choose another name")
    forms = distribution.forms(framework)
    if cython and "cython" not in forms:
        raise click.UsageError(f"a {framework} component is written in Python here; leave --cython out")
    cython = cython or forms == ["cython"]
    try:
        folder = distribution.write(framework, name, into, cython)
    except FileExistsError as error:
        raise click.UsageError(f"{error.filename} is there already: remove it, or write elsewhere with --into") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(f"{folder}/")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        click.echo(f"  {path.relative_to(folder)}")
    where = folder if folder.is_absolute() else f"./{folder}"
    commands = " && ".join(distribution.installation(str(where), cython))
    click.echo(f"\nNext: {commands}; then see {folder}/README.md")
