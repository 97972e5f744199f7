"""Categories (MPI-4.1, 15.6): variables by framework, and within one by component."""

from __future__ import annotations

from ompy.mca.frameworks import FRAMEWORKS
from ompy.tool.control import ControlVariable, control_variables
from ompy.tool.performance import PerformanceVariable, performance_variables


class Category:
    """A framework (`btl`), a component (`btl_sm`), or a section of the core (`mpi`).

    Attributes:
        name, description: for people.
        control_variables, performance_variables: those of its own.
        categories: names of those within it.
    """

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self.control_variables: list[ControlVariable] = []
        self.performance_variables: list[PerformanceVariable] = []
        self.categories: list[str] = []

    def __repr__(self) -> str:
        return f"<category {self.name}>"


def categories() -> dict[str, Category]:
    """All of them, by name."""
    found: dict[str, Category] = {}

    def category(section: str, component: str) -> Category:
        if section not in found:
            framework = FRAMEWORKS.get(section)
            found[section] = Category(section, framework.summary if framework else f"the {section} section of the core")
        if component in ("", "base"):
            return found[section]
        name = f"{section}_{component}"
        if name not in found:
            found[name] = Category(name, f"the {section} component {component}")
            found[section].categories.append(name)
        return found[name]

    for control in control_variables():
        category(control.entry.framework, control.entry.component).control_variables.append(control)
    for performance in performance_variables():
        # A component's name has underscores of its own: the longest category that fits is the variable's.
        fitting = [name for name in found if performance.name.startswith(f"{name}_")]
        home = found[max(fitting, key=len)] if fitting else category(performance.name.partition("_")[0], "")
        home.performance_variables.append(performance)
    return found
