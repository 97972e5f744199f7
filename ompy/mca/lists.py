"""Lists of components: `--mca btl self,sm` takes those alone, `--mca btl ^zmq` takes all but that one."""

from __future__ import annotations

from ompy.mca import discovery
from ompy.mca.errors import ComponentError, suggestion
from ompy.mca.params import registry


def named(framework: str) -> tuple[list[str], bool]:
    """The names of the framework's list, and whether it excludes them; an empty one takes all.

    Raises ComponentError for a list that mixes both, or that names a component which is not installed.
    """
    entry = registry.lookup(framework)
    names = [name.strip() for name in entry.value.split(",") if name.strip()]
    excluding = bool(names) and names[0].startswith("^")
    if excluding:
        names[0] = names[0][1:]
    where = f"parameter {framework} ({entry.source}): {entry.value!r}"
    if any(name.startswith("^") for name in names):
        raise ComponentError(f"{where} mixes including and excluding; one ^, at the front, excludes the whole list")
    known = discovery.installed().get(framework, {})
    for name in names:
        if name not in known:
            listing = ", ".join(sorted(known)) or "none is installed"
            raise ComponentError(
                f"{where}: no {framework} component is called {name}; known: {listing}.{suggestion(name, list(known))}"
            )
    return names, excluding
