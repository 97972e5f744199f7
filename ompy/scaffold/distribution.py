"""Write a distribution that holds one component and works as it is.

`templates/` has a folder for what all distributions share (`common`), one for each framework, and `<framework>-cython` with
what differs in the compiled form.  A file there is the file that is written, but for `$name` and the like in its text, and
in its path `package`, `dot-` where a name begins with a dot, and `.template` at the end.
"""

from __future__ import annotations

import keyword
import re
import shlex
from datetime import date
from importlib import import_module
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".template"
# Of which one serves each process of a job: a new one takes over where it is named, and not wherever it is installed.
BY_NAME = ("bml", "mtl", "plm", "pml", "rpi")
NAME = re.compile(r"[a-z]([a-z0-9_]*[a-z0-9])?")


def frameworks() -> list[str]:
    """The frameworks that a component can be written for."""
    return sorted(path.name for path in TEMPLATES.iterdir() if path.name != "common" and not path.name.endswith("-cython"))


def forms(framework: str) -> list[str]:
    """ "python", "cython", or both: in which the framework's component can be had."""
    written = (TEMPLATES / framework / "package" / f"module.py{SUFFIX}").exists()
    compiled = (TEMPLATES / f"{framework}-cython").exists()
    return ["python"] * written + ["cython"] * compiled


def sources(framework: str, cython: bool) -> dict[str, Path]:
    """Where each file of the distribution comes from; of a module in both forms only the wanted one."""
    found: dict[str, Path] = {}
    for folder in ("common", framework, *([f"{framework}-cython"] if cython else [])):
        top = TEMPLATES / folder
        for path in sorted(top.rglob("*" + SUFFIX)):
            found[str(path.relative_to(top)).removesuffix(SUFFIX)] = path
    compiled = {name.removesuffix(".pyx") for name in found if name.endswith(".pyx")}
    return {name: path for name, path in found.items() if name.removesuffix(".py") not in compiled}


def installation(folder: str, cython: bool) -> list[str]:
    """The commands that install a distribution; a compiled one against the ompy that is installed, which it will run with."""
    if cython:
        return ['pip install "setuptools>=77" "Cython>=3.1"', f"pip install --no-build-isolation {shlex.quote(folder)}"]
    return [f"pip install {shlex.quote(folder)}"]


def values(framework: str, name: str, cython: bool) -> dict[str, str]:
    """What stands in a template for the component's own words."""
    steps = [f"      - run: {command}" for command in installation(".", cython)]
    distribution = f"ompy-{framework}-{name.replace('_', '-')}"
    return {
        "name": name,
        "NAME": name.upper(),
        "Name": "".join(part.capitalize() for part in name.split("_")),
        "framework": framework,
        "group": f"ompy.{framework}.by_name" if framework in BY_NAME else f"ompy.{framework}",
        "package": f"ompy_{framework}_{name}",
        "distribution": distribution,
        "install": "\n".join(installation(f"./{distribution}", cython)),
        "install_steps": "\n".join(steps),
        "year": str(date.today().year),
        "interface": str(import_module(f"ompy.mca.{framework}").interface),
    }


def problem(name: str) -> str:
    """Why a component can't have that name; empty when it can."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        return (
            f"{name!r}: a component's name has lower-case letters, digits and underscores, begins with a letter, and ends with "
            "no underscore"
        )
    return ""


def write(framework: str, name: str, into: Path, cython: bool = False) -> Path:
    """Write the distribution into a new folder of `into` and return that folder.

    Raises ValueError for a name that no component can have, FileExistsError when the folder is there already.
    """
    if reason := problem(name):
        raise ValueError(reason)
    words = values(framework, name, cython)
    folder = into / words["distribution"]
    folder.mkdir(parents=True)
    for path, source in sources(framework, cython).items():
        own = path.replace("package/", f"src/{words['package']}/", 1).replace("NAME", name)
        target = folder / re.sub(r"(^|/)dot-", r"\1.", own)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(source.read_text()).substitute(words))
    return folder
