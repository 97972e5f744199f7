"""The contract of machine models: simulated machines, on which components of other frameworks run.

A model knows no MPI, and nothing of it is chosen: a transport or a PML that runs on it joins it by name, so its query is
never asked.  It is a component for the sake of what people see: `ompy_info` shows it, and its parameters are
`machine_<name>_<parameter>`.  While one is joined, `MPI.Wtime` reads its clock (`ompy.core.clock`).
"""

from __future__ import annotations

INTERFACE = 1
interface = INTERFACE  # as the compiled contracts have it
