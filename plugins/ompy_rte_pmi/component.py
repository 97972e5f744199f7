"""rte/pmi: a rank that was started by a launcher which speaks PMI: ompyrun, Hydra's mpiexec, Slurm."""

from __future__ import annotations

import os
import stat

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="rte",
    name="pmi",
    version="0.1.0",
    interface=1,
    summary="PMI-1 or PMI-2 over an inherited descriptor (PMI_FD) or a port (PMI_PORT): ompyrun, Hydra, Slurm",
    parameters=(
        Parameter("version", int, 1, choices=(1, 2), level=5, help="of PMI: nearly all who speak the second speak the first"),
        Parameter(
            "slurm_spawn",
            str,
            "--overlap --overcommit --immediate=60",
            level=5,
            help="options of the srun by which Slurm starts Spawn's processes; empty: none, and it waits for free processors",
        ),
        Parameter(
            "slurm_spawn_timeout",
            int,
            90,
            unit="s",
            range=(1, 86400),
            level=5,
            help="after which a Spawn that Slurm has not answered is an error",
        ),
    ),
    capabilities={"hosts": "many", "name_service": True, "recovery": ("--enable-recovery",)},
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if "PMI_FD" not in os.environ and "PMI_PORT" not in os.environ:
        return Refusal("neither PMI_FD nor PMI_PORT is in the environment: no PMI launcher started this process")
    if "PMI_FD" in os.environ and not is_open_socket(os.environ["PMI_FD"]):
        return Refusal(
            f"PMI_FD={os.environ['PMI_FD']} is no open socket here: whoever started this process for the launcher has closed "
            f"it (Python's subprocess does, unless it is told close_fds=False)"
        )
    from ompy_rte_pmi.module import PmiRte

    chosen = PmiRte
    if context.value("version") == 2:
        from ompy_rte_pmi.second import Pmi2Rte

        chosen = Pmi2Rte
    rte = chosen.from_environment(os.environ)
    # Slurm's own server has its job's number for a name; another launcher's, which runs within a step of Slurm's, has not.
    if "SLURM_JOB_ID" in os.environ and rte.job.startswith(os.environ["SLURM_JOB_ID"] + "."):
        rte.srun_options = context.value("slurm_spawn").split()
        rte.spawn_limit = context.value("slurm_spawn_timeout")
    # What led here is this rank's alone: a program that it starts would find another descriptor of that number, or be a
    # second process of the rank's at the port.
    for name in ("PMI_FD", "PMI_PORT", "OMPY_BOARD_FD"):
        os.environ.pop(name, None)
    return Offer(modules=[rte], priority=50)


def is_open_socket(descriptor: str) -> bool:
    """Whether what the variable names has been inherited; a rank's own children have the variable alone."""
    try:
        return stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
    except (OSError, ValueError):
        return False
