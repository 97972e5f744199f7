"""Values of parameters, on their three ways: the environment, files, and while the program runs."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBERS = (
    "0", "1", "-1", "-5", "2", "63", "64", "4095", "4096", "65536", "1k", "1m", "1g", "1t", "-1k", "1K", "0x10", "0b1", "1_000",
    str(1 << 31), str(1 << 32), str(1 << 62), str(1 << 63), str(1 << 64), str(-(1 << 63)), "1" + "0" * 21, "9" * 5000, "1e3",
    "1e400", "-1e400", "nan", "inf", "-inf", "0.5", ".", "-", "+", "k", "1kk", "1 k", "٣", "½", "²", "1__0", "0x", "1e", "--1",
)  # fmt: skip
WORDS = (
    "", " ", "auto", "yes", "no", "none", "true", "^", "^^a", "a,b", ",", ",,", "sm,^zmq", "\t", "\n", "=", "a=b", "#",
    "\0", "\udcff", "é" * 200, "x" * 100_000, "/dev/zero", "/", "..", "%s%n", "{}", "\x1b[2J",
)  # fmt: skip
LINES = (
    "btl_sm_ring_size = 1",
    "= 1",
    "btl",
    "btl = self\0",
    "# no",
    "a b = 1",
    "btl_sm_ring_size=1=2",
    "\ufeffbtl = self",
    "[x]",
)


class Parameters:
    name = "parameters"

    def begin(self) -> None:
        from ompy.mca import discovery, loading
        from ompy.mca.errors import ParameterError
        from ompy.mca.frameworks import declare
        from ompy.mca.params import Registry, registry

        declare()
        for framework, found in discovery.installed().items():
            for component in found.values() if framework != "command" else ():
                loading.load(component)
        self.entries = list(registry.entries.values())
        self.registry, self.refusal = Registry, ParameterError
        self.folder = Path(tempfile.mkdtemp(prefix="ompy-hostile-"))
        self.file = self.folder / "settings"

    def make(self, rng: random.Random) -> object:
        text = rng.choice(NUMBERS + WORDS)
        if rng.random() < 0.3:
            cut = rng.randrange(len(text) + 1)
            text = text[:cut] + rng.choice(NUMBERS + WORDS)[:50] + text[cut:]
        data = b"\n".join(rng.choice([*LINES, text]).encode(errors="surrogateescape") for _ in range(rng.randrange(6)))
        if data and rng.random() < 0.5:
            place = rng.randrange(len(data))
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + rng.randrange(2) :]
        return rng.choice(("environment", "file", "run time")), rng.random(), text, data

    def carry_out(self, given: object) -> str:
        way, which, text, data = given  # type: ignore[misc]
        entry = self.entries[int(which * len(self.entries))]
        parameter = entry.parameter
        environment = {"HOME": str(self.folder)}
        if way == "environment":
            environment[f"OMPY_MCA_{entry.full_name}"] = text
        elif way == "file":
            self.file.write_bytes(entry.full_name.encode() + b" = " + text.encode(errors="surrogateescape") + b"\n" + data)
            environment["OMPY_TUNE"] = str(self.file)
        try:
            registry = self.registry(environment)
            value = registry.register(entry.framework, entry.component, parameter).value
            if way == "run time":
                registry.set(entry.full_name, text)
                value = registry.value(entry.full_name)
        except self.refusal as error:
            words = str(error)
            named = entry.full_name in words or str(self.file) in words
            return "" if named else f"the error names neither the parameter nor the file: {words[:200]!r}"
        if not isinstance(value, parameter.type) and not (parameter.type is float and isinstance(value, int)):
            return f"{entry.full_name} became {value!r}"
        if parameter.range is not None and value not in parameter.also:
            low, high = parameter.range
            if not low <= value <= high:
                return f"{entry.full_name} became {value!r}"
        return ""

    def settle(self) -> None:
        self.file.unlink(missing_ok=True)

    def show(self, given: object) -> str:
        return repr(given)[:500]


def ends() -> list[tuple[str, str]]:
    """Every number's ends of its range, for jobs that run with them."""
    from ompy.mca import discovery, loading
    from ompy.mca.frameworks import declare
    from ompy.mca.params import registry

    declare()
    for framework, found in discovery.installed().items():
        for component in found.values() if framework != "command" else ():
            loading.load(component)
    found_ends = []
    for name, entry in registry.entries.items():
        if entry.parameter.range is not None:
            found_ends += [(name, str(value)) for value in (*entry.parameter.range, *entry.parameter.also)]
    return found_ends


# What a job must name besides, so that the parameter matters.
NAMED = {
    "btl_zmq": ["btl", "zmq,self"], "btl_sm": ["btl", "sm,self"], "btl_gdn": ["btl", "gdn,self"], "pml_dr": ["pml", "dr"],
    "btl_portals": ["btl", "portals,self"], "mtl_portals": ["pml", "cm"], "coll_portals": ["coll", "portals,basic"],
    "coll_sm": ["coll", "sm,basic"], "coll_tuned": ["coll", "tuned,basic"], "coll_basic": ["coll", "basic"],
    "coll_han": ["coll", "han,basic"],
}  # fmt: skip
PROGRAM = """
import numpy
from ompy import MPI
comm = MPI.COMM_WORLD
for size in (0, 1, 100, 5000, 70_000, 1 << 20):
    into = numpy.zeros(size, "u1")
    comm.Sendrecv(numpy.full(size, comm.rank, "u1"), 1 - comm.rank, 0, into, 1 - comm.rank, 0)
    assert (into == 1 - comm.rank).all()
    total = numpy.zeros(size, "i8")
    comm.Allreduce(numpy.arange(size), total)
    assert (total == 2 * numpy.arange(size)).all()
assert comm.bcast("x" * 100_000) == "x" * 100_000
window = MPI.Win.Allocate(1 << 16, comm=comm)
window.Fence()
window.Put(bytearray(1 << 16), 1 - comm.rank)
window.Fence()
window.Free()
"""


def job(name: str, value: str) -> str:
    """A job of two ranks with the parameter at this value: what is wrong with its end, or nothing."""
    others = next((given for prefix, given in NAMED.items() if name.startswith(prefix + "_")), [])
    others = ["--mca", *others] if others else []
    if name.startswith("btl_chaos"):
        others = ["--mca", "btl", "chaos,self", "--mca", "btl_chaos_wraps", "zmq", "--mca", "pml", "dr"]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "60", *others, "--mca", name, value]
    ended = subprocess.run([*command, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    if ended.returncode == 0 or name in ended.stderr:
        return ""
    return f"exit code {ended.returncode}: {ended.stderr.strip()[-400:]}"


def main() -> None:
    """Every number at the ends of its range: the job runs, or says which parameter keeps it from that."""
    for name, value in ends():
        if not sys.argv[1:] or any(name.startswith(prefix) for prefix in sys.argv[1:]):
            print(f"{name} {value}: {job(name, value) or 'ok'}", flush=True)


if __name__ == "__main__":
    main()
