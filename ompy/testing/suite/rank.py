"""What each rank of a module's run does: load the tests, name them all, run them, and write what came of each.

rank.py MODULE FOLDER        writes FOLDER/<rank>.jsonl
"""

from __future__ import annotations

import json
import os
import sys
import unittest
from typing import TextIO


class Recorder(unittest.TestResult):
    """Writes one line a test, as soon as it is over: what was written stays when the rank is killed."""

    def __init__(self, file: TextIO, rank: int) -> None:
        super().__init__()
        self.file = file
        self.rank = rank

    def write(self, test: object, outcome: str, reason: str = "") -> None:
        name = getattr(test, "test_case", test).id()  # type: ignore[attr-defined]
        print(json.dumps({"rank": self.rank, "test": name, "outcome": outcome, "reason": reason}), file=self.file, flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.write(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.write(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        self.fail_with(test, err)

    addError = addFailure

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:
        if err is not None:
            self.fail_with(test, err)

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        self.write(test, "passed")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.write(test, "failed", "passed, but is marked as an expected failure")

    def fail_with(self, test: object, err: object) -> None:
        text = self._exc_info_to_string(err, test)  # type: ignore[attr-defined]
        print(f"rank {self.rank}: {test}\n{text}", file=sys.stderr, flush=True)
        self.write(test, "failed", text.strip().splitlines()[-1])


def tests_of(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    tests: list[unittest.TestCase] = []
    for part in suite:
        tests += tests_of(part) if isinstance(part, unittest.TestSuite) else [part]
    return tests


def main() -> None:
    module, folder = sys.argv[1:]
    # As mpi4py's own main program does: these are tested on request only.
    for name in ("cupy", "numba"):
        sys.modules[name] = None  # type: ignore[assignment]
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    with open(os.path.join(folder, f"{rank}.jsonl"), "w", encoding="utf-8") as file:
        recorder = Recorder(file, rank)
        for test in tests_of(suite):
            recorder.write(test, "not run")
        suite.run(recorder)


if __name__ == "__main__":
    main()
