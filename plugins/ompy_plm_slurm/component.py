"""plm/slurm: inside an allocation of Slurm's, proxies through srun."""

from __future__ import annotations

import os
import shlex
import shutil

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

COMPONENT = Component(
    framework="plm",
    name="slurm",
    version="0.1.0",
    interface=1,
    summary="proxies through one srun, inside an allocation (salloc, sbatch)",
    parameters=(Parameter("arguments", str, "", level=4, help="further options of srun"),),
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    if "SLURM_JOB_ID" not in os.environ:
        return Refusal("SLURM_JOB_ID is not in the environment: this is no allocation of Slurm's")
    if shutil.which("srun") is None:
        return Refusal("there is no srun here")
    try:
        arguments = shlex.split(context.value("arguments"))
    except ValueError as error:
        return Refusal(f"plm_slurm_arguments: {error}")
    from ompy_plm_slurm.module import SlurmPlm

    return Offer(modules=[SlurmPlm(arguments)], priority=50)
