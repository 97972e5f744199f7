"""What the kit asks of a component: checks, what they find, and what keeps one from being run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

# What can come of a check on one rank, from the best to the worst.
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


class Breach(Exception):
    """A clause of the contract is broken.

    Parameters:
        clause: its name.
        words: what was expected and what was found.
        symptom: what another rank finds counts more, of which this may be the consequence.
    """

    def __init__(self, clause: str, words: str, symptom: bool = False) -> None:
        super().__init__(clause, words, symptom)
        self.clause = clause
        self.words = words
        self.symptom = symptom


class Unsuitable(Exception):
    """A check can't be made in these circumstances, and why: right only where the component declares circumstances."""


class Check(NamedTuple):
    """A function that every rank of a job runs at once.

    Attributes:
        name: the function's.
        clauses: those that it examines, the main one first.
        body: called with the rank.
        needs: a capability that the component must declare; else the check is skipped.
        ranks: runs on so many at least.
        abroad: needs a component that reaches other processes.
        idle: some ranks make no progress meanwhile, or sleep; no component does that in lockstep.
        unmet: begins before the ranks have met; else each has an endpoint for every peer.
        last: ends the job, or leaves it unfit for others.
        forks: a rank has a child by `fork`.
        sole: whatever goes wrong in it breaks its first clause.
        function: a collective that the component must declare algorithms of, where it declares any.
        option: made on request only, by this option.
        exits: the ranks' program ends with it, and the launcher with this status; nothing is printed where it is 0.
        tells: what is then printed, among other things.
    """

    name: str
    clauses: tuple[str, ...]
    body: Callable[[Any], None]
    needs: str = ""
    ranks: int = 1
    abroad: bool = False
    idle: bool = False
    unmet: bool = False
    last: bool = False
    forks: bool = False
    sole: bool = False
    function: str = ""
    option: str = ""
    exits: int | None = None
    tells: str = ""

    @property
    def title(self) -> str:
        return self.name.replace("_", " ")

    def excuse(self, capabilities: Mapping[str, object], ranks: int, options: Mapping[str, Any]) -> str:
        """Why it is not to be run, before a job is started; empty when it is."""
        if self.needs and not capabilities.get(self.needs):
            return f"the component does not declare {self.needs}"
        if self.abroad and capabilities.get("reach") == "process":
            return "the component reaches its own process alone"
        algorithms = capabilities.get("algorithms")
        if self.function and isinstance(algorithms, Mapping) and self.function not in algorithms:
            return "the component declares no algorithm of it"
        if self.idle and capabilities.get("lockstep"):
            return "the component goes on only while every rank makes progress, as it declares"
        if ranks < self.ranks:
            return f"needs {self.ranks} ranks"
        if self.option and not options.get(self.option):
            return f"on request: --{self.option}"
        return ""


class Collection:
    """The checks of one module, in the order in which they are written."""

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def __call__(self, *clauses: str, **conditions: Any) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        def add(body: Callable[[Any], None]) -> Callable[[Any], None]:
            self.checks.append(Check(body.__name__, clauses, body, **conditions))
            return body

        return add


# The checks of what matches messages, which an MTL and an RPI do below a PML of the tree's.
MATCHING = ("pml.matching", "pml.messages", "pml.requests", "pml.lifecycle", "pml.loss")
# Where the checks of each framework and level are: modules with a Collection called `check`.
MODULES = {
    ("btl", "contract"): ("btl.lifecycle", "btl.messages", "btl.pressure", "btl.remote_memory", "btl.renewal", "btl.ending"),
    ("btl", "mpi"): ("mpi.point_to_point",),
    ("btl", "mixed"): ("mpi.mixed",),
    ("coll", "contract"): (
        "coll.offers",
        "coll.synchronization",
        "coll.results",
        "coll.operations",
        "coll.service",
        "coll.large",
        "coll.sizes",
    ),
    ("osc", "contract"): (
        "osc.accesses",
        "osc.epochs",
        "osc.accumulates",
        "osc.layouts",
        "osc.requests",
        "osc.locks",
        "osc.windows",
    ),
    **{
        (framework, level): modules
        for framework in ("pml", "mtl", "rpi")
        for level, modules in (("contract", MATCHING), ("limits", MATCHING), ("mpi", ("pml.calls",)))
    },
    ("pml", "contract"): (*MATCHING, "pml.streams"),
    ("mtl", "contract"): (*MATCHING, "pml.streams"),
    ("bml", "contract"): ("bml.routes",),
    ("rte", "contract"): ("rte.place", "rte.meeting", "rte.ending"),
    ("rte", "failures"): ("rte.failures",),
    ("rte", "mpi"): ("rte.program",),
    ("plm", "contract"): ("plm.offer", "plm.proxies", "plm.ending"),
    ("plm", "mpi"): ("plm.program",),
    ("hook", "contract"): ("hook.queries", "hook.program"),
    ("io", "contract"): ("files.io",),
    ("fs", "contract"): ("files.fs",),
    ("fbtl", "contract"): ("files.fbtl",),
    ("fcoll", "contract"): ("files.fcoll",),
    ("sharedfp", "contract"): ("files.sharedfp",),
}


def checks(framework: str, level: str) -> list[Check]:
    """The checks of a level, those that spoil a job at the end."""
    found: list[Check] = []
    for name in MODULES[framework, level]:
        found += importlib.import_module(f"ompy.testing.conformance.{name}").check.checks
    return sorted(found, key=lambda check: check.last)


def levels(framework: str) -> list[str]:
    """The levels of a framework, the lowest first."""
    return [level for name, level in MODULES if name == framework]


class Outcome(NamedTuple):
    """What came of a check on one rank, or, the worst of them, on a job.

    Attributes:
        word: PASSED, SKIPPED or FAILED.
        clause: the broken one's name.
        words: the reason, or what was found.
        symptom: of a failure: it may be the consequence of another rank's.
    """

    word: str
    clause: str = ""
    words: str = ""
    rank: int = -1
    symptom: bool = False


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Of those ranks of a job that have one: the first failure, if it can be no symptom, else the first skip, else the pass."""
    for word in (FAILED, SKIPPED):
        for outcome in sorted(outcomes, key=lambda outcome: outcome.symptom):
            if outcome.word == word:
                return outcome
    return outcomes[0] if outcomes else Outcome(PASSED)
