"""The project's tests and mpi4py's suite under each mechanism of btl/sm and coll/sm, forced in turn.

\b
    python tools/mechanisms                     all of them: about an hour on two cores
    python tools/mechanisms ring streaming      these
    python tools/mechanisms --quick             some tests, and mpi4py's suite in its quick form
    python tools/mechanisms kernel -- tests/mpi -k window       with arguments for pytest, in place of the folders

A mechanism is a set of parameters, given in the environment, so that a test that names one of them itself has its way.
The thresholds are low, to have most messages go the way that is forced.  The exit status is 1 when anything failed; what it
was is shown as it happens, a summary at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]

LOW = {"btl_sm_min_rdma_pipeline_size": "1"}
NO_HEAP = {"btl_sm_shared_heap": "none"}
RING = {"btl_sm_single_copy": "none", **NO_HEAP}
KERNEL = {"btl_sm_single_copy": "cma", **NO_HEAP, **LOW}
HEAP = {"btl_sm_single_copy": "none", "mpi_numpy_heap": "4096", **LOW}
MECHANISMS = {
    "ring": {**RING, "btl_sm_ring_copy": "cached"},
    "streaming": {**RING, "btl_sm_ring_copy": "streaming"},
    "fragments": {**RING, "btl_sm_ring_copy": "auto", "btl_sm_eager_limit": "1024", "btl_sm_rndv_eager_limit": "512"},
    "kernel": {**KERNEL, "btl_sm_joint_copy": "0"},
    "kernel-joint": {**KERNEL, "btl_sm_joint_copy": "4096"},
    "kernel-puts": {**KERNEL, "pml_ob1_use_get": "0", "btl_sm_eager_limit": "4096"},
    "heap": {**HEAP, "btl_sm_joint_copy": "0"},
    "heap-joint": {**HEAP, "btl_sm_joint_copy": "4096"},
    "files": {"btl_sm_backing": "file", "coll_sm_backing": "file"},
    "messages": {"coll": "basic"},
    "tuned": {"coll": "tuned,basic"},
}
FOLDERS = [f"tests/{folder}" for folder in ("mpi", "pml", "btl", "programs")]
QUICK = [f"tests/mpi/test_{name}.py" for name in ("point_to_point", "random_messages", "shared_heap", "collectives_sm")]


@dataclass(frozen=True)
class Outcome:
    """What came of one set of tests.

    Parameters:
        tests, failed, skipped: their numbers; of a run that did not come to its end, none.
        status: the exit status.
        seconds: that it took.
    """

    tests: int
    failed: int
    skipped: int
    status: int
    seconds: float

    def __str__(self) -> str:
        if self.status and not self.failed:
            return f"[red]exit status {self.status}"
        passed = f"[green]{self.tests - self.failed - self.skipped} passed"
        failed = f", [red]{self.failed} failed[/red]" if self.failed else ""
        return f"{passed}[/green]{failed}" + (f", {self.skipped} skipped" if self.skipped else "")


def run(command: list[str], option: str, parameters: dict[str, str]) -> Outcome:
    """Run tests that write what came of them as JUnit XML to the file that `option` names."""
    variables = {f"OMPY_MCA_{name}": value for name, value in parameters.items()}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outcome.xml"
        told = [sys.executable, *command, option, str(report)]
        status = subprocess.run(told, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode
        seconds = time.monotonic() - begin
        suites = list(ElementTree.parse(report).iter("testsuite")) if report.exists() else []

    def total(*names: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites for name in names)

    return Outcome(total("tests"), total("failures", "errors"), total("skipped"), status, seconds)


def summary(outcomes: dict[str, tuple[Outcome, Outcome]]) -> Table:
    table = Table("mechanism", "parameters", "ompy's tests", "mpi4py's", "seconds", title="under each mechanism")
    for name, (own, theirs) in outcomes.items():
        settings = "\n".join(f"{parameter} {value}" for parameter, value in MECHANISMS[name].items())
        table.add_row(name, settings, str(own), str(theirs), f"{own.seconds + theirs.seconds:.0f}")
    return table


@click.command(help=__doc__)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--quick", is_flag=True, help="Some tests, and mpi4py's suite in its quick form.")
@click.option("-n", "ranks", default=2, show_default=True, help="Ranks of mpi4py's suite.")
def main(arguments: tuple[str, ...], quick: bool, ranks: int) -> None:
    names = [argument for argument in arguments if argument in MECHANISMS] or list(MECHANISMS)
    chosen = [argument for argument in arguments if argument not in MECHANISMS]
    for argument in chosen:
        if not argument.startswith("-") and not (ROOT / argument.split("::")[0]).exists() and chosen[0] == argument:
            raise click.UsageError(f"no mechanism is called {argument}, and no test; there are {', '.join(MECHANISMS)}")
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(chosen or (QUICK if quick else FOLDERS))]
    suite = ["tools/suite", *(["--quick"] if quick else ["-n", str(ranks)])]
    console = Console(highlight=False)
    outcomes: dict[str, tuple[Outcome, Outcome]] = {}
    for number, name in enumerate(names, 1):
        settings = ", ".join(f"{parameter} {value}" for parameter, value in MECHANISMS[name].items())
        console.rule(f"{number} of {len(names)}, {name}: {settings}")
        outcomes[name] = (run(tests, "--junitxml", MECHANISMS[name]), run(suite, "--junit", MECHANISMS[name]))
    console.print(summary(outcomes))
    if any(outcome.status for pair in outcomes.values() for outcome in pair):
        sys.exit(1)


if __name__ == "__main__":
    main()
