"""`ompy activate` and `ompy deactivate`: in an environment of Python, `import mpi4py` is ompy and `mpiexec` is `ompyrun`.

    <site-packages>/ompy-mpi4py.pth       one line, which every start of that Python runs:
                                              sys.path = [ompy/compat: mpi4py] + sys.path
    <scripts>/mpiexec, mpirun             links to ompyrun; left out where another library's stand

The line belongs to no distribution, so it outlives ompy; it looks for the folder first, and does nothing in a Python of
another version, so what is left over does no harm.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import click

from ompy.cli.ompyrun import MPI4PY_LAUNCHERS as LAUNCHERS
from ompy.cli.ompyrun import VARIABLE, YES
from ompy.compat import folder

LINE_FILE = "ompy-mpi4py.pth"
QUESTION = "import mpi4py; print(mpi4py.get_config().get('path', mpi4py.__path__[0]))"


def line(unless_said: str) -> str:
    """What Python is to run at its start; `unless_said` is the answer where the variable is not set."""
    where = os.path.abspath(folder())
    return (
        f"import os, sys; os.environ.get({VARIABLE!r}, {unless_said!r}).lower() in {YES!r}"
        f" and sys.implementation.cache_tag == {sys.implementation.cache_tag!r} and {where!r} not in sys.path"
        f" and os.path.isdir({where!r}) and sys.path.insert(0, {where!r})\n"
    )


def line_file() -> Path:
    return Path(sysconfig.get_path("purelib"), LINE_FILE)


def scripts() -> Path:
    return Path(sysconfig.get_path("scripts"))


def is_ours(link: Path) -> bool:
    return link.is_symlink() and Path(os.readlink(link)).name == "ompyrun"


def link_launchers(where: Path) -> list[str]:
    """Make the links in a folder; returns for people what was made, or why not."""
    program = scripts() / "ompyrun"
    if not program.exists():
        return [f"{program} does not exist: no mpiexec is made"]
    told = []
    try:
        where.mkdir(parents=True, exist_ok=True)
        for name in LAUNCHERS:
            link = where / name
            if is_ours(link):
                link.unlink()
            elif os.path.lexists(link):
                told.append(f"{link} is another library's and stays; programs start with ompyrun, or see --launchers")
                continue
            link.symlink_to(program.name if where.resolve() == program.parent.resolve() else program)
            told.append(f"{link} is ompyrun --mpi4py")
    except OSError as error:
        told.append(f"no mpiexec is made: {error.filename}: {error.strerror}")
    return told


def told_path() -> str:
    """Where this Python finds mpi4py, or its words when it finds none."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | {VARIABLE: "yes"}
    asked = subprocess.run([sys.executable, "-I", "-c", QUESTION], env=environment, capture_output=True, text=True, check=False)
    return (asked.stdout or asked.stderr).strip().rpartition("\n")[2]


@click.command()
@click.option("--on-request", is_flag=True, help=f"Only for commands with {VARIABLE}=yes in their environment.")
@click.option("--launchers", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Put mpiexec and mpirun there.  [default: where ompyrun is]")  # fmt: skip
def activate(on_request: bool, launchers: Path | None) -> None:
    """Make `import mpi4py` mean ompy for this Python, however it is started, and `mpiexec` and `mpirun` mean ompyrun.

    An mpi4py that is installed stays as it is beneath; `python -m mpi4py --mpi-library` and `mpi4py.get_config()` say who is
    meant.  OMPY_MPI4PY=no makes an exception for one command.  Undone by `ompy deactivate`.
    """
    target = line_file()
    fresh = target.with_suffix(f".{os.getpid()}")
    try:
        fresh.write_text(line("no" if on_request else "yes"))
        os.replace(fresh, target)  # half a line would be an error at every start of Python
    except OSError as error:
        fresh.unlink(missing_ok=True)
        words = f"{target} can't be written ({error.strerror}). For a shell, or one command: PYTHONPATH={folder()}"
        raise click.ClickException(words) from None
    found = told_path()
    if not found.startswith(folder()):
        target.unlink()
        raise click.ClickException(f"this Python would still find another mpi4py, so nothing is changed: {found}")
    when = f" where {VARIABLE}=yes" if on_request else ""
    told = link_launchers(launchers or scripts())
    # Last: who can't be told has all of it all the same.
    click.echo("\n".join([f"`import mpi4py` is ompy in {sys.executable}{when} ({target})", *told]))


@click.command()
@click.option("--launchers", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where `ompy activate` put mpiexec and mpirun.  [default: where ompyrun is]")  # fmt: skip
def deactivate(launchers: Path | None) -> None:
    """Undo `ompy activate`."""
    told = []
    for path in (line_file(), *((launchers or scripts()) / name for name in LAUNCHERS)):
        if path.name == LINE_FILE or is_ours(path):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise click.ClickException(f"{path} can't be removed: {error.strerror}") from None
            told.append(f"removed {path}")
    if told:
        click.echo("\n".join(told))
