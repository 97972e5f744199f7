"""Some hundred mutated inputs of each kind; CONTRIBUTING says how to carry out more."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import chaos
import harness
import unauthenticated
from drivers import DRIVERS

INPUTS = {
    "arguments": 1500, "entry-points": 400, "parameters": 800, "pmi-server": 300, "pmi-client": 500, "board": 1000,
    "command-line": 500, "cards": 1000, "cards-gdn": 1000, "cards-portals": 1000, "cards-chaos": 1000,
    "dr-packets": 500, "zmq-none": 500, "zmq-plain": 500, "zmq-curve": 500,
}  # fmt: skip


@pytest.mark.parametrize(("name", "inputs"), INPUTS.items())
def test_no_input_crashes_hangs_or_is_taken_for_what_it_is_not(name: str, inputs: int, seed: int) -> None:
    findings = [str(finding) for finding in harness.run(DRIVERS[name], seed, inputs)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("number", range(4))
def test_a_job_ends_well_whatever_is_done_to_it(number: int, seed: int) -> None:
    case = chaos.Case(seed, number)
    problem = case.run()
    assert not problem, f"{case}: {problem}"


@pytest.mark.long
@pytest.mark.parametrize("port", unauthenticated.PORTS)
def test_callers_without_the_secret_deliver_nothing_and_end_nothing(port: str, seed: int) -> None:
    problem = unauthenticated.besiege(port, 3000, seed)
    assert not problem


class Planted:
    """Crashes at one input, hangs at another, and says that a third is wrong."""

    name = "planted"

    def begin(self) -> None:
        self.seen: list[int] = []

    def make(self, rng: random.Random) -> object:
        return rng.randrange(1 << 30)

    def carry_out(self, given: object) -> str:
        import os
        import signal

        self.seen.append(int(str(given)))
        if given == NUMBERS[7]:
            os.kill(os.getpid(), signal.SIGSEGV)
        if given == NUMBERS[31] and NUMBERS[29] in self.seen:
            os.kill(os.getpid(), signal.SIGABRT)
        return "odd" if given == NUMBERS[20] else ""

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return f"planted {given}"


NUMBERS = [Planted().make(harness.rng_of(5, number)) for number in range(40)]


def test_a_crash_is_brought_down_to_the_inputs_that_are_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A child of another program, that knows this driver.
    (tmp_path / "__main__.py").write_text(
        f"import sys\nsys.path[:0] = [{str(Path(__file__).parent)!r}]\nimport harness, test_hostile_inputs\n"
        "_, name, seed, first, last, page = sys.argv[1:]\n"
        "harness.run_child(test_hostile_inputs.Planted(), int(seed), int(first), int(last), page)\n"
    )
    monkeypatch.setattr(harness, "HERE", tmp_path)
    found = list(harness.run(Planted(), 5, 40))
    assert [(finding.first, finding.last) for finding in found] == [(7, 7), (20, 20), (28, 31)]
    assert [finding.what.partition(":")[0] for finding in found] == ["SIGSEGV", "odd", "SIGABRT"]
    assert found[0].shown == [f"planted {NUMBERS[7]}"]
