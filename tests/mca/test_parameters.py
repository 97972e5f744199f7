"""Parameters: who sets them, to what, and what is refused."""

from __future__ import annotations

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
    second.write_text("# nothing here\n")
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
    assert registry(tmp_path, **environment).register("btl", "pigeon", DEPTH).source.startswith("environment")


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
