"""rte/pmix: a rank under a launcher that has a PMIx server: PRRTE's prterun, Open MPI's mpiexec, srun --mpi=pmix."""

from __future__ import annotations

import os

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="rte",
    name="pmix",
    version="0.1.0",
    interface=1,
    summary="PMIx, by the launcher's libpmix: prterun, Open MPI's mpiexec, srun --mpi=pmix",
    parameters=(
        Parameter(
            "library", str, "", level=4, help="path of libpmix.so.2; empty: the launcher's own, or as the linker finds it"
        ),
        Parameter(
            "spawn",
            str,
            "auto",
            choices=("auto", "server", "own"),
            level=4,
            help="who starts Spawn's processes: the PMIx server, which may place them on any host, or a launcher of the rank's "
            "own, on its host; auto: the server for a job of one rank, or where the hint `host` says where",
        ),
        Parameter(
            "map_by",
            str,
            ":OVERSUBSCRIBE",
            level=5,
            help="where Spawn's processes go, in words of the launcher's --map-by; empty: as by itself, within its slots",
        ),
    ),
    capabilities={
        "hosts": "many",
        "name_service": True,
        "launcher": ("prterun", "--allow-run-as-root", "--host", "localhost:64", "--bind-to", "none", "-n", "{ranks}"),
        "recovery": ("--runtime-options", "recoverable,notifyerrors"),
    },
)

# What tells a process that a PMIx server has started it, and which.
SIGNS = ("PMIX_NAMESPACE", "PMIX_RANK")


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if missing := [name for name in SIGNS if name not in os.environ]:
        return Refusal(f"{' and '.join(missing)} not in the environment: no PMIx launcher started this process")
    from ompy.core.errors import MPIError
    from ompy_rte_pmix.library import connected
    from ompy_rte_pmix.module import PmixRte

    try:
        client = connected(context.value("library"))
    except (OSError, MPIError) as error:
        return Refusal(f"{error}; --mca rte_pmix_library PATH names the launcher's libpmix.so.2")
    return Offer(modules=[PmixRte(client, context.value("spawn"), context.value("map_by"))], priority=45)
