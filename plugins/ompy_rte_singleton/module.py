"""A job of one process."""

from __future__ import annotations

import os
import sys

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.own_launcher import OwnLauncher
from ompy.mca.rte import Rte

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from ompy.mca.rte import Order, Started

# What launchers that ompy can't hear tell a process of the number of its peers, and the command that does start ompy there.
LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": ("Open MPI's mpiexec", "ompyrun, or the mpiexec of MPICH (Hydra)"),
    "MV2_COMM_WORLD_SIZE": ("MVAPICH's mpirun_rsh", "ompyrun, or the mpiexec of MPICH (Hydra)"),
    "SLURM_STEP_NUM_TASKS": ("srun without PMI", "srun --mpi=pmi2 or srun --mpi=pmix"),
    "PALS_SIZE": ("PALS' mpiexec", "ompyrun, or the mpiexec of MPICH (Hydra)"),
}

# Of rte/pmix: where the library is.
LIBRARY = "OMPY_MCA_rte_pmix_library"


class SingletonRte(Rte):
    """A world of one, which still has a name and a secret: it may spawn others, or be connected to.

    Parameters:
        begin: called once, when this process goes on as such a world: another component may have been chosen.
    """

    def __init__(self, begin: Callable[[], object]) -> None:
        self.begin: Callable[[], object] | None = begin
        self.job = f"single-{os.getpid()}-{os.urandom(4).hex()}"
        self.launcher = OwnLauncher(self.job)
        self.secret = os.urandom(32)
        self.published: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        self.published[key] = value

    def commit_and_fence(self) -> None:
        if self.begin is not None:
            self.begin()
            self.begin = None

    def get(self, rank: int, key: str) -> bytes:
        if rank != 0 or key not in self.published:
            raise MPIError(ERR_INTERN, f"rank {rank} has published nothing under {key} in a job of one")
        return self.published[key]

    # -- other processes

    @property
    def universe_size(self) -> int:
        return len(os.sched_getaffinity(0))

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        return self.launcher.spawn(orders, port)

    def cancel_spawn(self, port: str) -> None:
        self.launcher.cancel_spawn(port)

    def publish(self, service: str, port: str) -> bool:
        return self.launcher.publish(service, port)

    def lookup(self, service: str) -> str:
        return self.launcher.lookup(service)

    def unpublish(self, service: str) -> bool:
        return self.launcher.unpublish(service)

    def leave_to_parent(self) -> None:
        self.launcher.leave_to_parent()

    # --

    def abort(self, code: int, message: str) -> NoReturn:
        sys.stdout.flush()
        if message:
            print(f"ompy: rank 0: {message}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(code & 0xFF or 1 if code else 0)

    def finalize(self) -> None:
        self.launcher.finalize()


def started_with_peers(environment: Mapping[str, str]) -> str:
    """Why this process can't be a job of one: a PMI launcher started it, and its peers wait for it; else ""."""
    for variable in ("PMI_FD", "PMI_PORT"):
        if variable in environment and environment.get("PMI_SIZE") != "1":
            return (
                f"{variable} says that this process is one of several ranks; it can't go on as a job of its own. "
                f"If it is meant to, start it without {variable} (env -u {variable} ...)"
            )
    return ""


def mismatch(environment: Mapping[str, str]) -> str:
    """A warning when another launcher started several tasks, each of which believes that it is alone; else ""."""
    if "PMIX_NAMESPACE" in environment:
        who = f"rank {environment.get('PMIX_RANK', '?')} of {environment['PMIX_NAMESPACE']}"
        return (
            f"a PMIx launcher started this process as {who}, which ompy can't join: each rank is a job of one. "
            f"OMPY_MCA_rte=pmix in the environment has it say why; {LIBRARY} names the launcher's libpmix.so.2."
        )
    for variable, (launcher, remedy) in LAUNCHERS.items():
        size = environment.get(variable, "1")
        if size.isdigit() and int(size) > 1:
            return (
                f"{launcher} started {size} tasks ({variable}={size}), but not in a way that ompy can join: each is a "
                f"job of one. Start with {remedy}."
            )
    return ""
