"""The tool information interface (MPI-4.1, chapter 15) in Python: what can be set, and what is counted.

    from ompy import MPI, tool

    for variable in tool.control_variables():
        print(variable.name, variable.read(), variable.scope)
    tool.control_variable("mpi_spin_us").write(5)

    with tool.Session() as session:
        sent = session.handle("btl_sm_bytes_sent")
        waiting = session.handle("pml_ob1_unexpected_messages", MPI.COMM_WORLD)
        sent.start()
        ...
        print(sent.read(), waiting.read())

Control variables are ompy's parameters, performance variables what its components count; both can be asked for before MPI is
initialised, when there are no performance variables yet.
"""

from ompy.tool.categories import Category, categories
from ompy.tool.control import ControlVariable, control_variable, control_variables
from ompy.tool.performance import (
    Handle,
    PerformanceVariable,
    Session,
    performance_variable,
    performance_variables,
)

__all__ = [
    "Category",
    "ControlVariable",
    "Handle",
    "PerformanceVariable",
    "Session",
    "categories",
    "control_variable",
    "control_variables",
    "performance_variable",
    "performance_variables",
]
