"""How much of the processors the control groups of this process leave it: what a container's `--cpus` says."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NO_LIMIT = float("inf")

# Of this process, once it was asked for.
own: float | None = None


def processor_quota() -> float:
    """Of this process, as it was when it was first asked for: components ask for each communicator and window."""
    global own
    if own is None:
        own = quota_of("/proc/self")
    return own


def quota_of(proc: str) -> float:
    """Seconds of processor time a second; NO_LIMIT where nobody has set any.

    Parameters:
        proc: the process's folder.

    The least of what is said by its group and those around it that are to be seen from here, in either version of control
    groups (Linux, Documentation/admin-guide/cgroup-v2.rst, "CPU"; Documentation/scheduler/sched-bwc.rst).
    """
    try:
        return min((quota for folder, is_second in groups(proc) for quota in limits(folder, is_second)), default=NO_LIMIT)
    except (OSError, ValueError, ZeroDivisionError):
        return NO_LIMIT


def groups(proc: str) -> Iterator[tuple[str, bool]]:
    """The folders of the process's group and of those around it, each with whether it is of version 2."""
    with open(f"{proc}/cgroup") as lines:
        paths = [line.rstrip("\n").split(":", 2)[1:] for line in lines]
    with open(f"{proc}/mountinfo") as lines:
        mounts = [line for line in lines if " - cgroup" in line]
    for mount in mounts:
        # 32 31 0:29 ROOT POINT rw,relatime - cgroup SOURCE rw,cpu,cpuacct
        where, _, what = mount.partition(" - ")
        root, point = where.split()[3:5]
        kind, _, options = what.split()
        is_second = kind == "cgroup2"
        if not is_second and "cpu" not in options.split(","):
            continue
        for controllers, path in paths:
            if (controllers == "") if is_second else ("cpu" in controllers.split(",")):
                folder = point
                yield folder, is_second
                within = path.removeprefix(root) if path.startswith(root) else ""
                for name in filter(None, within.split("/")):
                    folder += f"/{name}"
                    yield folder, is_second


def limits(folder: str, is_second: bool) -> Iterator[float]:
    try:
        if is_second:
            with open(f"{folder}/cpu.max") as stream:
                quota, period = stream.read().split()
        else:
            with open(f"{folder}/cpu.cfs_quota_us") as stream:
                quota = stream.read().strip()
            with open(f"{folder}/cpu.cfs_period_us") as stream:
                period = stream.read()
    except FileNotFoundError:  # the root of all has none
        return
    if quota != "max" and int(quota) > 0:
        yield int(quota) / int(period)
