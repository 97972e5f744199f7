"""Programs from one seed on, at one place or at several, until one fails or the time is over."""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ompy.testing.fuzz.generator import PLAIN_LIMITS, WEIGHTS, Setting, generate
from ompy.testing.fuzz.program import Program
from ompy.testing.fuzz.runner import Failure, Place, Runner
from ompy.testing.fuzz.shrinker import Shrinker


class Wish(NamedTuple):
    """What is asked for.

    Attributes:
        seed: of the first program; the next ones count on from there.
        seconds, operations: the first of them that is over ends it; 0: no bound.
        kinds: of actions; empty: all.
        without: features that programs may not use.
        length: operations of a program, about.
        shrinking: seconds for shrinking a failure.
    """

    seed: int
    seconds: float = 60.0
    operations: int = 0
    kinds: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    length: int = 60
    shrinking: float = 60.0


class Found(NamedTuple):
    """A failure, and what became of it.

    Attributes:
        failure: as it was first.
        smallest: of the shrunk program; None when it did not fail alone.
    """

    failure: Failure
    smallest: Failure | None


class Outcome(NamedTuple):
    """What came of a campaign at one place."""

    place: Place
    programs: int
    operations: int
    seconds: float
    found: Found | None


ALWAYS = {"threads", "signals", "rma", "floods"}
OF_MPI_4_0 = {"mpi4.0", "sessions", "isendrecv"}
OF_MPI_4_1 = {"mpi4.1"}
# What MPI leaves open: errors that are told and survived, children that go on.
OF_OMPY = {"errors", "fork", "start after free"}
FEATURES = ALWAYS | OF_MPI_4_0 | OF_MPI_4_1 | OF_OMPY | {"numpy"}


def features(about: dict[str, Any], foreign: bool) -> frozenset[str]:
    """What a library can do."""
    found = set(ALWAYS)
    if tuple(about["standard"]) >= (4, 0):
        found |= OF_MPI_4_0
    if tuple(about["standard"]) >= (4, 1):
        found |= OF_MPI_4_1
    if importlib.util.find_spec("numpy") is not None:
        found.add("numpy")
    if not foreign:
        found |= OF_OMPY
    return frozenset(found)


def setting(place: Place, about: dict[str, Any], wish: Wish) -> Setting:
    """What programs are made for at a place, whose library says what it is."""
    able = features(about, place.foreign) - set(wish.without)
    weights = {name: weight for name, weight in WEIGHTS.items() if not wish.kinds or name in wish.kinds}
    memories = ["bytes"] if place.foreign else ["bytes", "bytes", "alloc"] + ["numpy"] * ("numpy" in able)
    limits = tuple(sorted({*PLAIN_LIMITS[:2], *about["limits"]})) if about["limits"] else PLAIN_LIMITS
    return Setting(place.ranks, limits, able, weights, wish.length, tuple(memories))


def programs(wish: Wish, wanted: Setting) -> Iterator[Program]:
    """The programs of a campaign, for ever."""
    for seed in itertools.count(wish.seed):
        yield generate(seed, wanted)


Said = Callable[[str, int, float], None]


def told(said: Said, operations: int, begin: float, words: str) -> None:
    said(words, operations, time.monotonic() - begin)


def run(place: Place, wish: Wish, said: Said = lambda words, operations, seconds: None) -> Outcome:
    """One campaign; `said` is told what is going on, the operations and the seconds so far.

    Errors: RuntimeError when the ranks do not come up.
    """
    begin = time.monotonic()
    runner = Runner(place)
    count = operations = 0
    found = None
    try:
        wanted = setting(place, runner.job().about, wish)
        outcomes = runner.run(programs(wish, wanted))
        for outcome in outcomes:
            seconds = time.monotonic() - begin
            if isinstance(outcome, Failure):
                said(f"program {outcome.program.seed} failed, is shrunk", operations, seconds)
                shrinker = Shrinker(place, wish.shrinking, partial(told, said, operations, begin))
                found = Found(outcome, shrinker.shrink(outcome) if wish.shrinking else None)
                break
            count += 1
            operations += outcome.operations
            said(f"seed {outcome.seed}", operations, seconds)
            if (wish.seconds and seconds > wish.seconds) or (wish.operations and operations >= wish.operations):
                break
    finally:
        runner.close()
    return Outcome(place, count, operations, time.monotonic() - begin, found)


def replay(place: Place, program: Program, times: int) -> Failure | None:
    """Run one program so many times."""
    runner = Runner(place)
    try:
        return runner.fails(program, times)
    finally:
        runner.close()
