"""Parameters: who sets them, to what, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ompy.mca.errors import ParameterError
from ompy.mca.params import COMMAND_LINE, PREFIX, TUNE, Parameter, Registry, command_line, read_file

DEPTH = Parameter("depth", int, 3, help="how deep")


def registry(home: Path, **environment: str) -> Registry:
    return Registry({"HOME": str(home), **environment})


def user_file(home: Path, text: str) -> Path:
    path = home / ".ompy" / "mca-params.conf"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_parameter_that_nobody_sets_has_its_default(tmp_path: Path) -> None:
    entry = registry(tmp_path).register("btl", "pigeon", DEPTH)
    assert (entry.full_name, entry.value, entry.source) == ("btl_pigeon_depth", 3, "default")


def test_each_source_is_stronger_than_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = tmp_path / "prefix"
    (prefix / "etc").mkdir(parents=True)
    monkeypatch.setattr("sys.prefix", str(prefix))
    environment: dict[str, str] = {}

    def found() -> tuple[int, str]:
        entry = registry(tmp_path, **environment).register("btl", "pigeon", DEPTH)
        return entry.value, entry.source

    system = prefix / "etc" / "ompy-mca-params.conf"
    system.write_text("# the whole site\n\nbtl_pigeon_depth = 10   # deep\n")
    assert found() == (10, f"{system}:3")
    user = user_file(tmp_path, "btl_pigeon_depth=11\n")
    assert found() == (11, f"{user}:1")
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("btl_pigeon_depth = 12\n")
    second.write_text("\ufeff# nothing here\n", encoding="utf-8")  # as some editors begin a file
    environment[TUNE] = f"{first},{second}"
    assert found() == (12, f"{first}:1")
    second.write_text("\nbtl_pigeon_depth = 13\n")
    assert found() == (13, f"{second}:2")
    environment[PREFIX + "btl_pigeon_depth"] = "14"
    assert found() == (14, "environment OMPY_MCA_btl_pigeon_depth")
    environment |= command_line([("btl_pigeon_depth", "15")])
    assert found() == (15, "--mca btl_pigeon_depth")


def test_run_time_is_the_strongest_source(tmp_path: Path) -> None:
    ours = registry(tmp_path, **command_line([("btl_pigeon_depth", "15")]))
    ours.register("btl", "pigeon", DEPTH)
    ours.set("btl_pigeon_depth", 16)
    assert (ours.value("btl_pigeon_depth"), ours.lookup("btl_pigeon_depth").source) == (16, "run time")


def test_only_names_given_with_mca_are_called_so(tmp_path: Path) -> None:
    environment = {PREFIX + "btl_pigeon_depth": "4", COMMAND_LINE: "btl_pigeon_depths"}
    ours = registry(tmp_path, **environment)
    assert ours.register("btl", "pigeon", DEPTH).source.startswith("environment")


def test_a_variable_without_a_name_is_none_of_the_command_lines(tmp_path: Path) -> None:
    assert registry(tmp_path, **{PREFIX: "4"}).read()[""].source == f"environment {PREFIX}"


@pytest.mark.parametrize(
    ("type", "unit", "text", "value"),
    [
        (int, "", "17", 17),
        (int, "", "0x10", 16),
        (int, "", "-1", -1),
        (int, "bytes", "64k", 65536),
        (int, "bytes", "2M", 2 << 20),
        (int, "bytes", "1g", 1 << 30),
        (float, "s", "0.25", 0.25),
        (float, "bytes", "1.5k", 1536.0),
        (bool, "", "yes", True),
        (bool, "", "OFF", False),
        (str, "", " two words ", "two words"),
        (str, "", "", ""),
    ],
)
def test_text_becomes_a_value_of_the_type(type: type, unit: str, text: str, value: object) -> None:
    assert Parameter("x", type, value, unit=unit, help="").parse(text) == value


@pytest.mark.parametrize(
    ("parameter", "text", "expected"),
    [
        (DEPTH, "deep", "an integer"),
        (DEPTH, "", "an integer"),
        (DEPTH, "12k", "an integer"),
        (Parameter("depth", int, 3, unit="bytes", help=""), "12q", "of bytes, with or without a suffix k, m, g or t"),
        (Parameter("depth", bool, True, help=""), "maybe", "a truth value"),
        (Parameter("depth", str, "a", choices=("auto", "memfd"), help=""), "memfdd", "one of auto, memfd. Did you mean memfd?"),
        (Parameter("depth", int, 1, choices=(0, 1, 2), help=""), "3", "one of 0, 1, 2"),
    ],
)
def test_a_bad_value_is_an_error_that_names_parameter_source_and_what_is_expected(
    tmp_path: Path, parameter: Parameter, text: str, expected: str
) -> None:
    path = user_file(tmp_path, f"btl_pigeon_depth = {text}\n")
    with pytest.raises(ParameterError) as caught:
        registry(tmp_path).register("btl", "pigeon", parameter)
    assert f"btl_pigeon_depth ({path}:1)" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert expected in str(caught.value)


def test_a_bad_value_at_run_time_leaves_the_old_one(tmp_path: Path) -> None:
    ours = registry(tmp_path)
    ours.register("btl", "pigeon", DEPTH)
    with pytest.raises(ParameterError, match="run time"):
        ours.set("btl_pigeon_depth", "much")
    assert ours.value("btl_pigeon_depth") == 3


def test_an_unknown_name_is_an_error_with_the_nearest_known_one(tmp_path: Path) -> None:
    ours = registry(tmp_path)
    ours.register("btl", "pigeon", DEPTH)
    with pytest.raises(ParameterError, match=r"btl_pigeon_dept.*Did you mean btl_pigeon_depth"):
        ours.value("btl_pigeon_dept")


@pytest.mark.parametrize("line", ["btl self,sm", "= 3", "btl pigeon = 3", "-depth = 3"])
def test_a_line_that_is_no_setting_is_an_error_with_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "some.conf"
    path.write_text(f"# fine\n{line}\n")
    with pytest.raises(ParameterError, match=f"{path}:2"):
        read_file(str(path))


def test_a_tune_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"nowhere\.conf: no such file"):
        registry(tmp_path, **{TUNE: str(tmp_path / "nowhere.conf")}).read()


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    user_file(tmp_path, "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match="can't be read"):
        registry(tmp_path).read()


@pytest.mark.parametrize(
    ("parameter", "good", "bad", "expected"),
    [
        (Parameter("depth", int, 3, help="", range=(1, 64), unit="fathoms"), ["1", "64"], ["0", "65", "-1", "9" * 30, "1e2"],
         "an integer of fathoms from 1 to 64"),
        (Parameter("depth", int, 0, help="", range=(4096, 1 << 30), also=(0,), unit="bytes"), ["0", "4k", "1g"],
         ["1", "4095", "1t", "2g", "-4k"], "an integer of bytes from 4k to 1g or 0, with or without a suffix k, m, g or t"),
        (Parameter("depth", float, 0.5, help="", range=(0, 1)), ["0", "1", "1e-9"],
         ["nan", "inf", "-inf", "-0.1", "1.1", "1e400"], "a number from 0 to 1"),
        (Parameter("depth", float, -1.0, help="", range=(0, 10), also=(-1,), unit="us"), ["-1", "0"], ["-2", "-0.5"],
         "a number of us from 0 to 10 or -1"),
    ],
)  # fmt: skip
def test_a_number_out_of_its_range_is_an_error_that_tells_range_and_unit(
    tmp_path: Path, parameter: Parameter, good: list[str], bad: list[str], expected: str
) -> None:
    for text in good:
        parameter.parse(text)
    for text in bad:
        with pytest.raises(ParameterError) as caught:
            registry(tmp_path, OMPY_MCA_btl_pigeon_depth=text).register("btl", "pigeon", parameter)
        assert str(caught.value).endswith(f"{text!r} is not {expected}.")


def test_every_number_that_can_be_set_has_its_range_and_its_default_in_it() -> None:
    from ompy.mca import discovery, loading
    from ompy.mca.frameworks import declare
    from ompy.mca.params import registry as all_of_them

    declare()
    for framework, found in discovery.installed().items():
        for component in found.values() if framework != "command" else ():
            loading.load(component)
    numbers = [it for it in all_of_them.entries.values() if it.parameter.type in (int, float) and it.parameter.choices is None]
    assert len(numbers) > 50
    for entry in numbers:
        parameter = entry.parameter
        assert parameter.range is not None, entry.full_name
        low, high = parameter.range
        assert low <= parameter.default <= high or parameter.default in parameter.also, entry.full_name
        assert not any(low <= value <= high for value in parameter.also), entry.full_name


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).write_bytes(bytes(2 << 20))])
def test_a_parameter_file_that_can_not_be_one_is_an_error_at_once(tmp_path: Path, make: Callable[[str], object]) -> None:
    path = tmp_path / "settings"
    make(str(path))
    with pytest.raises(ParameterError, match=f"parameter file {path}"):
        registry(tmp_path, OMPY_TUNE=str(path)).read()
