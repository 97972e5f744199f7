"""Which components are installed, found without importing any.

Every distribution says in its metadata which components it has: an entry point of the group `ompy.<framework>` names the
component and its module.  `importlib.metadata` would take longer to find them than the rest of start-up takes, so the
folders of `sys.path` are listed here, and of each distribution only `entry_points.txt` is read.

The launcher hands what it found to its ranks in the environment, folder by folder, each with a stamp made of the times at
which it and its `entry_points.txt` changed: a rank takes over what is said of folders that its own `sys.path` names and
whose stamp is still the same, and lists the others.
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


class Found:
    """A component that is installed: its entry point, not yet imported."""

    __slots__ = ("distribution", "framework", "module", "name", "version", "where")

    def __init__(self, framework: str, name: str, module: str, distribution: str, version: str, where: str) -> None:
        self.framework = framework
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
    """

    __slots__ = ("components", "items", "path", "stamp")

    def __init__(self, path: str, stamp: int, items: list[str], components: list[Found]) -> None:
        self.path = path
        self.stamp = stamp
        self.items = items
        self.components = components

    def distributions(self) -> set[str]:
        """The normalized names."""
        return {normalized(item.removesuffix(".dist-info").removesuffix(".egg-info").partition("-")[0]) for item in self.items}


def normalized(distribution: str) -> str:
    """Distribution names are compared without case, and with `-`, `_` and `.` the same."""
    return distribution.lower().replace("-", "_").replace(".", "_")


def entry_points(text: str) -> list[tuple[str, str, str]]:
    """(framework, name, module) of the `ompy.` groups of one `entry_points.txt`."""
    points = []
    framework = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
            framework = group.removeprefix(GROUP) if group.startswith(GROUP) else ""
        elif framework and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            points.append((framework, name.strip(), target.partition("[")[0].strip()))
    return points


def name_and_version(path: str) -> tuple[str, str]:
    """Of the distribution whose metadata is in this folder."""
    fields = {"Name": "?", "Version": "?"}
    for document in ("METADATA", "PKG-INFO"):
        try:
            with open(f"{path}/{document}", encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    key, colon, value = line.partition(":")
                    if not colon:
                        break
                    if key in fields:
                        fields[key] = value.strip()
            break
        except OSError:
            continue
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
        items = sorted(item for item in os.listdir(path) if item.endswith((".dist-info", ".egg-info")))
    except OSError:
        items = []
    before = stamp(path, items)
    components = []
    for item in items:
        try:
            with open(f"{path}/{item}/entry_points.txt", encoding="utf-8") as stream:
                text = stream.read()
        except OSError:
            continue
        if GROUP in text:
            distribution, version = name_and_version(f"{path}/{item}")
            components += [Found(*point, distribution, version, path) for point in entry_points(text)]
    return Folder(path, before, items, components)


def scan_archive(path: str) -> Folder:
    """A zip file or the like on `sys.path`: rare, so left to the slow and complete way."""
    from importlib.metadata import distributions

    items = []
    components = []
    for distribution in distributions(path=[path]):
        name = distribution.metadata["Name"]
        items.append(f"{normalized(name)}-{distribution.version}.dist-info")
        points = entry_points(distribution.read_text("entry_points.txt") or "")
        components += [Found(*point, name, distribution.version, path) for point in points]
    return Folder(path, stamp(path, items), items, components)


def folders(path: Sequence[str], known: Mapping[str, Folder]) -> list[Folder]:
    """What each entry of `path` holds, listing only those that are not known or have changed."""
    found = []
    for entry in map(os.path.abspath, path):
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
                lines.append(f"\t{it.framework}\t{it.name}\t{it.module}\t{it.distribution}\t{it.version}")
    return "\n".join(lines)


def decode(text: str) -> dict[str, Folder]:
    """The folders that `encode` wrote down."""
    known: dict[str, Folder] = {}
    folder = None
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0]:
            folder = known[fields[0]] = Folder(fields[0], int(fields[1]), fields[2].split("/") if fields[2] else [], [])
        elif folder is not None:
            _, framework, name, module, distribution, version = fields
            folder.components.append(Found(framework, name, module, distribution, version, folder.path))
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


def installed() -> dict[str, dict[str, Found]]:
    """Framework -> name -> component, of this process's `sys.path`; looked up once."""
    global installed_components
    if installed_components is None:
        installed_components = merge(folders(sys.path, decode(os.environ.get(HANDED_DOWN, ""))))
    return installed_components


def handed_down() -> dict[str, str]:
    """The environment by which a launcher saves its ranks the scan.  Raises ComponentError as every rank would."""
    global installed_components
    found = folders(sys.path, {})
    installed_components = merge(found)
    return {HANDED_DOWN: encode(found)}
