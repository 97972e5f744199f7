"""Control variables (MPI-4.1, 15.3): the parameters of the core, the frameworks and the components."""

from __future__ import annotations

from typing import Any

from ompy.core.errors import ERR_READ_ONLY, MPIError
from ompy.mca import discovery
from ompy.mca.frameworks import FRAMEWORKS, declare
from ompy.mca.loading import load_quietly
from ompy.mca.params import Entry, registry

AUDIENCES = ("user", "tuner", "developer")
DETAILS = ("basic", "detail", "all")


class ControlVariable:
    """Something that can be set.

    Attributes:
        name: `<framework>_<component>_<parameter>`.
        type: int, float, bool or str.
        unit, description: for people.
        verbosity: for whom, and in which depth: "user basic" to "developer all", parameter levels 1 to 9.
        scope: "readonly" (set before the start), "local" (may differ between processes) or "all" (the same on every process).
        source: who set the value.
    """

    def __init__(self, entry: Entry) -> None:
        parameter = entry.parameter
        self.entry = entry
        self.name = entry.full_name
        self.type = parameter.type
        self.unit = parameter.unit
        self.description = parameter.help
        self.verbosity = f"{AUDIENCES[(parameter.level - 1) // 3]} {DETAILS[(parameter.level - 1) % 3]}"
        self.scope = parameter.scope

    @property
    def source(self) -> str:
        return self.entry.source

    def read(self) -> Any:
        """The value (MPI_T_cvar_read)."""
        return self.entry.value

    def write(self, value: object) -> None:
        """Set it (MPI_T_cvar_write); it is in force at once, for communicators where it is about those from the next on.

        Errors: ERR_READ_ONLY for one that is read at the start only; ParameterError for a value that is none.
        """
        if self.scope == "readonly":
            variable = f"OMPY_MCA_{self.name}"
            raise MPIError(ERR_READ_ONLY, f"{self.name} is read at the start only: use --mca {self.name} or {variable}")
        registry.set(self.name, value)

    def __repr__(self) -> str:
        return f"<control variable {self.name} = {self.read()!r}>"


def control_variables() -> list[ControlVariable]:
    """All of them, those of installed components that do not serve among them."""
    declare()
    for framework in FRAMEWORKS:
        for found in discovery.installed().get(framework, {}).values():
            load_quietly(found)
    return [ControlVariable(registry.entries[name]) for name in sorted(registry.entries)]


def control_variable(name: str) -> ControlVariable:
    """The one of that name; ParameterError with the nearest known one."""
    control_variables()
    return ControlVariable(registry.lookup(name))
