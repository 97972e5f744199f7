"""The results as JUnit XML, which continuous-integration servers read: what surprises is a failure there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from ompy.testing.suite.job import Result


def write(path: Path, results: Sequence[tuple[Result, dict[str, str]]]) -> None:
    """One test suite for each module and setting.

    Parameters:
        results: of each module on each setting, with its surprises.
    """
    root = ElementTree.Element("testsuites")
    for result, surprises in results:
        suite = ElementTree.SubElement(root, "testsuite")
        suite.set("name", f"test_{result.module} ({result.setting})")
        suite.set("time", f"{result.seconds:.3f}")
        names = [*result.outcomes, *(name for name in surprises if name not in result.outcomes)]
        suite.set("tests", str(len(names)))
        suite.set("failures", str(len(surprises)))
        suite.set("skipped", str(result.count("skipped")))
        for name in names:
            place, _, test = name.rpartition(".")
            case = ElementTree.SubElement(suite, "testcase", classname=place or name, name=test or name)
            outcome = result.outcomes.get(name)
            if name in surprises:
                ElementTree.SubElement(case, "failure", message=surprises[name])
            elif outcome and outcome.kind != "passed":
                ElementTree.SubElement(case, "skipped", message=f"{outcome.kind}: {outcome.reason}")
        if surprises:
            # XML has no place for control characters.
            text = "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in result.output)
            ElementTree.SubElement(suite, "system-out").text = text
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
