"""Mutated inputs by the thousand, in child processes, so that a crash or a hang is seen and brought down to the input.

A driver makes input number `i` of a seed from these two numbers alone, and carries it out.  Its child writes the number of the
input that it is at into a page that it shares with this process:

    child    0 1 2 3 4 5 SIGSEGV          this process: input 5 again, alone, in a new child
                                          crashes: that is it          does not: 3 to 5, 0 to 5, by halves
    child    6 7 8 ...                    goes on behind it

What a driver returns for an input that must not have it so (a leak, a wrong error) is a finding too.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).parent
# Without a step for so long a child hangs; seconds.
PATIENCE = 30.0
# What a child may have grown by at its end, beyond what it had after its first tenth; bytes.  What the C library keeps of freed
# memory varies by some tens of MiB.
GROWTH = 128 << 20
# Seconds in which descriptors that are being closed are gone.
LATE = 5.0
PAGE = mmap.PAGESIZE
RECORD = struct.Struct("q")


class Driver(Protocol):
    """What a class of inputs is.  `begin` and `carry_out` run in the child."""

    name: str

    def begin(self) -> None:
        """Once in each child."""

    def make(self, rng: random.Random) -> object:
        """An input; everything random comes from `rng`."""

    def carry_out(self, given: object) -> str:
        """Do it; returns what is wrong, or nothing."""

    def settle(self) -> None:
        """Now and then: let go of what inputs have left behind."""

    def show(self, given: object) -> str:
        """The input for people."""


class Finding:
    """An input, or some in a row, after which something is wrong."""

    def __init__(self, seed: int, first: int, last: int, what: str, shown: list[str]) -> None:
        self.seed, self.first, self.last, self.what, self.shown = seed, first, last, what, shown

    def __str__(self) -> str:
        return f"seed {self.seed}, inputs {self.first} to {self.last}: {self.what}\n  " + "\n  ".join(self.shown)


def rng_of(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed}/{number}")


def usage() -> tuple[int, list[str]]:
    """Bytes in memory, and what the descriptors are of."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    descriptors = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            descriptors.append(os.readlink(f"/proc/self/fd/{number}"))
    return pages * PAGE, descriptors


def run_child(driver: Driver, seed: int, first: int, last: int, page: str) -> None:
    """What a child does: inputs `first` to `last` - 1; each finding is a line on standard output."""
    with open(page, "r+b") as stream:
        shared = mmap.mmap(stream.fileno(), PAGE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    driver.begin()
    settled = first + (last - first) // 10
    before: tuple[int, list[str]] = (0, [])
    for number in range(first, last):
        RECORD.pack_into(shared, 0, number)
        given = driver.make(rng_of(seed, number))
        what = driver.carry_out(given)
        if what:
            print(f"{number} {what}", flush=True)
        del given
        if number % 100 == 0 or number == settled:
            driver.settle()
        if number == settled:
            before = usage()
    driver.settle()
    memory, descriptors = usage()
    # Threads of a library may still be closing the last ones.
    deadline = time.monotonic() + LATE
    while len(descriptors) > len(before[1]) and time.monotonic() < deadline:
        driver.settle()
        memory, descriptors = usage()
    if last - first >= 2000 and memory - before[0] > GROWTH:
        print(f"{last} memory grew by {(memory - before[0]) >> 20} MiB over {last - settled} inputs", flush=True)
    if last - first >= 100 and len(descriptors) > len(before[1]):
        new = sorted(set(descriptors) - set(before[1]))
        more = len(descriptors) - len(before[1])
        print(f"{last} {more} descriptors more than {last - settled} inputs before: {new}", flush=True)
    RECORD.pack_into(shared, 0, last)


def attempt(driver: Driver, seed: int, first: int, last: int) -> tuple[int, str, list[tuple[int, str]]]:
    """Run inputs in a child: where it ended, how when not well, and its findings."""
    with tempfile.NamedTemporaryFile() as page, tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        page.write(bytes(PAGE))
        page.flush()
        command = [sys.executable, str(HERE), "--child", driver.name, str(seed), str(first), str(last), page.name]
        child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        view = mmap.mmap(page.fileno(), PAGE)
        at, since, hung = -1, time.monotonic(), False
        while True:
            try:
                status = child.wait(0.2)
                break
            except subprocess.TimeoutExpired:
                now = RECORD.unpack_from(view, 0)[0]
                if now != at:
                    at, since = now, time.monotonic()
                elif time.monotonic() - since > PATIENCE:
                    hung = True
                    os.killpg(child.pid, signal.SIGKILL)
        at = RECORD.unpack_from(view, 0)[0]
        out.seek(0)
        err.seek(0)
        found = [(int(number), what) for number, _, what in (line.partition(" ") for line in out.read().decode().splitlines())
                 if number.isdigit()]  # fmt: skip
        if hung:
            return at, f"no step for {PATIENCE:g} s", found
        if status or at != last:
            words = err.read().decode(errors="replace").strip().splitlines()[-12:]
            how = signal.Signals(-status).name if status < 0 else f"ended with {status}"
            return at, f"{how}: " + " | ".join(words), found
        return last, "", found


def shrink(driver: Driver, seed: int, first: int, last: int) -> int:
    """The latest input to begin with, such that a child that ends at `last` goes wrong as well."""
    back = 0
    while last - back >= first:
        if attempt(driver, seed, last - back, last + 1)[1]:
            return last - back
        back = 2 * back + 1
    return first


def run(driver: Driver, seed: int, inputs: int, batch: int = 20_000) -> Iterator[Finding]:
    """Carry out so many inputs; what went wrong, as it is found."""
    first = 0
    while first < inputs:
        last = min(inputs, first + batch)
        at, how, found = attempt(driver, seed, first, last)
        for number, what in found:
            made = [driver.show(driver.make(rng_of(seed, number)))] if number < last else []
            yield Finding(seed, number, number, what, made)
        if how:
            begin = shrink(driver, seed, first, at)
            numbers = range(max(begin, at - 9), at + 1)
            yield Finding(seed, begin, at, how, [driver.show(driver.make(rng_of(seed, number))) for number in numbers])
            first = at + 1
        else:
            first = last
