"""Collectives are chosen per communicator and per function: an outside component may serve a few of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from outside import Outside
from workshop import Run

SOURCE = """
    from ompy.mca.component import Component, Offer, hookimpl

    COMPONENT = Component(framework="coll", name="{name}", version="1.0", interface=1, summary="tells what it is asked")

    @hookimpl
    def ompy_component():
        return COMPONENT

    @hookimpl
    def ompy_query(context):
        from ompy.mca.coll import FUNCTIONS, CollModule

        class Telling(CollModule):
            def run(self, function, call, comm):
                print("{name} serves", FUNCTIONS[function], "on", comm.name)
                return 0

        return Offer(modules=[Telling("{name}")], priority={priority}, functions={functions})
"""
PROGRAM = """
import ompy
from ompy import MPI
MPI.COMM_SELF.Bcast(bytearray(1))
MPI.COMM_SELF.Barrier()
MPI.COMM_SELF.Ibcast(bytearray(1)).Wait()
told = [it for it in ompy.explain_collective("bcast", 1) if it.component in ("tuned", "soft", "loud")]
print([(it.component, it.chosen, it.priority) for it in told])
"""


def install(outside: Outside, name: str, priority: int, functions: tuple[str, ...] | None) -> None:
    source = SOURCE.format(name=name, priority=priority, functions=functions)
    outside.install(f"coll-{name}", {"ompy.coll": {name: f"coll_{name}"}}, {f"coll_{name}": source})


def test_the_highest_priority_serves_a_function_and_the_others_keep_theirs(outside: Outside, run) -> None:
    install(outside, "loud", 90, ("reduce", "ibarrier"))
    install(outside, "soft", 80, ("barrier",))
    result = run("-c", PROGRAM)
    assert result.stdout.splitlines() == ["soft serves barrier on MPI_COMM_SELF", "[('tuned', True, 30)]"], result.stderr


def test_a_component_serves_only_the_forms_that_its_module_has(outside: Outside, run) -> None:
    install(outside, "soft", 80, ("bcast",))
    result = run("-c", PROGRAM)
    assert result.stdout.splitlines() == [
        "soft serves bcast on MPI_COMM_SELF",
        "[('soft', True, 80), ('tuned', False, 30)]",
    ], result.stderr


def test_a_lower_priority_is_told_who_came_before_it(outside: Outside, run) -> None:
    install(outside, "loud", 5, ("bcast",))
    assert run("-c", PROGRAM).stdout == "[('tuned', True, 30), ('loud', False, 5)]\n"


def test_a_component_that_is_excluded_serves_nothing(outside: Outside, run) -> None:
    install(outside, "soft", 80, ("barrier",))
    assert "soft serves" not in run("-c", PROGRAM, OMPY_MCA_coll="^soft").stdout


def test_a_function_that_nobody_serves_is_an_error_that_names_it(outside: Outside, run) -> None:
    install(outside, "soft", 80, ("barrier",))
    errors = run("-c", PROGRAM, OMPY_MCA_coll="soft").stderr
    assert "no coll component serves bcast, gather" in errors
    assert "basic: not in the list of parameter coll" in errors


def test_an_algorithm_may_be_named_whose_component_has_nobody_to_serve(run) -> None:
    """coll/sm alone has it, and offers nothing to a process that is alone."""
    assert (
        run("-c", "from ompy import MPI; print(MPI.COMM_WORLD.size)", OMPY_MCA_coll_bcast_algorithm="shared_memory").stdout
        == "1\n"
    )


def test_a_name_that_is_no_collective_is_an_error_with_the_nearest(outside: Outside, run) -> None:
    install(outside, "soft", 80, ("barier",))
    assert "coll component soft offers 'barier', which is no collective. Did you mean barrier?" in run("-c", PROGRAM).stderr


ASKED = """
    from ompy.mca.component import Component, Offer, Refusal, hookimpl

    COMPONENT = Component(framework="coll", name="asked", version="1.0", interface=1, summary="tells when it is asked")

    @hookimpl
    def ompy_component():
        return COMPONENT

    @hookimpl
    def ompy_query(context):
        from ompy.mca.coll import FUNCTIONS, CollModule

        class Telling(CollModule):
            def run(self, function, call, comm):
                print("barrier of", comm.name)
                return 0

        print("asked")
        {answer}
"""
SEVERAL = """
from ompy import MPI
from ompy.mca.params import registry
for name in "first", "second":
    dup = MPI.COMM_SELF.Dup()
    dup.name = name
    dup.Barrier()
registry.set("coll_bcast_algorithm", "auto")
MPI.COMM_SELF.Dup().Free()
"""
OFFER = 'make = lambda comm: Telling("asked"); return Offer([make(None)], 90, ("barrier",), again={again})'


def asked(outside: Outside, run, answer: str) -> list[str]:
    outside.install("coll-asked", {"ompy.coll": {"asked": "coll_asked"}}, {"coll_asked": ASKED.format(answer=answer)})
    return run("-c", SEVERAL).stdout.splitlines()


def test_one_answer_serves_all_communicators_of_a_kind_until_a_parameter_is_set(outside: Outside, run) -> None:
    told = asked(outside, run, OFFER.format(again="make"))
    # World and self are of one kind here.
    assert told == ["asked", "barrier of first", "barrier of second", "asked"]


def test_a_component_that_promises_nothing_is_asked_each_time(outside: Outside, run) -> None:
    told = asked(outside, run, OFFER.format(again=None))
    assert told == ["asked", "asked", "asked", "barrier of first", "asked", "barrier of second", "asked"]


def test_a_refusal_lasts_where_it_says_so(outside: Outside, run) -> None:
    assert asked(outside, run, 'return Refusal("not today", lasting=True)') == ["asked", "asked"]


def test_a_refusal_that_may_not_last_is_asked_for_again(outside: Outside, run) -> None:
    assert asked(outside, run, 'return Refusal("not today")') == ["asked"] * 5


RANK = """
import os, sys
rank = int(os.environ["PMI_RANK"])
{before}
from ompy import MPI
print(MPI.COMM_WORLD.allreduce(1))
{after}
"""


def job(run: Run, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    program = RANK.format(before=before, after=after)
    return run("-m", "ompy.cli.ompyrun", "-n", "3", "--oversubscribe", "--timeout", "50", sys.executable, "-c", program)


BREAKS = "sys.modules['ompy_coll_sm.component'] = None"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (f"if rank == 1: {BREAKS}", "sm is left out on rank 1, and serves on rank 0: importing"),
        (f"if rank == 0: {BREAKS}", "sm is left out on rank 0, and serves on rank "),
        ("if rank == 2: os.environ['OMPY_MCA_coll'] = '^tuned'", "tuned is left out on rank 2, and serves on rank 0: excluded"),
        ("os.environ['OMPY_MCA_coll_sm_priority'] = str(40 + rank // 2)", "sm has priority 41 on rank 2 and 40 on rank 0"),
    ],
)
def test_ranks_that_would_serve_the_world_differently_end_with_the_name_of_the_component(
    run: Run, before: str, told: str
) -> None:
    ended = job(run, before)
    assert ended.returncode == 1, ended.stderr
    assert f"coll component {told}" in ended.stderr


def test_a_component_that_goes_wrong_on_every_rank_is_left_out(run: Run) -> None:
    ended = job(run, BREAKS, "print(MPI.COMM_WORLD.Split(0).allreduce(1))")
    assert (ended.returncode, ended.stdout.split()) == (0, ["3"] * 6), ended.stderr
    assert ended.stderr.count("sm is left out: ") == 1


def test_a_component_that_fails_for_a_later_communicator_on_one_rank_is_named(run: Run) -> None:
    fails = "import ompy_coll_sm.component as sm\nif rank == 2: sm.ompy_query = lambda context: None\n"
    ended = job(run, after=fails + "MPI.COMM_WORLD.Split(rank == 1).allreduce(1)")
    assert ended.returncode == 1, ended.stderr
    assert "coll component sm can't be asked for another communicator" in ended.stderr
