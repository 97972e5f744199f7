"""Which components are installed, found without importing any.

Every distribution says in its metadata which components it has: an entry point of the group `ompy.<framework>` names the
component and its module.  `importlib.metadata` would take longer to find them than the rest of start-up takes, so the
folders of `sys.path` are listed here, and of each distribution only `entry_points.txt` is read.

The launcher hands what it found to its ranks in the environment, folder by folder with the folder's time of change: a rank
takes over what is said of folders that its own `sys.path` names and that have not changed since, and lists the others.
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
    """What one entry of `sys.path` holds: its distributions' names, and their components."""

    __slots__ = ("changed", "components", "distributions", "path")

    def __init__(self, path: str, changed: int, distributions: list[str], components: list[Found]) -> None:
        self.path = path
        self.changed = changed
        self.distributions = distributions
        self.components = components


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


def scan_folder(path: str) -> Folder:
    """List one folder.  One that is not there, or is no folder, holds nothing."""
    try:
        changed = os.stat(path).st_mtime_ns
        items = os.listdir(path)
    except OSError:
        return Folder(path, 0, [], [])
    distributions = []
    components = []
    for item in sorted(items):
        if not item.endswith((".dist-info", ".egg-info")):
            continue
        distributions.append(normalized(item.rpartition(".")[0].partition("-")[0]))
        try:
            with open(f"{path}/{item}/entry_points.txt", encoding="utf-8") as stream:
                text = stream.read()
        except OSError:
            continue
        if GROUP in text:
            distribution, version = name_and_version(f"{path}/{item}")
            components += [Found(*point, distribution, version, path) for point in entry_points(text)]
    return Folder(path, changed, distributions, components)


def scan_archive(path: str) -> Folder:
    """A zip file or the like on `sys.path`: rare, so left to the slow and complete way."""
    from importlib.metadata import distributions

    names = []
    components = []
    for distribution in distributions(path=[path]):
        name = distribution.metadata["Name"]
        names.append(normalized(name))
        points = entry_points(distribution.read_text("entry_points.txt") or "")
        components += [Found(*point, name, distribution.version, path) for point in points]
    return Folder(path, os.stat(path).st_mtime_ns, names, components)


def folders(path: Sequence[str], known: Mapping[str, Folder]) -> list[Folder]:
    """What each entry of `path` holds, listing only those that are not known or have changed."""
    found = []
    for entry in path:
        entry = entry or os.getcwd()
        folder = known.get(entry)
        try:
            changed = os.stat(entry).st_mtime_ns
        except OSError:
            continue
        if folder is None or folder.changed != changed:
            folder = scan_archive(entry) if os.path.isfile(entry) else scan_folder(entry)
        found.append(folder)
    return found


def encode(found: Sequence[Folder]) -> str:
    """The text handed to the ranks: a line for each folder, `path`, time and distributions, then one a component."""
    lines = []
    for folder in found:
        if folder.path.isprintable():
            lines.append(f"{folder.path}\t{folder.changed}\t{' '.join(folder.distributions)}")
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
            folder = known[fields[0]] = Folder(fields[0], int(fields[1]), fields[2].split(), [])
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
        hidden.update(folder.distributions)
    return frameworks


installed_components: dict[str, dict[str, Found]] | None = None


def installed() -> dict[str, dict[str, Found]]:
    """Framework -> name -> component, of this process's `sys.path`; looked up once."""
    global installed_components
    if installed_components is None:
        installed_components = merge(folders(sys.path, decode(os.environ.get(HANDED_DOWN, ""))))
    return installed_components


def handed_down() -> dict[str, str]:
    """The environment by which a launcher saves its ranks the scan."""
    return {HANDED_DOWN: encode(folders(sys.path, {}))}
