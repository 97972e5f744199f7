"""What is expected of the suite: everything passes, except for what a file lists with a reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class Entry:
    """One line: outcome, pattern of tests, condition on the number of ranks, reason."""

    def __init__(self, line: str, number: int) -> None:
        rule, separator, self.reason = (part.strip() for part in line.partition(" : "))
        words = rule.split()
        if not separator or not self.reason or len(words) not in (2, 3):
            raise ValueError(f"expectations, line {number}: OUTCOME PATTERN [n=RANKS] : REASON expected, not {line!r}")
        self.outcomes = words[0].split("|")
        self.pattern = words[1]
        condition = words[2] if len(words) == 3 else ""
        self.ranks = {int(ranks) for ranks in condition.removeprefix("n=").split(",") if ranks}

    def covers(self, test: str, ranks: int) -> bool:
        return (not self.ranks or ranks in self.ranks) and fnmatchcase(test, self.pattern)


class Expectations:
    """The file: a line `modules NAME ...` says which modules there are, every other line is an Entry.

    The first entry that covers a test counts.
    """

    def __init__(self, path: Path) -> None:
        self.modules: list[str] = []
        self.entries: list[Entry] = []
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            line = text.partition("#")[0].strip()
            if line.startswith("modules "):
                self.modules += line.split()[1:]
            elif line:
                self.entries.append(Entry(line, number))

    def surprises(self, outcomes: dict[str, tuple[str, str]], ranks: int) -> list[str]:
        """One line for each test whose outcome is not the expected one."""
        lines = []
        for test, (outcome, reason) in outcomes.items():
            entry = next((entry for entry in self.entries if entry.covers(test, ranks)), None)
            if outcome not in (entry.outcomes if entry else ("passed",)):
                wanted = f"{' or '.join(entry.outcomes)} ({entry.reason})" if entry else "passed"
                lines.append(f"{test}: {outcome}{f' ({reason})' if reason else ''}, expected {wanted}")
        return lines
