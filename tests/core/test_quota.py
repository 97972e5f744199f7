"""What control groups leave a process of the processors, in both versions and however they are mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompy.core.quota import NO_LIMIT, quota_of


class Machine:
    """A process's folder, and control groups, as files below another folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.mounts = ["23 1 0:1 / / rw - ext4 /dev/vda rw"]
        self.groups: list[str] = []

    def second(self, root: str, path: str, **quotas: str) -> None:
        """Version 2: `root` is mounted, the process is in `path`; `quotas` by folder below the mount, _ for /."""
        self.mounts.append(f"40 23 0:2 {root} {self.folder}/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate")
        self.groups.append(f"0::{path}")
        for name, quota in quotas.items():
            self.write(f"unified/{name.replace('_', '/')}/cpu.max", quota)

    def first(self, root: str, path: str, **quotas: str) -> None:
        """Version 1, of the controllers cpu and cpuacct together, beside one of others."""
        self.mounts.append(f"41 23 0:3 {root} {self.folder}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct")
        self.mounts.append(f"42 23 0:4 / {self.folder}/memory rw - cgroup cgroup rw,memory")
        self.groups += ["5:memory:/elsewhere", f"4:cpu,cpuacct:{path}"]
        for name, quota in quotas.items():
            where = f"cpu,cpuacct/{name.replace('_', '/')}"
            self.write(f"{where}/cpu.cfs_quota_us", quota)
            self.write(f"{where}/cpu.cfs_period_us", "100000")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def quota(self) -> float:
        (self.proc / "mountinfo").write_text("".join(f"{line}\n" for line in self.mounts))
        (self.proc / "cgroup").write_text("".join(f"{line}\n" for line in self.groups))
        return quota_of(str(self.proc))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_least_of_a_group_and_those_around_it_counts(machine: Machine) -> None:
    machine.second("/", "/slice/job/step", slice="300000 100000", slice_job="150000 100000", slice_job_step="max 100000")
    assert machine.quota() == 1.5


def test_a_container_that_sees_its_own_group_as_the_root_has_its_limit(machine: Machine) -> None:
    machine.second("/", "/", _="50000 100000")
    assert machine.quota() == 0.5


def test_a_container_that_sees_the_hosts_names_has_its_limit(machine: Machine) -> None:
    machine.first("/docker/1234", "/docker/1234", _="200000")
    assert machine.quota() == 2


def test_groups_of_the_first_version_are_looked_up_by_the_controller(machine: Machine) -> None:
    machine.first("/", "/batch/7", batch="400000", batch_7="-1")
    machine.second("/", "/")
    assert machine.quota() == 4


def test_where_nothing_is_said_there_is_no_limit(machine: Machine) -> None:
    assert machine.quota() == NO_LIMIT
    machine.second("/", "/user", user="max 100000")
    assert machine.quota() == NO_LIMIT
    assert quota_of(str(machine.folder / "nowhere")) == NO_LIMIT


@pytest.mark.parametrize("said", ["a lot", "", "0 0", "100000 0", "-1 100000"])
def test_what_cannot_be_understood_is_no_limit(machine: Machine, said: str) -> None:
    machine.second("/", "/user", user=said)
    assert machine.quota() == NO_LIMIT
