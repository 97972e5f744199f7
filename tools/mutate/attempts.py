"""A mutant's life: put into the tree, built, shown to those who should notice, and taken out again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
# Where the text of the file that is changed lies meanwhile, for whoever comes after an interrupted run.
KEPT = ROOT / ".cache" / "mutate" / "original"

KILLED, SURVIVED, STILLBORN = "killed", "survived", "does not compile"
# How many times as long as without a change a killer may take; and seconds at least.
PATIENCE, LEAST = 4, 30
# The kit at the setting that costs least for what it notices; of collectives two ranks show too little.
QUICK = ("-x", "--level", "contract", "--silence", "8", "-n")
RANKS = {"coll": "3"}
# Tests of a framework's behaviour, below tests/.
RELATED = {
    "btl": ("btl/test_*.py", "mpi/test_point_to_point*.py", "mpi/test_shared_heap.py", "runtime/test_failures.py",
            "runtime/test_exhausted_descriptors.py"),
    "pml": (
        "pml/test_[!mp]*.py", "mpi/test_point_to_point*.py", "mpi/test_random_messages.py", "mpi/test_request.py",
        "mpi/test_blocking_receive.py", "mpi/test_buffers.py", "mpi/test_plain.py", "mpi/test_async_progress.py",
    ),
    "mtl": ("pml/test_[mp]*.py", "pml/test_semantics.py"),
    "coll": ("coll/test_*.py", "mpi/test_*collective*.py", "mpi/test_intercomm.py", "mpi/test_topology.py"),
    "osc": ("mpi/test_window*.py", "runtime/test_window_failures.py"),
    "rte": ("runtime/test_*.py",),
    "bml": ("mca/test_explain.py", "pml/test_failover.py"),
    "rpi": ("pml/test_rpi.py",),
    "plm": ("runtime/test_many_hosts.py", "runtime/test_tree_of_hosts.py"),
    "hook": ("mca/test_watchers.py", "mca/test_explain.py"),
    **dict.fromkeys(("io", "fs", "fbtl", "fcoll", "sharedfp"), ("mpi/test_file*.py",)),
}  # fmt: skip

# What components of every framework declare.
DECLARED = ("mca/test_parameters.py",)

# Parameters under which the kit is run, where one run does not reach all of a component; names, where it serves by several.
SETTINGS = {
    "btl/sm": ((), ("btl_sm_single_copy", "none")),
    "btl/tcp": ((), ("btl_tcp_links", "2"), ("btl_tcp_security", "tls")),
    "fcoll/two_phase": ((), ("fcoll_two_phase_exchange", "messages")),
    "hook/comm_method": (("hook_comm_method_display", "1"),),
}
NAMES = {"rpi/raw": ("raw_v1", "raw_v2", "raw_v3")}


class Component(NamedTuple):
    """What is changed, and who should notice.

    Attributes:
        framework, name: of the component.
    """

    framework: str
    name: str

    @property
    def folder(self) -> Path:
        package = f"ompy_{self.framework}_{self.name}"
        return next(found for root in (self.framework, "plugins") if (found := ROOT / root / package).is_dir())

    @property
    def sources(self) -> list[Path]:
        return sorted(path for suffix in ("py", "pyx", "pxd") for path in self.folder.rglob(f"*.{suffix}"))

    @property
    def killers(self) -> list[list[list[str]]]:
        """Groups of commands, the quickest first: the kit's contract at each setting, the tests, the whole kit."""
        path = f"{self.framework}/{self.name}"
        beside = {"btl": "self", "coll": "basic", "osc": "pt2pt"}.get(self.framework, "")
        kits, settings = [], SETTINGS.get(path, ((),))
        for name in NAMES.get(path, (self.name,)):
            names = ",".join(dict.fromkeys(filter(None, (name, beside))))
            for setting in settings:
                more = ["--mca", *setting] if setting else []
                kits.append(["-m", "ompy", "conformance", "--mca", self.framework, names, *more])
        tests = [["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *self.tests]] if self.tests else []
        contract = [[*kit, *QUICK, RANKS.get(self.framework, "2")] for kit in kits]
        return [contract, tests, [[*kit, "-x"] for kit in kits[:: len(settings)]]]

    @property
    def tests(self) -> list[str]:
        """The framework's files of tests, those that name the component first; none that names only others."""
        kin = {it.name for it in of_framework(self.framework)}
        found = []
        for path in sorted(
            {path for pattern in (*DECLARED, *RELATED.get(self.framework, ())) for path in (ROOT / "tests").glob(pattern)}
        ):
            named = kin & set(path.stem.split("_"))
            if not named or self.name in named:
                found.append((self.name not in named, str(path.relative_to(ROOT))))
        return [path for _, path in sorted(found)]


def of_framework(framework: str) -> list[Component]:
    """The tree's components of a framework, by name."""
    folders = [path for root in (framework, "plugins") for path in (ROOT / root).glob(f"ompy_{framework}_*") if path.is_dir()]
    return sorted(Component(framework, path.name.removeprefix(f"ompy_{framework}_")) for path in folders)


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        word: KILLED, SURVIVED or STILLBORN.
        killer: in which of the groups one noticed it, from 1 on; 0 for none.
        seconds: that it took.
    """

    word: str
    killer: int
    seconds: float


def restore() -> None:
    """Take out the mutant of a run that was interrupted."""
    for path in KEPT.rglob("*"):
        if path.is_file():
            target = ROOT / path.relative_to(KEPT)
            write(target, path.read_text())
            path.unlink()


def write(target: Path, text: str) -> None:
    """Change a source; bytecode is taken for up to date by the second and the length, which may both be the same."""
    target.write_text(text)
    Path(cache_from_source(str(target))).unlink(missing_ok=True)


def succeeds(command: list[str], most: float | None = None) -> bool:
    """Whether a command of this Python ends with 0 in time; nothing of it is left."""
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(most) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def build() -> bool:
    return succeeds(["tools/build.py"])


def measured(killers: list[list[list[str]]]) -> list[list[float]]:
    """How long each command may take, by what it takes without a change; ValueError where one fails."""
    limits: list[list[float]] = []
    for group in killers:
        limits.append([])
        for command in group:
            begin = time.monotonic()
            if not succeeds(command):
                raise ValueError(f"without any change this fails: python {' '.join(command)}")
            limits[-1].append(max(PATIENCE * (time.monotonic() - begin), LEAST))
    return limits


def attempt(mutant: Mutant, killers: list[list[list[str]]], limits: list[list[float]]) -> Verdict:
    """Whether anybody notices the mutant."""
    target, kept = ROOT / mutant.path, KEPT / mutant.path
    source = target.read_text()
    begin = time.monotonic()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(source)
    try:
        write(target, mutant.text(source))
        if target.suffix != ".py" and not build():
            return Verdict(STILLBORN, 0, time.monotonic() - begin)
        for number, (commands, group) in enumerate(zip(killers, limits, strict=True), 1):
            if not all(succeeds(command, most) for command, most in zip(commands, group, strict=True)):
                return Verdict(KILLED, number, time.monotonic() - begin)
        return Verdict(SURVIVED, 0, time.monotonic() - begin)
    finally:
        write(target, source)
        kept.unlink()
