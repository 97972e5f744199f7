"""What is run: the programs and libraries that use mpi4py, as `clients.toml` lists them."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
RANKS = [1, 2, 4]


class Trial(NamedTuple):
    """One way to run a client.

    Parameters:
        ranks: of the job; 0 where the client starts its jobs itself.
        pytest: arguments of each pytest, when that is what the ranks run; relative to `folder`.
        programs: commands for Python, each a test that passes when it ends well; {programs} is this tool's folder of them.
        seconds: until it is ended.
    """

    ranks: int
    pytest: list[list[str]]
    programs: list[list[str]]
    seconds: float


class Client(NamedTuple):
    """A distribution that uses mpi4py.

    Parameters:
        about: what it is, in a few words.
        requirements: for pip.
        environment: name of the virtual environment, which clients share that get on with one another.
        separate: it takes `mpirun` from beside its interpreter, so each library has an environment of its own.
        source: the requirement whose source distribution holds the tests; empty where they are installed with it, or are ours.
        folder: where they are: in the source distribution, or `programs` of this tool.
        tests: what is run, in words.
        quick: part of a run in a few minutes.
        note: the reason of a difference between the libraries.
        variables: of the environment of its runs.
        typed: what stands on standard input, which is at its end otherwise.
        clocked: its tests that ask the clock, and so fail now and then.
    """

    name: str
    about: str
    requirements: list[str]
    environment: str
    separate: bool
    source: str
    folder: str
    tests: str
    quick: bool
    note: str
    variables: dict[str, str]
    typed: str
    clocked: list[str]
    trials: list[Trial]


def trials(entry: dict[str, Any]) -> list[Trial]:
    """One for each number of ranks."""

    def commands(kind: str, ranks: int) -> list[list[str]]:
        return [shlex.split(words.format(ranks=ranks, programs=PROGRAMS)) for words in entry.get(kind, [])]

    return [
        Trial(ranks, commands("pytest", ranks), commands("programs", ranks), entry.get("seconds", 300))
        for ranks in entry.get("ranks", RANKS)
    ]


def read() -> dict[str, Client]:
    """All of them, by name."""
    table = tomllib.loads((HERE / "clients.toml").read_text())
    return {
        name: Client(
            name,
            entry["about"],
            entry.get("requirements", []),
            entry.get("environment", "main"),
            entry.get("separate", False),
            entry.get("source", ""),
            entry.get("folder", "."),
            entry["tests"],
            entry.get("quick", False),
            entry.get("note", ""),
            entry.get("variables", {}),
            entry.get("typed", ""),
            entry.get("clocked", []),
            [trial for part in entry["runs"] for trial in trials(part)],
        )
        for name, entry in table.items()
    }
