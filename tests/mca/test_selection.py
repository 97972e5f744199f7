"""Components take part, are refused, or break: each with a verdict that a person can act on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from outside import Outside

SELECT = """
import sys
from ompy.core.errors import MPIError
from ompy.mca import selection
from ompy.mca.btl import Btl
try:
    print("modules", [type(module).__name__ for module in selection.select("btl")])
except MPIError as error:
    print("error", error)
for verdict in selection.verdicts("btl"):
    print(verdict.component, verdict.chosen, verdict.priority, verdict.reason, sep="|")
print("imported", sorted(name for name in sys.modules if name.startswith(("outside_", "pluggy", "zmq", "numpy"))))
"""
SERVES = """
    from ompy.mca.btl import Btl
    class Bird(Btl):
        add_procs = lambda self, procs: ["out of reach"] * len(procs)
        progress = lambda self: 0
    return Offer(modules=[Bird()], priority={})"""


def verdict(output: str, component: str) -> list[str]:
    (line,) = [line for line in output.splitlines() if line.startswith(f"{component}|")]
    return line.split("|")[1:]


def test_an_outside_component_is_discovered_and_chosen(outside: Outside, run) -> None:
    outside.component("pigeon", SERVES.format(7))
    result = run("-c", SELECT, OMPY_MCA_btl="pigeon,self")
    assert verdict(result.stdout, "pigeon") == ["True", "7", "asked for by name"], result.stderr
    assert "'Bird'" in result.stdout


def test_a_refusal_keeps_its_reason(outside: Outside, run) -> None:
    outside.component("pigeon", 'return Refusal("no pigeon is awake")')
    assert verdict(run("-c", SELECT).stdout, "pigeon") == ["False", "None", "no pigeon is awake"]


def test_a_component_that_is_not_meant_for_everybody_is_asked_only_when_it_is_named(outside: Outside, run) -> None:
    outside.component("pigeon", SERVES.format(99), group="ompy.btl.by_name")
    for listed in ({}, {"OMPY_MCA_btl": "^self"}):
        output = run("-c", SELECT, **listed).stdout
        chosen, _, reason = verdict(output, "pigeon")
        assert (chosen, reason) == ("False", "serves only where it is named, as in `--mca btl pigeon`")
        assert "outside_pigeon" not in output.partition("imported")[2]
    assert verdict(run("-c", SELECT, OMPY_MCA_btl="self,pigeon").stdout, "pigeon")[0] == "True"


def test_a_component_can_choose_from_a_framework_below_its_own(outside: Outside, run) -> None:
    outside.component("pigeon", 'print("below:", type(context.select("rte")[0]).__name__); return Refusal("says no")')
    result = run("-c", SELECT)
    assert "below: SingletonRte" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("listed", ["^pigeon", "self"])
def test_a_component_that_the_list_leaves_out_is_never_imported(outside: Outside, run, listed: str) -> None:
    outside.component("pigeon", SERVES.format(7))
    result = run("-c", SELECT, OMPY_MCA_btl=listed)
    assert verdict(result.stdout, "pigeon")[0] == "False"
    assert "parameter btl" in verdict(result.stdout, "pigeon")[2]
    assert "outside_pigeon" not in result.stdout.partition("imported")[2]


def test_selection_imports_no_pluggy_for_plain_components(outside: Outside, run) -> None:
    outside.component("pigeon", SERVES.format(7))
    assert run("-c", SELECT).stdout.endswith("imported ['outside_pigeon', 'outside_pigeon.component']\n")


def test_a_component_that_breaks_at_import_is_a_verdict(outside: Outside, run) -> None:
    outside.component("pigeon", top='raise RuntimeError("feathers everywhere")')
    result = run("-c", SELECT)
    assert "modules" in result.stdout, result.stderr
    reason = verdict(result.stdout, "pigeon")[2]
    assert "outside-pigeon 1.0" in reason
    assert "RuntimeError: feathers everywhere" in reason


def test_a_component_that_breaks_at_import_is_an_error_when_asked_for_by_name(outside: Outside, run) -> None:
    outside.component("pigeon", top='raise RuntimeError("feathers everywhere")')
    result = run("-c", SELECT, OMPY_MCA_btl="pigeon,self")
    assert "error btl component pigeon, asked for by parameter btl" in result.stdout
    assert "RuntimeError: feathers everywhere" in result.stdout


def test_a_query_that_raises_is_a_verdict(outside: Outside, run) -> None:
    outside.component("pigeon", 'raise OSError("no loft")')
    assert verdict(run("-c", SELECT).stdout, "pigeon")[2] == "its query failed: OSError: no loft"


WRONG_OFFERS = {
    "modules=[object()]": "its offer holds a module of type object, which is no ompy.mca.btl.Btl",
    "modules=[Btl]": "its offer holds a module of type type, which is no ompy.mca.btl.Btl",
    "modules=[Btl()]": "its Btl does not override add_procs, progress",
    "modules=[]": "its offer holds no module: a component that can't serve returns a Refusal, which says why",
    "modules=[Btl()], priority='high'": "the priority of its offer is of type str, no number",
}


@pytest.mark.parametrize("offer", WRONG_OFFERS)
def test_a_component_whose_offer_is_wrong_is_left_out_and_named_once(outside: Outside, run, offer: str) -> None:
    outside.component("pigeon", f"from ompy.mca.btl import Btl; return Offer({offer})")
    assert verdict(run("-c", SELECT).stdout, "pigeon") == ["False", "None", WRONG_OFFERS[offer]]
    program = "from ompy import MPI; MPI.COMM_WORLD.barrier(); print('done')"
    job = run("-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "40", sys.executable, "-c", program)
    assert (job.returncode, job.stdout) == (0, "done\ndone\n"), job.stderr
    assert job.stderr == f"ompy: btl: pigeon is left out: {WRONG_OFFERS[offer]}\n"
    named = run("-c", SELECT, OMPY_MCA_btl="pigeon,self").stdout
    assert f"error btl component pigeon, asked for by parameter btl: {WRONG_OFFERS[offer]}" in named


@pytest.mark.parametrize(("interface", "remedy"), [(0, "rebuild or upgrade outside-pigeon"), (99, "upgrade ompy")])
def test_another_interface_number_is_refused_before_the_component_is_asked(
    outside: Outside, run, interface: int, remedy: str
) -> None:
    outside.component("pigeon", 'print("ASKED"); return Refusal("")', interface=interface)
    output = run("-c", SELECT).stdout
    reason = verdict(output, "pigeon")[2]
    assert "ASKED" not in output
    for words in ("btl component pigeon", "outside-pigeon 1.0", f"for interface {interface} ", "has interface 1", remedy):
        assert words in reason


def test_another_interface_number_is_an_error_when_asked_for_by_name(outside: Outside, run) -> None:
    outside.component("pigeon", interface=99)
    output = run("-c", SELECT, OMPY_MCA_btl="pigeon").stdout
    assert "error btl component pigeon, asked for by parameter btl: btl component pigeon of outside-pigeon 1.0" in output


@pytest.mark.parametrize("listed", ["self,^pigeon", "^self,^pigeon"])
def test_a_list_that_includes_and_excludes_is_an_error(outside: Outside, run, listed: str) -> None:
    outside.component("pigeon")
    output = run("-c", SELECT, OMPY_MCA_btl=listed).stdout
    assert "error parameter btl (environment OMPY_MCA_btl)" in output
    assert "mixes including and excluding" in output


def test_an_unknown_component_in_a_list_is_an_error_with_the_known_ones(outside: Outside, run) -> None:
    outside.component("pigeon")
    output = run("-c", SELECT, OMPY_MCA_btl="^pigoen").stdout
    assert "no btl component is called pigoen; known: " in output
    assert "pigeon, portals, self, sm" in output
    assert "Did you mean pigeon?" in output


def test_when_none_can_serve_the_error_has_every_reason(outside: Outside, run) -> None:
    outside.component("pigeon", 'return Refusal("no pigeon is awake")')
    outside.component("owl", 'return Refusal("it is day")')
    output = run("-c", SELECT, OMPY_MCA_btl="pigeon,owl").stdout
    assert "error no btl component can serve:\n" in output
    assert "\n  pigeon: no pigeon is awake\n" in output
    assert "\n  owl: it is day\n" in output


def test_a_parameter_of_a_component_that_is_not_loaded_is_known(outside: Outside, run) -> None:
    outside.component("pigeon")
    assert "error" not in run("-c", SELECT, OMPY_MCA_btl_pigeon_depth="5", OMPY_MCA_btl="self").stdout


def test_an_unknown_parameter_is_an_error_with_the_nearest(outside: Outside, run) -> None:
    outside.component("pigeon")
    output = run("-c", SELECT, OMPY_MCA_btl_pigeon_dept="5").stdout
    assert "error environment OMPY_MCA_btl_pigeon_dept: no parameter is called btl_pigeon_dept." in output
    assert "Did you mean btl_pigeon_depth?" in output


def test_verbosity_tells_the_choices_as_they_fall(outside: Outside, run) -> None:
    outside.component("pigeon", 'return Refusal("no pigeon is awake")')
    errors = run("-c", SELECT, OMPY_MCA_btl_base_verbose="1").stderr
    assert "[ompy rank ?] btl: pigeon not chosen: no pigeon is awake" in errors
    assert run("-c", SELECT).stderr == ""


def test_a_plugin_without_the_hooks_is_named(outside: Outside, run) -> None:
    outside.install("outside-owl", {"ompy.btl": {"owl": "outside_owl"}}, {"outside_owl": "def ompy_query(context): pass"})
    assert "outside_owl" in verdict(run("-c", SELECT).stdout, "owl")[2]


def test_a_query_that_returns_neither_offer_nor_refusal_is_told_so(outside: Outside, run) -> None:
    outside.component("pigeon", "return 3")
    assert "must return an Offer or a Refusal, not 3" in verdict(run("-c", SELECT).stdout, "pigeon")[2]


def test_a_hook_with_a_misspelt_argument_gets_the_account_of_pluggy(outside: Outside, run) -> None:
    source = """
        from ompy.mca.component import Component, hookimpl
        @hookimpl
        def ompy_component():
            return Component(framework="btl", name="owl", version="1", interface=1, summary="")
        @hookimpl
        def ompy_query(contxt): pass
    """
    outside.install("outside-owl", {"ompy.btl": {"owl": "outside_owl"}}, {"outside_owl": source})
    reason = verdict(run("-c", SELECT).stdout, "owl")[2]
    assert "PluginValidationError" in reason
    assert "contxt" in reason


def test_a_hook_with_options_goes_through_pluggy(outside: Outside, run) -> None:
    top = "import pluggy; hookimpl = pluggy.HookimplMarker('ompy')(tryfirst=True)"
    outside.component("pigeon", 'return Refusal("asked by pluggy")', top=top)
    result = run("-c", SELECT)
    assert verdict(result.stdout, "pigeon")[2] == "asked by pluggy", result.stdout
    assert verdict(result.stdout, "self")[0] == "True"


def test_the_number_that_a_compiled_module_was_built_with_counts(outside: Outside, run) -> None:
    outside.component("pigeon", 'print("ASKED"); return Refusal("")', interface='"outside_pigeon.hot"')
    (outside.folder / "outside_pigeon" / "hot.py").write_text("interface = 7\n")
    output = run("-c", SELECT).stdout
    assert "for interface 7 " in verdict(output, "pigeon")[2]
    assert "ASKED" not in output


@pytest.mark.parametrize(
    "wrong",
    [
        {"top": "raise SystemExit(0)"},
        {"top": "import sys; sys.exit()"},
        {"top": "class Odd(BaseException): pass\nraise Odd"},
        {"query": "raise SystemExit(3)"},
        {"query": "import time\n    while True:\n        try: time.sleep(100)\n        except Exception: pass"},
        {"top": "while True: pass"},
    ],
    ids=["exit at import", "sys.exit at import", "odd exception at import", "exit in query", "endless query", "endless import"],
)
def test_a_component_that_nobody_named_and_that_goes_wrong_is_left_out_and_told_once_a_job(
    outside: Outside, run, wrong: dict[str, str]
) -> None:
    outside.component("pigeon", **wrong)
    job = run("-m", "ompy.cli.ompyrun", "-n", "2", "--mca", "mpi_component_timeout", "5", "--timeout", "50", sys.executable,
              "-c", "from ompy import MPI; c = MPI.COMM_WORLD; c.Dup(); print(c.allreduce(1))")  # fmt: skip
    assert (job.returncode, job.stdout) == (0, "2\n2\n"), job.stderr
    assert job.stderr.count("pigeon is left out: ") == 1


def test_a_process_waits_once_for_a_component_whose_import_does_not_end(outside: Outside, run, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    outside.component("pigeon", top=f"import os\nopen({str(begun)!r}, 'a').write(f'{{os.getpid()}}\\n')\nwhile True: pass")
    done = run("-c", "from ompy import MPI; print(MPI.COMM_WORLD.Dup().size)", OMPY_MCA_mpi_component_timeout="1")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert len(begun.read_text().split()) == 1


def test_a_program_gets_its_alarms_back_after_components_were_asked(run) -> None:
    source = """
import signal, time
heard = []
signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.2)
from ompy import MPI
MPI.COMM_WORLD.Dup()
while not heard: time.sleep(0.01)
print(signal.getitimer(signal.ITIMER_REAL)[0])
"""
    assert run("-c", source).stdout == "0.0\n"
