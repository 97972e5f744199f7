"""mpi4py's whole suite over three hosts, or two nodes of Slurm, under each launcher that is here."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import slurm
from machines import Launched, Machines

TOP = Path(__file__).parents[2]
HOSTS = {2: "n1:1,n2:1", 5: "n1:2,n2:2,n3:1"}
LONGEST = 3600  # seconds, of one launcher on so many ranks
# Five ranks on two processors take a minute for one of the tests of windows.
PATIENT = ("--silence", "180")


def launchers(machines: Machines, folder: Path, ranks: int) -> dict[str, list[str]]:
    """By name: the command that runs the suite on ranks of several hosts."""
    (folder / "hostfile").write_text("".join(f"{host.replace(':', ' slots=')}\n" for host in HOSTS[ranks].split(",")))
    variables = [f"OMPI_MCA_orte_default_hostfile={folder}/hostfile", f"OMPY_MCA_plm_ssh_agent={machines.agent}"]
    suite = [sys.executable, str(TOP / "tools" / "suite"), "-n", str(ranks), *PATIENT]
    found = {"ompyrun": ["env", *variables, *suite]}

    def agent(name: str, text: str) -> str:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    if hydra := shutil.which("mpiexec.hydra", path=os.environ.get("OMPY_TEST_HYDRA", "")):
        words = [hydra, "-launcher", "ssh", "-launcher-exec", agent("of-hydra", f'exec {machines.agent} "$@"')]
        found["Hydra"] = [*suite, "--launcher", shlex.join([*words, "-hosts", HOSTS[ranks], "-n", "{ranks}"])]
    if prterun := shutil.which("prterun", path=os.environ.get("OMPY_TEST_PRRTE", "")):
        # Its servers name files by their processes' numbers, which are the same on hosts that share this machine's /tmp.
        of_prrte = agent("of-prrte", f'host=$1\nshift\nexec {machines.agent} $host "export TMPDIR=/run; $*"')
        words = ["env", *(f"{name}_PREFIX={Path(prterun).parents[1]}" for name in ("PRTE", "PMIX", "OPAL")), "TMPDIR=/run"]
        words += [prterun, "--allow-run-as-root", "--prtemca", "plm_ssh_agent", of_prrte, "--bind-to", "none"]
        # The ranks' own files are for all hosts.
        words += ["--host", HOSTS[ranks], "-n", "{ranks}", "env", f"TMPDIR={tempfile.gettempdir()}"]
        found["PRRTE"] = [*suite, "--launcher", shlex.join(words)]
    return found


def run_suite(folder: Path, only: str, modules: list[str]) -> int:
    """Print what came of it under each launcher, or one; the worst of the exit codes."""
    worst = run_over_hosts(folder, only, modules) if only != "srun" else 0
    return max(worst, run_under_slurm(folder, modules)) if only in ("", "srun") else worst


def run_over_hosts(folder: Path, only: str, modules: list[str]) -> int:
    machines = Machines(folder, 3)
    worst = 0
    try:
        for ranks, hosts in HOSTS.items():
            for name, words in launchers(machines, folder, ranks).items():
                if only not in ("", name):
                    continue
                with Launched(machines["n1"], [*words, *modules], TOP) as job:
                    worst = max(worst, job.finish(LONGEST))
                print(f"{name}, {hosts}:\n{job.stdout}{job.stderr}", flush=True)
    finally:
        machines.end()
    return worst


def run_under_slurm(folder: Path, modules: list[str]) -> int:
    if reason := slurm.reason_against():
        print(f"srun: {reason}", flush=True)
        return 0
    cluster = slurm.Cluster(folder)
    worst = 0
    try:
        for kind in ("pmi2", "pmix"):
            if reason := cluster.reason_against(kind):
                print(f"srun --mpi={kind}: {reason}", flush=True)
                continue
            for ranks in HOSTS:
                words = [sys.executable, str(TOP / "tools" / "suite"), "-n", str(ranks), *PATIENT]
                launcher = ["srun", "-N2", "-n", "{ranks}", f"--mpi={kind}"]
                job = cluster.run(*words, "--launcher", shlex.join(launcher), *modules, folder=TOP, timeout=LONGEST)
                print(f"srun -N2 -n{ranks} --mpi={kind}:\n{job.stdout}{job.stderr}", flush=True)
                worst = max(worst, job.returncode)
    finally:
        cluster.end()
    return worst
