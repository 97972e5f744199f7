"""What the kit found: a table, the failures in words, and JUnit XML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ompy.testing.conformance.check import FAILED, PASSED, SKIPPED
from ompy.testing.conformance.kit import Result

MARKS = {PASSED: "[green]ok", SKIPPED: "[yellow]-", FAILED: "[bold red]FAILED"}


def failures(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.outcome.word == FAILED]


def told(result: Result) -> str:
    """A failure in words: the clause, what was found, and how to see it again."""
    outcome, order = result.outcome, result.order
    where = f"rank {outcome.rank} of {order.ranks}" if outcome.rank >= 0 else f"{order.ranks} ranks"
    where = where if order.processes == order.ranks else f"{order.ranks} hosts"
    lines = [f"{order.framework} {','.join(order.names)}: {result.check.title} ({order.level}, {where})"]
    if clause := result.clause:
        lines += [f"  breaks {clause}:", *textwrap.wrap(clause.text, 110, initial_indent="    ", subsequent_indent="    ")]
    lines += [f"  {line}" for line in outcome.words.strip().splitlines()]
    return "\n".join([*lines, f"  seed {order.seed}; to see it again: {result.command}"])


def table(results: Sequence[Result]) -> Table:
    """A row for each check, a column for each number of ranks."""
    ranks = sorted({result.order.ranks for result in results})
    order = results[0].order
    title = f"{order.framework} {','.join(order.names)}"
    shown = Table("level", "check", "clauses", *(f"n={count}" for count in ranks), "seconds", title=title, title_justify="left")
    shown.columns[-1].justify = "right"
    rows: dict[tuple[str, str], dict[int, Result]] = {}
    for result in results:
        rows.setdefault((result.order.level, result.check.name), {})[result.order.ranks] = result
    for (level, _), by_ranks in rows.items():
        check = next(iter(by_ranks.values())).check
        cells = [MARKS[by_ranks[count].outcome.word] if count in by_ranks else "" for count in ranks]
        seconds = sum(result.seconds for result in by_ranks.values())
        shown.add_row(level, check.title, ", ".join(check.clauses), *cells, f"{seconds:.1f}")
    return shown


def show(console: Console, results: Sequence[Result]) -> None:
    """The table, why what was left out was, and each failure."""
    console.print(table(results))
    reasons: dict[str, list[str]] = {}
    for result in results:
        if result.outcome.word == SKIPPED:
            titles = reasons.setdefault(result.outcome.words, [])
            if result.check.title not in titles:
                titles.append(result.check.title)
    for reason, titles in reasons.items():
        console.print(f"[yellow]-[/] {escape(reason)}: {escape(', '.join(titles))}", highlight=False, soft_wrap=True)
    for result in failures(results):
        console.print(f"\n[bold red]FAILED[/] {escape(told(result))}", highlight=False, soft_wrap=True)


def write_junit(path: Path, results: Sequence[Result]) -> None:
    """One test suite for each level and number of ranks."""
    root = ElementTree.Element("testsuites")
    groups: dict[str, list[Result]] = {}
    for result in results:
        order = result.order
        groups.setdefault(f"{order.framework} {','.join(order.names)} {order.level} n={order.ranks}", []).append(result)
    for name, group in groups.items():
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(group)))
        suite.set("failures", str(len(failures(group))))
        suite.set("skipped", str(sum(result.outcome.word == SKIPPED for result in group)))
        suite.set("time", f"{sum(result.seconds for result in group):.3f}")
        for result in group:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=result.check.name)
            case.set("time", f"{result.seconds:.3f}")
            if result.outcome.word == FAILED:
                # XML has no place for control characters.
                text = "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in told(result))
                ElementTree.SubElement(case, "failure", message=str(result.clause or result.outcome.clause)).text = text
            elif result.outcome.word == SKIPPED:
                ElementTree.SubElement(case, "skipped", message=result.outcome.words)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
