"""`ompy conformance`: what people and machines are told."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from ompy.testing.conformance.check import FAILED, PASSED, SKIPPED, Check, Outcome, worst
from ompy.testing.conformance.job import Order
from ompy.testing.conformance.kit import Result, judged


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from ompy.cli.ompy import main; main()"
    command = [sys.executable, "-c", program, "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_component_that_keeps_its_contract_gives_a_table_and_status_0(tmp_path: Path) -> None:
    result = conformance(
        "--mca", "btl", "self", "-n", "1", "--level", "contract", "-k", "delivery", "--junit", str(tmp_path / "out.xml")
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "messages arrive once and unchanged" in result.stdout
    (suite,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert suite.get("failures") == "0"
    # What is made on request only, and what is for components that declare it, is there and says so.
    assert [case.find("skipped").get("message") for case in suite if case.find("skipped") is not None] == [
        "on request: --bytes",
        "the component does not declare renewal",
    ]


def test_a_failure_names_clause_seed_and_the_shortest_command_which_shows_it_again(planted, tmp_path: Path) -> None:
    fault = ("--mca", "btl_planted_fault", "TruncatesTheLargest")
    result = conformance(
        "--mca",
        "btl",
        "planted,self",
        *fault,
        "-n",
        "2",
        "--level",
        "contract",
        "-x",
        "--seed",
        "7",
        "--junit",
        str(tmp_path / "x"),
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "breaks clause 14 of ompy/mca/btl.pxd, size:" in result.stdout
    assert "a message of 32768 bytes arrived without its last 1" in result.stdout
    told = result.stdout[result.stdout.index("seed 7; to see it again: ") :].splitlines()[0]
    assert "every_size_around_a_limit_arrives" in told
    again = conformance(*told.partition("ompy conformance ")[2].split())
    assert again.returncode == 1
    assert "1 failed" in again.stdout
    failures = ElementTree.parse(tmp_path / "x").getroot().findall(".//failure")
    assert [failure.get("message") for failure in failures] == ["clause 14 of ompy/mca/btl.pxd, size"]


def test_what_can_not_be_done_is_said_with_what_can() -> None:
    unknown = conformance("--mca", "btl", "selff")
    assert unknown.returncode == 2
    assert "Did you mean self?" in unknown.stderr
    assert "contract, mpi, mixed" in conformance("--mca", "btl", "sm", "--level", "mpl").stderr
    assert "2,3,5" in conformance("--mca", "btl", "sm", "-n", "two").stderr
    assert "no clause is called so" in conformance("--mca", "btl", "sm", "-k", "punctuality").stderr
    assert "--mca btl NAME,self" in conformance().stderr


CHECK = Check("a_check", ("order",), lambda rank: None, needs="put")


def test_what_a_component_departs_from_must_fail() -> None:
    declared = {"put": True, "departures": {"order": "it is in a hurry"}}
    assert judged(Outcome(FAILED, "order", "overtaken"), CHECK, declared).word == SKIPPED
    assert judged(Outcome(FAILED, "delivery", "lost"), CHECK, declared).word == FAILED
    passed = judged(Outcome(PASSED), CHECK, declared)
    assert (passed.word, passed.clause) == (FAILED, "declaration")
    assert judged(Outcome(PASSED), CHECK, {"put": True}).word == PASSED


def test_a_skip_of_what_is_declared_without_circumstances_fails() -> None:
    skipped = Outcome(SKIPPED, "", "the kernel forbids it")
    assert judged(skipped, CHECK, {"put": True}).word == FAILED
    assert judged(skipped, CHECK, {"put": "cma"}).word == SKIPPED
    assert CHECK.excuse({}, 2, {}) == "the component does not declare put"
    assert CHECK.excuse({"put": True}, 2, {}) == ""


def test_the_worst_of_the_ranks_counts() -> None:
    assert worst([Outcome(PASSED), Outcome(SKIPPED), Outcome(FAILED, "tag"), Outcome(FAILED, "size")]).clause == "tag"
    assert worst([Outcome(PASSED), Outcome(SKIPPED)]).word == SKIPPED


def test_another_transport_beside_the_one_under_test_is_one_that_it_does_not_ride_on() -> None:
    def serving(*names: str, level: str = "mixed", mca: tuple[tuple[str, str], ...] = ()) -> list[str]:
        return Order("btl", names, level, 2, mca, 1, 5.0, {}).serving

    assert serving("sm", "self") == ["sm", "zmq", "self"]
    assert serving("zmq", "self") == ["zmq", "sm", "self"]
    assert serving("chaos", "self", mca=(("btl_chaos_wraps", "zmq"),)) == ["chaos", "sm", "self"]
    assert serving("mynet", "sm", "self") == ["mynet", "sm", "self"]
    assert serving("mynet", "sm", "self", level="mpi") == ["mynet", "self"]
    assert serving("mynet", "sm", "self", level="contract") == ["mynet"]


def test_a_launcher_of_processes_is_tried_as_it_declares_unless_something_else_is_given() -> None:
    def parameters(*mca: tuple[str, str]) -> dict[str, str]:
        return dict(Order("plm", ("ssh",), "contract", 3, mca, 1, 5.0, {}).parameters)

    assert parameters()["plm_ssh_agent"] == f"{sys.executable} -m ompy.testing.conformance.plm.shell"
    assert parameters(("plm_ssh_agent", "ssh -x")) == {"plm": "ssh", "plm_ssh_agent": "ssh -x"}


def test_the_command_that_shows_a_failure_again_is_quoted() -> None:
    order = Order("plm", ("ssh",), "contract", 2, (("plm_ssh_agent", "sh -c 'exit 1'"),), 1, 5.0, {})
    words = shlex.split(Result(order, CHECK, Outcome(FAILED, "name"), 1.0).command)
    assert words[words.index("plm_ssh_agent") + 1] == "sh -c 'exit 1'"
