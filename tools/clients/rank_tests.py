"""What a rank of a client's tests runs: `python rank_tests.py FOLDER [arguments of pytest]`.

FOLDER/<rank>.tests gets a line when a test begins and one for each thing that comes of it, so that what happened before a
crash is known; the exit status is 0 whatever the tests do, for a rank that failed would end the others.
"""

import os
import random
import sys

import numpy
import pytest


class Teller:
    """A plugin that writes the outcomes down."""

    def __init__(self, path: str) -> None:
        self.stream = open(path, "a", buffering=1)  # noqa: SIM115

    def tell(self, word: str, nodeid: str) -> None:
        self.stream.write(f"{word}\t{nodeid.encode('unicode_escape').decode()}\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            word = "passed" if hasattr(report, "wasxfail") else report.outcome
            self.tell(word, report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell("failed", report.nodeid or "collection")


def main() -> None:
    folder, *arguments = sys.argv[1:]
    # What files of tests pick at random, their parameters too, has to be the same on every rank, and over either library.
    random.seed(0)
    numpy.random.seed(0)
    rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    # Plugins that start pytest again look here for how.
    sys.argv[0] = os.path.join(os.path.dirname(pytest.__file__), "__main__.py")
    pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[Teller(f"{folder}/{rank}.tests")])


if __name__ == "__main__":
    main()
