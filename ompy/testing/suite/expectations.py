"""What is expected of the suite: everything passes, except for what a file lists with a reason."""

from __future__ import annotations

import importlib.util
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ompy.testing.suite.job import Result
from ompy.testing.suite.outcomes import OUTCOMES

FIELDS = {"tests", "outcome", "ranks", "without", "reason"}


# What is known of ompy.
OURS = Path(__file__).resolve().with_name("expectations.toml")


class Entry:
    """One table `[[expect]]` of the file.

    Parameters:
        tests: names (module.class.test), `*` as in a shell.
        outcome: "skipped", "failed" or "not run".
        ranks: numbers of ranks that it speaks of; all without it.
        without: a Python module; it speaks only of environments that lack it.
        reason: why this is right, or who else is so.
    """

    def __init__(self, table: dict[str, Any]) -> None:
        if unknown := table.keys() - FIELDS:
            raise ValueError(f"expectations: unknown fields {', '.join(sorted(unknown))} in {table}")
        if not table.get("reason") or not table.get("tests") or table.get("outcome") not in OUTCOMES[1:]:
            raise ValueError(f"expectations: tests, an outcome of {', '.join(OUTCOMES[1:])} and a reason expected in {table}")
        self.tests: list[str] = table["tests"]
        self.outcome: str = table["outcome"]
        self.ranks: list[int] = table.get("ranks", [])
        self.reason: str = table["reason"]
        without = table.get("without")
        self.valid = without is None or importlib.util.find_spec(without) is None

    def covers(self, test: str, ranks: int) -> bool:
        return self.speaks_of(ranks) and any(fnmatchcase(test, pattern) for pattern in self.tests)

    def speaks_of(self, ranks: int) -> bool:
        return self.valid and (not self.ranks or ranks in self.ranks)


class Expectations:
    """The file: the modules, those of them that are quick, and the entries, of which the first that covers a test counts."""

    def __init__(self, path: Path) -> None:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        self.modules: list[str] = content["modules"]
        self.quick = [name for name in self.modules if name not in content["long"]]
        self.entries = [Entry(table) for table in content["expect"]]

    def surprises(self, result: Result) -> dict[str, str]:
        """What is not as expected: {test: words}; what befell the whole job is under the module's name.

        A pattern of this module that no test matches is one too: the test that it was written for is gone.
        """
        ranks = result.setting.ranks
        found = {f"test_{result.module}": result.trouble} if result.trouble else {}
        for test, outcome in result.outcomes.items():
            entry = next((entry for entry in self.entries if entry.covers(test, ranks)), None)
            if outcome.kind != (entry.outcome if entry else "passed"):
                words = f"{outcome.kind} ({outcome.reason})" if outcome.reason else outcome.kind
                found[test] = f"{words}; expected: {f'{entry.outcome}, {entry.reason}' if entry else 'passed'}"
        for entry in self.entries:
            for pattern in entry.tests if entry.speaks_of(ranks) and not result.trouble else ():
                belongs = pattern.startswith(f"test_{result.module}.")
                if belongs and not any(fnmatchcase(test, pattern) for test in result.outcomes):
                    found[pattern] = "the expectations speak of it, but there is no such test"
        return found
