"""`ompy_info`: what is installed, what can be set, and who set it."""

from __future__ import annotations

import pytest
from outside import Outside

from ompy.mca.frameworks import FRAMEWORKS


def test_the_summary_names_every_component_with_version_and_distribution(outside: Outside, info) -> None:
    outside.component("pigeon")
    result = info()
    assert result.returncode == 0, result.stderr
    assert "ompy version: " in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("  ")]
    assert ["btl", "pigeon", "2.5", "1", "outside-pigeon", "1.0", "from", "outside"] in rows
    assert {row[0] for row in rows} >= {"rte", "btl", "bml", "pml", "coll", "hook"}


def test_a_component_that_can_not_be_used_says_why(outside: Outside, info) -> None:
    outside.component("pigeon", top='raise RuntimeError("feathers everywhere")')
    outside.component("owl", interface=99)
    lines = info().stdout.splitlines()
    assert any("pigeon" in line and "can't be used: RuntimeError: feathers everywhere" in line for line in lines)
    assert any("owl" in line and "built for interface 99" in line for line in lines)


@pytest.mark.parametrize(
    ("top", "why"),
    [
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("class Odd(BaseException): pass\nraise Odd('feathers')", "Odd: feathers"),
        ("while True: pass", "it has not returned after 2 s"),
        (
            "raise ImportError('ompy.core.proc does not export expected C variable outlast')",
            "was compiled against another ompy, ompy.core.proc does not export expected C variable outlast: build it again",
        ),
        (
            "raise ValueError('ompy.core.proc.Proc size changed, may indicate binary incompatibility')",
            "was compiled against another ompy, ompy.core.proc.Proc size changed",
        ),
    ],
)
def test_a_component_that_goes_wrong_at_its_import_is_shown_as_that_and_the_others_too(
    outside: Outside, info, top: str, why: str
) -> None:
    outside.component("pigeon", top=top)
    outside.component("owl")
    told = info("--mca", "mpi_component_timeout", "2")
    assert told.returncode == 0, told.stderr
    [line] = [line for line in told.stdout.splitlines() if line.startswith("  btl") and " pigeon " in line]
    assert why in line
    assert any(" owl " in line and "can't be used" not in line for line in told.stdout.splitlines())


def test_every_component_of_the_tree_can_be_used(info) -> None:
    told = info()
    assert "can't be used" not in told.stdout


def test_parameters_up_to_a_level(outside: Outside, info) -> None:
    outside.component("pigeon")
    assert "btl_pigeon_depth" not in info("--param", "btl", "pigeon").stdout
    shown = info("--param", "btl", "pigeon", "--level", "2").stdout
    assert "btl_pigeon_depth" in shown
    assert "btl_base_verbose" not in shown
    everything = info("--param", "btl", "all", "--level", "9").stdout
    for name in ("btl_pigeon_depth", "btl_base_verbose", "btl_sm_eager_limit"):
        assert name in everything


def test_parsable_lines_are_stable(outside: Outside, info) -> None:
    outside.component("pigeon")
    assert info("--parsable", "--param", "btl", "pigeon", "-l", "9", OMPY_MCA_btl_pigeon_depth="8").stdout == (
        'mca:btl:pigeon:version:"component:2.5"\n'
        'mca:btl:pigeon:version:"interface:1"\n'
        'mca:btl:pigeon:distribution:"outside-pigeon 1.0"\n'
        'mca:btl:pigeon:summary:"from outside"\n'
        'mca:btl:pigeon:param:btl_pigeon_depth:value:"8"\n'
        "mca:btl:pigeon:param:btl_pigeon_depth:source:environment OMPY_MCA_btl_pigeon_depth\n"
        'mca:btl:pigeon:param:btl_pigeon_depth:default:"3"\n'
        "mca:btl:pigeon:param:btl_pigeon_depth:level:2\n"
        "mca:btl:pigeon:param:btl_pigeon_depth:type:int\n"
        "mca:btl:pigeon:param:btl_pigeon_depth:unit:\n"
        "mca:btl:pigeon:param:btl_pigeon_depth:choices:\n"
        'mca:btl:pigeon:param:btl_pigeon_depth:help:"how deep"\n'
    )


def test_all_lists_every_framework_and_parameter(info) -> None:
    result = info("--all", "--parsable")
    assert result.returncode == 0, result.stderr
    for framework in FRAMEWORKS:
        assert f"mca:{framework}:base:param:{framework}:value:" in result.stdout
    assert "mca:mpi:base:param:mpi_param_check:value:" in result.stdout
    assert "\nompy:version:" in "\n" + result.stdout


def test_effective_shows_only_what_somebody_set_and_who(outside: Outside, info, tmp_path) -> None:
    outside.component("pigeon")
    settings = tmp_path / ".ompy" / "mca-params.conf"
    settings.parent.mkdir()
    settings.write_text("# mine\nbtl_sm_eager_limit = 8k\n")
    result = info("--effective", "--parsable", "--mca", "btl_pigeon_depth", "4")
    assert {line for line in result.stdout.splitlines() if ":value:" in line} == {
        'mca:btl:sm:param:btl_sm_eager_limit:value:"8192"',
        'mca:btl:pigeon:param:btl_pigeon_depth:value:"4"',
    }
    assert f"mca:btl:sm:param:btl_sm_eager_limit:source:{settings}:2" in result.stdout
    assert "mca:btl:pigeon:param:btl_pigeon_depth:source:--mca btl_pigeon_depth" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--param", "btll", "all"], "Did you mean btl?"),
        (["--param", "btl", "pigoen"], "Did you mean pigeon?"),
        (["--mca", "btl_pigeon_dept", "3"], "--mca btl_pigeon_dept: no parameter is called btl_pigeon_dept."),
        (["--mca", "btl_pigeon_dept", "3"], "Did you mean btl_pigeon_depth?"),
        (["--mca", "btl_pigeon_depth", "much"], "btl_pigeon_depth (--mca btl_pigeon_depth): 'much' is not an integer"),
        (["--level", "10"], "1<=x<=9"),
        (["--parm"], "--param"),
    ],
)
def test_a_wrong_argument_is_status_2_and_a_hint(outside: Outside, info, arguments: list[str], words: str) -> None:
    outside.component("pigeon")
    result = info(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_version(info) -> None:
    assert info("--version").stdout.startswith("ompy ")
