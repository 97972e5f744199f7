"""What the processors of a host are parts of, as the kernel tells it in /sys.

package   |-------------- 0 --------------|-------------- 1 --------------|
numa      |------ 0 ------|------ 1 ------|------ 2 ------|------ 3 ------|
l3cache   |------ 0 ------|------ 1 ------|  ...
core      |-- 0 --|-- 1 --|-- 2 --|-- 3 --|  ...
hwthread    0   8   1   9   2  10   3  11    4  12 ...     numbers as the system has them: siblings are seldom neighbours
"""

from __future__ import annotations

import os
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# From wide to narrow.
KINDS = ("package", "numa", "l3cache", "l2cache", "l1cache", "core", "hwthread")
# By these, objects are put in order.
NEIGHBOURS = ("package", "numa", "core")
# What stands for a kind of which the system says nothing, as virtual machines and containers may.
INSTEAD = {"numa": "package", "l3cache": "numa", "l2cache": "core", "l1cache": "core"}
# Names of files, and those that older kernels have.
SIBLINGS = {"package": ("package_cpus_list", "core_siblings_list"), "core": ("core_cpus_list", "thread_siblings_list")}
SYSTEM = "/sys/devices/system"


class Topology:
    """The processors that a job may use on a host.

    Parameters:
        processors: their numbers.
        root: where the kernel tells of them.

    A kind is looked at when it is asked for: a start that binds nothing reads nothing.
    """

    def __init__(self, processors: Iterable[int], root: str = SYSTEM) -> None:
        self.processors = set(processors)
        self.root = root
        self.found: dict[str, list[set[int]]] = {}

    @classmethod
    def here(cls) -> Topology:
        """What this process may use."""
        return cls(os.sched_getaffinity(0))

    def objects(self, kind: str) -> list[set[int]]:
        """The usable processors of each object of a kind; neighbours stand side by side, objects without any are left out."""
        if kind not in self.found:
            parts = self.parts(kind) or [{number} for number in self.processors if kind in ("core", "hwthread")]
            if parts:
                wider = [self.objects(it) for it in NEIGHBOURS if KINDS.index(it) < KINDS.index(kind)]
                self.found[kind] = sorted(parts, key=lambda part: (*(holder(part, some) for some in wider), min(part)))
            else:
                self.found[kind] = [self.processors] if kind == "package" else self.objects(INSTEAD[kind])
        return self.found[kind]

    @cached_property
    def ordered(self) -> list[int]:
        """Every processor; those that share most are neighbours."""
        return [number for part in self.objects("hwthread") for number in part]

    def parts(self, kind: str) -> list[set[int]]:
        """The objects of a kind, in any order; none where the system does not tell of each processor."""
        found: list[set[int]] = []
        if kind == "numa":
            found = [self.listed(f"node/{name}/cpulist") for name in self.names("node") if name[4:].isdecimal()]
        elif kind != "hwthread":
            left = set(self.processors)
            while left:
                found.append(self.siblings(kind, min(left)))
                if not found[-1]:
                    return []
                left -= found[-1]
        found = [part for part in found if part]
        return found if sum(map(len, found)) == len(self.processors) == len(set().union(*found)) else []

    def siblings(self, kind: str, number: int) -> set[int]:
        """What shares that processor's object; nothing where the system does not tell."""
        folder = f"cpu/cpu{number}"
        if kind in SIBLINGS:
            return next(filter(None, (self.listed(f"{folder}/topology/{name}") for name in SIBLINGS[kind])), set())
        for name in self.names(f"{folder}/cache"):
            cache = f"{folder}/cache/{name}"
            if self.text(f"{cache}/level") == kind[1] and self.text(f"{cache}/type") != "Instruction":
                return self.listed(f"{cache}/shared_cpu_list")
        return set()

    def text(self, path: str) -> str:
        try:
            with open(f"{self.root}/{path}", encoding="ascii") as stream:
                return stream.read().strip()
        except OSError:
            return ""

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(f"{self.root}/{folder}"))
        except OSError:
            return []

    def listed(self, path: str) -> set[int]:
        """The usable ones of the processors that a file lists."""
        return numbers(self.text(path)) & self.processors

    def as_data(self) -> dict[str, list[str]]:
        """In text and lists, for another host."""
        return {kind: [spans(part) for part in self.objects(kind)] for kind in KINDS}

    @classmethod
    def from_data(cls, data: dict[str, list[str]]) -> Topology:
        """The reverse of `as_data`."""
        found = {kind: [numbers(part) for part in data[kind]] for kind in KINDS}
        topology = cls(set().union(*found["hwthread"]))
        topology.found = found
        return topology


def holder(part: set[int], objects: list[set[int]]) -> int:
    """Which of the objects has the first processor of a part."""
    return next(index for index, it in enumerate(objects) if min(part) in it)


def spans(some: set[int]) -> str:
    """`0-3,5` for {0, 1, 2, 3, 5}."""
    parts: list[list[int]] = []
    for number in sorted(some):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def numbers(text: str) -> set[int]:
    """The reverse of `spans`; ValueError for what is none."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
