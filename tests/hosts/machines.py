"""Hosts on one machine: each a network, process, IPC, mount and host-name namespace with a real sshd.

    n1  10.77.0.1 --veth--+
    n2  10.77.0.2 --veth--+-- bridge, in a network namespace of its own
    n3  10.77.0.3 --veth--+

Nothing of it touches the machine's own network, and all of it ends with the processes that hold it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# Inside the namespaces, before anything else runs there.  What a person's shell does at each login is not done: it may take a
# lock, which nobody gives back when a host is ended.
BEGIN = """
set -e
hostname {name}
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind {folder}/hosts /etc/hosts
if [ -e ~/.bashrc ]; then mount --bind /dev/null ~/.bashrc; fi
ip link set lo up
echo ready
read line
exec /usr/sbin/sshd -D -E {folder}/sshd.{name} -f {folder}/sshd_config
"""
# The same without sshd, and with the machine's processes.
BEGIN_LIGHT = """
set -e
hostname {name}
mount -t tmpfs tmpfs /dev/shm
mount --bind {folder}/hosts /etc/hosts
ip link set lo up
echo ready
exec cat
"""
# Called as ssh is.
ENTER = """#!/bin/sh
exec nsenter --target="$(cat {folder}/$1.pid)" --net --uts --ipc --mount sh -c "$2"
"""
SSHD = """
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 200
"""
SSH = """
Host *
    IdentityFile {folder}/key
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
"""
SETTLE = 30.0
PAUSE = 0.02


# What dies with the process that began it, however that ends.
BOUND = ("setpriv", "--pdeathsig", "KILL")
UNSHARE = (*BOUND, "unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c")
UNSHARE_LIGHT = (*BOUND, "unshare", "--net", "--uts", "--ipc", "--mount", "--kill-child", "sh", "-c")
PROBE = "ip link add name probe type bridge && mount -t tmpfs tmpfs /dev/shm"
SWITCH = "ip link add name bridge type bridge && ip link set dev bridge up && exec cat"


def reason_against() -> str:
    """Why there can be no hosts on this machine; empty when there can."""
    if os.geteuid() != 0:
        return "hosts are made of namespaces, which only root can make"
    for command in ("setpriv", "taskset", "unshare", "nsenter", "ip", "/usr/sbin/sshd", "ssh", "ssh-keygen"):
        if shutil.which(command) is None:
            return f"there is no {command} (Debian: apt-get install openssh-server openssh-client iproute2 util-linux)"
    tried = subprocess.run([*UNSHARE, PROBE], capture_output=True, text=True)
    return f"namespaces can't be made here: {tried.stderr.strip()}" if tried.returncode else ""


class Machine:
    """One host.

    Parameters:
        number: of its address.
        folder: for keys, configurations and logs.
        processors: that its processes run on, as taskset(1) takes them; empty for all.
        is_light: without sshd and a process namespace: many of them are up soon.

    Attributes:
        pid: its first process, which holds the namespaces.
    """

    def __init__(self, name: str, number: int, folder: Path, processors: str = "", is_light: bool = False) -> None:
        self.name = name
        self.bound = ["taskset", "--cpu-list", processors] if processors else []
        self.machines: list[Machine] = []
        self.address = f"10.77.0.{number}"
        self.wire = f"v{number}"
        self.is_light = is_light
        self.spaces = ["--net", "--uts", "--ipc", "--mount", *([] if is_light else ["--pid"])]
        unshare, begin = (UNSHARE_LIGHT, BEGIN_LIGHT) if is_light else (UNSHARE, BEGIN)
        words = [*self.bound, *unshare, begin.format(name=name, folder=folder)]
        with open(folder / f"begin.{name}", "wb") as errors:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", (folder / f"begin.{name}").read_text()
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as stream:
            self.pid = int(stream.read().split()[0])
        (folder / f"{name}.pid").write_text(str(self.pid))

    def begin(self) -> None:
        """The network is there: let sshd begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def command(self, *words: str, folder: Path | str = "/") -> list[str]:
        """What runs a command there, in a folder."""
        return [*self.bound, "nsenter", f"--target={self.pid}", *self.spaces, f"--wdns={folder}", *words]

    def run(self, *words: str) -> None:
        """A command in its network."""
        subprocess.run(["nsenter", f"--target={self.pid}", "--net", *words], check=True)

    def ip(self, *words: str) -> None:
        self.run("ip", *words)

    def wait_until_up(self, device: str) -> None:
        """Until it carries something, which is a while after it was set up."""
        end = time.monotonic() + SETTLE
        words = ["nsenter", f"--target={self.pid}", "--net", "ip", "-brief", "link", "show", "dev", device]
        while " UP " not in subprocess.run(words, capture_output=True, text=True, check=True).stdout:
            assert time.monotonic() < end, f"{device} of {self.name} does not come up"
            time.sleep(PAUSE)

    def processes(self) -> dict[int, str]:
        """Number (outside) -> command line of what runs there, but for sshd and what it began by itself."""
        found = {}
        # One without a process namespace is known by its network.
        kind = "net" if self.is_light else "pid"
        space = os.readlink(f"/proc/{self.pid}/ns/{kind}")
        first = (self.pid, self.process.pid) if self.is_light else ()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and int(name) not in first and os.readlink(f"/proc/{name}/ns/{kind}") == space:
                    with open(f"/proc/{name}/cmdline", "rb") as stream:
                        words = stream.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                    if words and not words.startswith(("sshd:", "/usr/sbin/sshd")):
                        found[int(name)] = words
        return found

    def segments(self) -> list[str]:
        return os.listdir(f"/proc/{self.pid}/root/dev/shm")

    def wait_until_empty(self, seconds: float = SETTLE) -> dict[int, str]:
        """What runs there when the time is over."""
        end = time.monotonic() + seconds
        while (found := self.processes()) and time.monotonic() < end:
            time.sleep(PAUSE)
        return found

    def end(self) -> None:
        # The first process of a process namespace takes all others with it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()


class Machines:
    """All of them, and the network between.

    Parameters:
        folder: for keys, configurations and logs.
        count: number of hosts, n1 and following.
        processors: those of each host, as taskset(1) takes them; none: all have all.
        are_light: as of `Machine`.

    Attributes:
        agent: command of ssh's form that reaches each from each.
    """

    def __init__(self, folder: Path, count: int, processors: Sequence[str] = (), are_light: bool = False) -> None:
        self.folder = folder
        self.are_cut: set[str] = set()
        self.machines: list[Machine] = []
        self.switch: subprocess.Popen[bytes] | None = None
        try:
            self.begin(count, processors, are_light)
        except BaseException:
            self.end()
            raise

    def begin(self, count: int, processors: Sequence[str], are_light: bool) -> None:
        folder = self.folder
        names = [f"n{number}" for number in range(1, count + 1)]
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        (folder / "sshd_config").write_text(SSHD.format(folder=folder))
        (folder / "ssh_config").write_text(SSH.format(folder=folder))
        lines = [f"10.77.0.{number} {name}" for number, name in enumerate(names, 1)]
        (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")
        self.switch = subprocess.Popen([*BOUND, "unshare", "--net", "sh", "-c", SWITCH], stdin=subprocess.PIPE)
        for number, name in enumerate(names):
            processor = processors[number] if processors else ""
            self.machines.append(Machine(name, number + 1, folder, processor, are_light))
        while not self.in_switch("ip", "link", "show", "dev", "bridge"):
            time.sleep(PAUSE)
        for it in self.machines:
            assert self.in_switch(
                "ip", "link", "add", "name", it.wire, "type", "veth", "peer", "name", "eth0", "netns", str(it.pid)
            )
            assert self.in_switch("ip", "link", "set", "dev", it.wire, "master", "bridge", "up")
            inside = ["nsenter", f"--target={it.pid}", "--net", "ip"]
            subprocess.run([*inside, "address", "add", f"{it.address}/24", "dev", "eth0"], check=True)
            subprocess.run([*inside, "link", "set", "eth0", "up"], check=True)
            it.begin()
        for it in self.machines:
            it.machines = self.machines
        if are_light:
            self.agent = str(folder / "enter")
            (folder / "enter").write_text(ENTER.format(folder=folder))
            (folder / "enter").chmod(0o755)
            return
        self.agent = f"ssh -F {folder / 'ssh_config'} -x -T"
        for it in self.machines:
            self.wait_for_sshd(it)

    def in_switch(self, *words: str) -> bool:
        words = ("nsenter", f"--target={self.switch_pid}", "--net", *words)
        return subprocess.run(words, capture_output=True).returncode == 0

    @property
    def switch_pid(self) -> int:
        assert self.switch is not None
        return self.switch.pid

    def wait_for_sshd(self, machine: Machine, start: Machine | None = None) -> None:
        """Until it can be reached, from the first host or another one."""
        end = time.monotonic() + SETTLE
        words = (start or self.machines[0]).command("ssh", "-F", str(self.folder / "ssh_config"), machine.name, "true")
        while subprocess.run(words, capture_output=True, timeout=SETTLE).returncode:
            assert time.monotonic() < end, f"sshd on {machine.name} does not answer"
            time.sleep(PAUSE)

    def __getitem__(self, name: str) -> Machine:
        return self.machines[int(name.removeprefix("n")) - 1]

    def join(self, one: str, other: str, device: str, subnet: str) -> None:
        """A wire of their own between two of them: `device` at both, with the addresses `subnet`.1 and `subnet`.2."""
        ends = (self[one], self[other])
        first = ["nsenter", f"--target={ends[0].pid}", "--net", "ip", "link", "add", "name", device, "type", "veth"]
        subprocess.run([*first, "peer", "name", device, "netns", str(ends[1].pid)], check=True)
        for number, it in enumerate(ends, 1):
            it.ip("address", "add", f"{subnet}.{number}/24", "dev", device)
            it.ip("link", "set", "dev", device, "up")
        for it in ends:
            it.wait_until_up(device)

    def cut(self, name: str) -> None:
        """Nothing arrives there or leaves any more."""
        assert self.in_switch("ip", "link", "set", "dev", self[name].wire, "down")
        self.are_cut.add(name)

    def mend(self, name: str) -> None:
        assert self.in_switch("ip", "link", "set", "dev", self[name].wire, "up")
        if name in self.are_cut:
            self.are_cut.remove(name)
            # A link that is up does not carry anything at once.
            for it in self.machines:
                if it.name not in (name, *self.are_cut):
                    self.wait_for_sshd(it, self[name])

    def left(self, seconds: float = SETTLE) -> dict[str, object]:
        """What is on any host when the time is over: processes, segments."""
        end = time.monotonic() + seconds
        while True:
            found: dict[str, object] = {}
            for it in self.machines:
                if things := [*it.processes().values(), *it.segments()]:
                    found[it.name] = things
            if not found or time.monotonic() > end:
                return found
            time.sleep(PAUSE)

    def end(self) -> None:
        for it in self.machines:
            it.end()
        if self.switch is not None:
            self.switch.kill()
            self.switch.wait()


class Launched:
    """A command that runs on one of the hosts; as a context manager it ends whatever the test does."""

    def __init__(self, machine: Machine, words: Sequence[str], folder: Path, stdin: str | None = None) -> None:
        self.begun = time.monotonic()
        self.machine = machine
        self.stdin = stdin
        self.process = subprocess.Popen(
            machine.command(*words, folder=folder),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.stdout = self.stderr = ""

    def __enter__(self) -> Launched:
        return self

    def __exit__(self, *problem: object) -> None:
        for it in self.machine.machines:
            for pid in it.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    @property
    def pid(self) -> int:
        """The launcher's; `nsenter` is its parent."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as stream:
            return int(stream.read().split()[0])

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode()

    def finish(self, seconds: float = 60.0) -> int:
        """Wait for the end; returns the exit code."""
        out, err = self.process.communicate(None if self.stdin is None else self.stdin.encode(), timeout=seconds)
        self.stdout += out.decode()
        self.stderr += err.decode()
        self.seconds = time.monotonic() - self.begun
        return self.process.returncode


# The fixture `ompyrun`.
Start = Callable[..., Launched]
