"""Modules of mpi4py's own tests over the components under test, on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ompy.testing.conformance.check import FAILED, PASSED, Check, Outcome
from ompy.testing.conformance.job import Order
from ompy.testing.conformance.kit import Result
from ompy.testing.suite import job
from ompy.testing.suite.expectations import OURS, Expectations

LEVEL = "suite"
MOST_SECONDS = 1800.0
SHOWN = 10


def run(order: Order, modules: Sequence[str]) -> Iterator[Result]:
    """Run the modules; what ompy's expectations do not expect of one fails it.

    Errors: ompy.testing.suite.source.Unreachable when pip can't fetch the tests.
    """
    expected = Expectations(OURS)
    mca = order.parameters
    for module in modules:
        result = job.run(module, job.Setting(order.ranks, mca), MOST_SECONDS, order.silence)
        surprises = expected.surprises(result)
        told = [f"{name}: {words}" for name, words in list(surprises.items())[:SHOWN]]
        outcome = Outcome(FAILED if surprises else PASSED, "", "\n".join([f"{len(surprises)} unexpected", *told]))
        check = Check(f"test_{module}", (f"{len(result.outcomes)} tests",), lambda rank: None)
        yield Result(order, check, outcome, result.seconds)
