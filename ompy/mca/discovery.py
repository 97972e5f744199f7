"""Which components are installed, found without importing any.

Every distribution says in its metadata which components it has: an entry point of the group `ompy.<framework>` names the
component and its module.  One that is not meant for everybody stands in the group `ompy.<framework>.by_name`: it is not even
imported where the framework's parameter does not name it.  `importlib.metadata` would take longer to find them than the rest
of start-up takes, so the folders of `sys.path` are listed here, and of each distribution only `entry_points.txt` is read.

The launcher hands what it found to its ranks in the environment, folder by folder, each with a stamp made of the times at
which it and its `entry_points.txt` changed: a rank takes over what is said of folders that its own `sys.path` names and
whose stamp is still the same, and lists the others.

What is wrong with one distribution's metadata costs that distribution its components and nobody else's: it is left out, and
the process that has read it says so.
"""

from __future__ import annotations

import os
import sys

from ompy.mca.errors import ComponentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HANDED_DOWN = "OMPY_COMPONENTS"
GROUP = "ompy."
BY_NAME = "by_name"
LONGEST_DOCUMENT = 1 << 20  # bytes


class Found:
    """A component that is installed: its entry point, not yet imported.

    Attributes:
        by_name: it serves only where the framework's parameter names it.
    """

    __slots__ = ("by_name", "distribution", "framework", "module", "name", "version", "where")

    def __init__(
        self, framework: str, by_name: bool, name: str, module: str, distribution: str, version: str, where: str
    ) -> None:
        self.framework = framework
        self.by_name = by_name
        self.name = name
        self.module = module
        self.distribution = distribution
        self.version = version
        self.where = where

    def __repr__(self) -> str:
        return f"<{self.framework}/{self.name} of {self.distribution} {self.version} in {self.where}>"


class Folder:
    """What one entry of `sys.path` holds.

    Attributes:
        path: of the folder or archive.
        stamp: another one when something was installed, removed or rewritten; see `stamp`.
        items: the names of its metadata folders, one a distribution.
        components: of all its distributions.
        problems: a line for each thing that was left out; of a folder that was read here, not handed down.
    """

    __slots__ = ("components", "items", "path", "problems", "stamp")

    def __init__(self, path: str, stamp: int, items: list[str], components: list[Found], problems: Sequence[str] = ()) -> None:
        self.path = path
        self.stamp = stamp
        self.items = items
        self.components = components
        self.problems = problems

    def distributions(self) -> set[str]:
        """The normalized names."""
        return {normalized(item.removesuffix(".dist-info").removesuffix(".egg-info").partition("-")[0]) for item in self.items}


def normalized(distribution: str) -> str:
    """Distribution names are compared without case, and with `-`, `_` and `.` the same."""
    return distribution.lower().replace("-", "_").replace(".", "_")


def entry_points(text: str) -> list[tuple[str, bool, str, str]]:
    """(framework, whether by name alone, name, module) of the `ompy.` groups of one `entry_points.txt`."""
    points = []
    framework = kind = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
            framework, dot, kind = group.removeprefix(GROUP).partition(".") if group.startswith(GROUP) else ("", "", "")
            if dot and kind != BY_NAME:
                framework = ""
        elif framework and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            points.append((framework, kind == BY_NAME, name.strip(), target.partition("[")[0].strip()))
    return points


def is_name(text: str) -> bool:
    """Whether this can be the name of a component or of a module: words joined by dots, colons and dashes."""
    return all(part.replace("-", "_").isidentifier() for part in text.replace(":", ".").split("."))


def components_of(text: str, distribution: str, version: str, path: str) -> tuple[list[Found], list[str]]:
    """The components of one `entry_points.txt`, and what is wrong with the others."""
    components, problems = [], []
    for framework, by_name, name, module in entry_points(text):
        if is_name(framework) and is_name(name) and is_name(module):
            components.append(Found(framework, by_name, name, module, distribution, version, path))
        else:
            problems.append(
                f"{distribution} {version} in {path} is left out of ompy.{framework}: {name!r} = {module!r} names no module"
            )
    return components, problems


def beginning(path: str) -> bytes:
    """What is in a file, as far as it is looked at; nothing of a pipe that nobody writes to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, LONGEST_DOCUMENT)
    finally:
        os.close(descriptor)


def name_and_version(path: str) -> tuple[str, str]:
    """Of the distribution whose metadata is in this folder."""
    fields = {"Name": "?", "Version": "?"}
    for document in ("METADATA", "PKG-INFO"):
        try:
            lines = beginning(f"{path}/{document}").decode(errors="replace").split("\n")
        except OSError:
            continue
        for line in lines:
            key, colon, value = line.partition(":")
            if not colon:
                break
            if key in fields:
                fields[key] = "".join(letter if letter.isprintable() else "?" for letter in value.strip())
        break
    return fields["Name"], fields["Version"]


def stamp(path: str, items: Sequence[str]) -> int:
    """The times of change of a folder and of its distributions' entry points, added up; 0 for what is not there."""
    total = 0
    for name in (path, *(f"{path}/{item}/entry_points.txt" for item in items)):
        try:
            total += os.stat(name).st_mtime_ns
        except OSError:
            continue
    return total


def scan_folder(path: str) -> Folder:
    """List one folder.  One that can't be listed holds nothing, as for imports."""
    try:
        items = sorted(item for item in os.listdir(path) if item.endswith((".dist-info", ".egg-info")) and item.isprintable())
    except (OSError, ValueError):
        items = []
    before = stamp(path, items)
    components: list[Found] = []
    problems: list[str] = []
    for item in items:
        try:
            data = beginning(f"{path}/{item}/entry_points.txt")
        except OSError:
            continue
        if GROUP.encode() not in data:
            continue
        distribution, version = name_and_version(f"{path}/{item}")
        try:
            some, bad = components_of(data.decode(), distribution, version, path)
        except UnicodeDecodeError as error:
            some, bad = [], [f"{distribution} {version} is left out: {path}/{item}/entry_points.txt is not UTF-8: {error}"]
        components += some
        problems += bad
    return Folder(path, before, items, components, problems)


def scan_archive(path: str) -> Folder:
    """A zip file or the like on `sys.path`: rare, so left to the slow and complete way."""
    from importlib.metadata import distributions

    items: list[str] = []
    components: list[Found] = []
    problems: list[str] = []
    for distribution in distributions(path=[path]):
        try:
            name, version = distribution.metadata["Name"], distribution.version
            text = distribution.read_text("entry_points.txt") or ""
        except Exception as error:
            problems.append(f"a distribution in {path} is left out: its metadata can't be read: {error}")
            continue
        items.append(f"{normalized(name)}-{version}.dist-info")
        some, bad = components_of(text, name, version, path)
        components += some
        problems += bad
    return Folder(path, stamp(path, items), items, components, problems)


def folders(path: Sequence[str], known: Mapping[str, Folder]) -> list[Folder]:
    """What each entry of `path` holds, listing only those that are not known or have changed."""
    found = []
    for entry in path:
        try:
            entry = os.path.abspath(entry)
        except OSError:
            continue  # the working directory, which has no name any more: nothing is imported from there either
        folder = known.get(entry)
        if folder is None or folder.stamp != stamp(entry, folder.items):
            folder = scan_archive(entry) if os.path.isfile(entry) else scan_folder(entry)
        found.append(folder)
    return found


def encode(found: Sequence[Folder]) -> str:
    """The text handed to the ranks: a line for each folder, with path, stamp and items, then one for each component."""
    lines = []
    for folder in found:
        if folder.path.isprintable():
            lines.append(f"{folder.path}\t{folder.stamp}\t{'/'.join(folder.items)}")
            for it in folder.components:
                lines.append(f"\t{it.framework}\t{it.by_name:d}\t{it.name}\t{it.module}\t{it.distribution}\t{it.version}")
    return "\n".join(lines)


def decode(text: str) -> dict[str, Folder]:
    """The folders that `encode` wrote down; none of a text that it did not write."""
    known: dict[str, Folder] = {}
    folder = None
    try:
        for line in text.split("\n") if text else ():
            fields = line.split("\t")
            if fields[0]:
                path, when, items = fields
                folder = known[path] = Folder(path, int(when), items.split("/") if items else [], [])
            elif folder is not None:
                _, framework, by_name, name, module, distribution, version = fields
                folder.components.append(Found(framework, by_name == "1", name, module, distribution, version, folder.path))
    except ValueError:
        return {}
    return known


def merge(found: Sequence[Folder]) -> dict[str, dict[str, Found]]:
    """Framework -> name -> component.

    As with imports, the first copy of a distribution on the path hides later ones; two *different* distributions with a
    component of the same name are an error.
    """
    frameworks: dict[str, dict[str, Found]] = {}
    hidden: set[str] = set()
    seen: set[str] = set()
    for folder in found:
        if folder.path in seen:
            continue
        seen.add(folder.path)
        for component in folder.components:
            if normalized(component.distribution) in hidden:
                continue
            names = frameworks.setdefault(component.framework, {})
            other = names.get(component.name)
            if other is not None:
                raise ComponentError(
                    f"two distributions have a {component.framework} component called {component.name}: "
                    f"{other.distribution} {other.version} in {other.where}, and {component.distribution} "
                    f"{component.version} in {component.where}; uninstall one of them"
                )
            names[component.name] = component
        hidden |= folder.distributions()
    return frameworks


installed_components: dict[str, dict[str, Found]] | None = None


def tell(found: Sequence[Folder]) -> None:
    """What was left out, on the error output; of a job's ranks on one host the first tells."""
    if os.environ.get("MPI_LOCALRANKID", "0") == "0":
        for problem in dict.fromkeys(problem for folder in found for problem in folder.problems):
            print(f"ompy: {problem}", file=sys.stderr, flush=True)


def installed() -> dict[str, dict[str, Found]]:
    """Framework -> name -> component, of this process's `sys.path`; looked up once."""
    global installed_components
    if installed_components is None:
        found = folders(sys.path, decode(os.environ.get(HANDED_DOWN, "")))
        tell(found)
        installed_components = merge(found)
    return installed_components


def handed_down() -> dict[str, str]:
    """The environment by which a launcher saves its ranks the scan.  Raises ComponentError as every rank would."""
    global installed_components
    found = folders(sys.path, {})
    tell(found)
    installed_components = merge(found)
    return {HANDED_DOWN: encode(found)}
