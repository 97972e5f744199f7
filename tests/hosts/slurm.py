"""A Slurm of two nodes on this machine, with daemons, keys and ports of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

DAEMONS = ("slurmctld", "slurmd", "munged", "srun", "salloc", "sinfo")
CONFIGURATION = """
ClusterName=ompy
SlurmctldHost={host}
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS={folder}/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
InactiveLimit=0
KillWait=5
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4
PartitionName=all Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


class Cluster:
    """The daemons, and what runs under them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        for name in ("state", "spool-node1", "spool-node2", "tmp-node1", "tmp-node2"):
            (folder / name).mkdir()
        host = os.uname().nodename
        port, first, second = unused_ports(3)
        text = CONFIGURATION.format(host=host, folder=folder, port=port, first=first, second=second)
        (folder / "slurm.conf").write_text(text)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPY_", "PMI"))
        }
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")
        files = [f"--{name}={folder}/munge.{ending}" for name, ending in (("key-file", "key"), ("socket", "socket"))]
        files += [f"--{name}={folder}/munge.{name}" for name in ("pid-file", "log-file", "seed-file")]
        self.start("munged", "--foreground", "--force", *files)
        self.wait_for(lambda: (folder / "munge.socket").exists())
        self.start("slurmctld", "-D")
        for node in ("node1", "node2"):
            self.start("slurmd", "-D", "-N", node)
        self.wait_for(lambda: self.run("sinfo", "-h", "-o", "%T %D").stdout.strip() == "idle 2")

    def start(self, *words: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        self.daemons.append(subprocess.Popen(words, env=self.environment, **quiet))

    @staticmethod
    def wait_for(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "Slurm does not come up"
            time.sleep(0.05)

    def run(self, *words: str, folder: Path | None = None, timeout: float = 90) -> subprocess.CompletedProcess[str]:
        quiet = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
        return subprocess.run(words, env=self.environment, cwd=folder or self.folder, timeout=timeout, **quiet)

    def reason_against(self, kind: str) -> str:
        """Why `srun --mpi=kind` can't be had; empty if it can."""
        if kind not in self.run("srun", "--mpi=list").stdout.split():
            return f"this Slurm has no --mpi={kind}"
        if kind == "pmix" and self.run("srun", "-n1", "--mpi=pmix", "true").returncode:
            return "Slurm's plugin finds no libpmix (Debian: apt-get install libpmix-dev)"
        return ""

    def end(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def unused_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def reason_against() -> str:
    """Why there can be none here; empty if there can."""
    missing = [name for name in DAEMONS if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]
    if missing:
        return f"no {', '.join(missing)} here (Debian: apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "not root"
