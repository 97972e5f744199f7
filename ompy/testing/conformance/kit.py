"""The kit: every check of a component, on every number of ranks, many to a job."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ompy.mca import discovery, loading
from ompy.mca.component import Component
from ompy.mca.errors import ComponentError, suggestion
from ompy.testing.conformance import clauses, limits
from ompy.testing.conformance.check import FAILED, PASSED, SKIPPED, Check, Outcome, checks
from ompy.testing.conformance.clauses import Clause
from ompy.testing.conformance.job import Ended, Job, Order


class Result(NamedTuple):
    """What came of one check on one job."""

    order: Order
    check: Check
    outcome: Outcome
    seconds: float

    @property
    def clause(self) -> Clause | None:
        """The clause that is broken."""
        return clauses.read(self.order.framework).get(self.outcome.clause) if self.outcome.word == FAILED else None

    @property
    def command(self) -> str:
        """The shortest command that shows it again."""
        order = self.order
        words = ["ompy conformance", f"--mca {order.framework} {','.join(order.names)}"]
        words += [f"--mca {name} {shlex.quote(value)}" for name, value in order.mca]
        if order.level == "suite":
            return " ".join([*words, f"-n {order.ranks} --level suite --suite {self.check.name.removeprefix('test_')}"])
        if order.level == "programs":
            return " ".join([*words, f"-n {order.ranks} --level programs --seed {order.seed}"])
        words += [f"-n {order.ranks} --level {order.level} -k {self.check.name} --seed {order.seed}"]
        words += [f"--{name} {value}" for name, value in order.options.items() if value and name == self.check.option]
        return " ".join(words)


def component(framework: str, name: str) -> Component:
    """The component of that name; ComponentError with the known ones."""
    known = discovery.installed().get(framework, {})
    if name not in known:
        listing = ", ".join(sorted(known)) or "none is installed"
        raise ComponentError(f"no {framework} component is called {name}; known: {listing}.{suggestion(name, list(known))}")
    return loading.load(known[name]).component


def judged(outcome: Outcome, check: Check, declared: Mapping[str, object]) -> Outcome:
    """The outcome in the light of what the component declares: what is not as declared fails."""
    departures = declared.get("departures", {})
    assert isinstance(departures, Mapping)
    if outcome.word == FAILED and outcome.clause in departures:
        return Outcome(SKIPPED, "", f"departs from {outcome.clause} as it declares: {departures[outcome.clause]}")
    if outcome.word == PASSED and check.clauses[0] in departures:
        words = f"it passed, while the component declares that it departs from {check.clauses[0]}: take that away"
        return Outcome(FAILED, "declaration", words)
    if outcome.word == SKIPPED and check.needs and not isinstance(declared.get(check.needs), str):
        return Outcome(FAILED, "declaration", f"it was skipped ({outcome.words}), while the component declares {check.needs}")
    return outcome


def run(order: Order, chosen: Sequence[Check], exitfirst: bool = False) -> Iterator[Result]:
    """Make the checks on one number of ranks, all of them or until the first fails; a job serves until one fails."""
    declared = component(order.framework, order.component).capabilities
    pointless = "no limit can be varied" if order.level == limits.LEVEL and not limits.drawn(order) else ""
    if order.level == "failures" and not declared.get("recovery"):
        pointless = "the component does not declare how a job is told to go on without ranks that fail (`recovery`)"
    job: Job | None = None
    try:
        for check in chosen:
            begin = time.monotonic()
            if excuse := pointless or check.excuse(declared, order.ranks, order.options):
                yield Result(order, check, Outcome(SKIPPED, "", excuse), 0.0)
                continue
            if job is not None and job.forks != check.forks:
                job.end()
                job = None
            opened = job is not None
            try:
                job = job or Job(order, check.forks)
                opened = True
                outcome = job.run(check)
            except Ended as ended:
                outcome = ended.outcome
            if job is not None and (check.last or outcome.word == FAILED):
                job.end()
                job = None
            result = Result(order, check, judged(outcome, check, declared), time.monotonic() - begin)
            yield result
            # Where no job comes up there is nothing to make further checks on.
            if not opened or (exitfirst and result.outcome.word == FAILED):
                return
    finally:
        if job is not None:
            job.end()


def selected(framework: str, level: str, words: str = "") -> list[Check]:
    """The checks of a level whose name, or one of whose clauses, contains the words; all for none."""
    known = clauses.read(framework)
    return [
        check
        for check in checks(framework, level)
        # Some frameworks share checks, and not every clause.
        if check.clauses[0] in known
        if not words or words.replace(" ", "_") in check.name or words in check.clauses
    ]
