"""The pytest marker that runs a test's body on several ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = """
import os
import pytest

RANK = int(os.environ.get("PMI_RANK", "-1"))

@pytest.fixture
def word():
    return "fixture of the parent"

@pytest.mark.ompy(2, 3)
@pytest.mark.parametrize("value", ["a", {"b": 1}])
def test_cases(value, tmp_path, word):
    assert RANK >= 0
    assert value in ("a", {"b": 1}) and word == "fixture of the parent"
    (tmp_path / str(RANK)).write_text("here")

@pytest.mark.ompy(2)
def test_seed(ompy_seed, ompy_rng, tmp_path):
    print("seed is", ompy_seed, ompy_rng.random())

@pytest.mark.ompy(3)
def test_one_fails():
    print("words of rank", RANK)
    expected = 0
    assert RANK % 2 == expected

@pytest.mark.ompy(2, timeout=1)
def test_hangs():
    import time
    time.sleep(60)

@pytest.mark.ompy(2)
def test_dies():
    if RANK == 1:
        os.kill(os.getpid(), 9)

@pytest.mark.ompy(2)
def test_is_skipped():
    pytest.skip("not today")

@pytest.mark.skipif(True, reason="never")
@pytest.mark.ompy(2)
def test_never(): pass

@pytest.mark.ompy(2)
@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert RANK == 0

@pytest.mark.ompy(2, mca={"btl": "self,sm"})
def test_parameters():
    assert os.environ["OMPY_MCA_btl"] == "self,sm"

class TestMethods:
    @pytest.mark.ompy(2)
    def test_method(self, tmp_path):
        assert isinstance(self, TestMethods)

@pytest.mark.ompy(2)
def test_raises_works():
    with pytest.raises(ZeroDivisionError):
        1 / 0

@pytest.fixture
def lock():
    import threading
    return threading.Lock()

@pytest.mark.ompy(2)
def test_cannot_be_handed_over(lock): pass

def test_ordinary():
    assert RANK == -1
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints for the sample."""
    folder: Path = tmp_path_factory.mktemp("sample")
    (folder / "test_sample.py").write_text(SAMPLE)
    return pytest_in(folder, "-rA", "--ompy-seed", "7")


def pytest_in(folder: Path, *options: str) -> str:
    """What pytest prints of the tests in a folder."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, env=environment).stdout


def outcome(report: str, name: str) -> str:
    found = re.search(rf"^(PASSED|FAILED|SKIPPED|XFAIL|ERROR)\b.*{re.escape(name)}", report, re.MULTILINE)
    return found.group(1) if found else "not run"


def section(report: str, name: str) -> str:
    """The report of one failure."""
    found = re.search(rf"^_+ {re.escape(name)} _+$(.*?)^(?:_+ \S+ _+|=+ .*)$", report, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


@pytest.mark.parametrize(
    "name",
    [
        "test_cases[n2-a]", "test_cases[n3-a]", "test_cases[n2-value1]", "test_cases[n3-value1]", "test_parameters[n2]",
        "TestMethods::test_method[n2]", "test_raises_works[n2]", "test_ordinary",
    ],
)  # fmt: skip
def test_case_passes(report: str, name: str) -> None:
    assert outcome(report, name) == "PASSED"


def test_output_of_all_ranks_is_kept(report: str) -> None:
    assert len(set(re.findall(r"\[1,[01]\]<stdout>: seed is 7 ([\d.]+)", report))) == 1
    assert len(re.findall(r"<stdout>: seed is 7", report)) == 2


def test_failure_has_ranks_traceback_and_values(report: str) -> None:
    text = section(report, "test_one_fails[n3]")
    assert "--- rank 1:" in text
    assert "assert RANK % 2 == expected" in text
    assert "expected = 0" in text
    assert "words of rank 1" in text


def test_hanging_ranks_are_ended_and_shown(report: str) -> None:
    text = section(report, "test_hangs[n2]")
    assert "ranks 0, 1: ended before the body was over" in text
    assert "time is over after 1 s" in text
    assert "process  state" in text


def test_dead_rank_is_named(report: str) -> None:
    text = section(report, "test_dies[n2]")
    # Rank 0 too, where it is slow and the launcher ends it.
    assert re.search(r"rank(s 0,)? 1: ended before the body was over", text)
    assert re.search(r"rank 1 \(.*\) killed by SIGKILL", text)


def test_skips_and_expected_failures_are_respected(report: str) -> None:
    assert "not today" in report
    assert "2 skipped" in report
    assert outcome(report, "test_expected_to_fail[n2]") == "XFAIL"


def test_fixture_that_does_not_pickle_is_named(report: str) -> None:
    assert "fixture 'lock' can't be handed to ranks" in report


def test_numbers_of_failures_are_exact(report: str) -> None:
    assert re.search(r"4 failed, 9 passed, 2 skipped, 1 xfailed", report), report[-600:]


@pytest.mark.ompy(1, 2, 3)
def test_communicator_is_the_world(comm, ompy_ranks) -> None:  # type: ignore[no-untyped-def]
    assert comm.Get_size() == ompy_ranks
    assert comm.allreduce(comm.Get_rank()) == sum(range(ompy_ranks))


STRANGER = """
import pytest

def pytest_configure(config):
    config.addinivalue_line("markers", "mpi(min_size, ranks): of another plugin")

def pytest_addoption(parser):
    parser.addoption("--seed")
    parser.addoption("--with-mpi", action="store_true")

@pytest.fixture
def comm():
    return "a stranger's"

@pytest.fixture(params=[2, 3])
def mpi_ranks(request):
    return request.param

@pytest.fixture
def seed():
    return "a stranger's"
"""
STRANGERS_TESTS = """
import pytest

@pytest.mark.mpi(min_size=2)
def test_marked(comm, seed): assert comm == seed == "a stranger's"

@pytest.mark.mpi(ranks=[2, 3])
def test_counted(mpi_ranks): assert mpi_ranks in (2, 3)

@pytest.mark.ompy(2)
def test_ours(comm): assert comm.size == 2
"""


def test_names_of_other_plugins_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(STRANGER)
    (tmp_path / "test_strangers.py").write_text(STRANGERS_TESTS)
    assert "4 passed" in pytest_in(tmp_path, "--seed=7", "--with-mpi", "--strict-markers")


def test_every_name_of_the_plugin_is_ompys(tmp_path: Path) -> None:
    told = pytest_in(tmp_path, "--fixtures")
    section = told.partition("fixtures defined from ompy.testing.plugin")[2].partition("-- fixtures defined")[0]
    names = re.findall(r"^(\w+)(?: \[|$| --)", section, re.MULTILINE)
    assert set(names) == {"ompy_seed", "ompy_rng", "ompy_conformance"}
    assert "ompy" not in pytest_in(tmp_path, "-q", "--collect-only")


def test_ranks_that_share_a_basetemp_have_a_folder_each(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(
        "def test_it(tmp_path):\n    print('folder', tmp_path.parent)\n    assert not [*tmp_path.iterdir()]\n"
    )
    base = tmp_path / "base" / "of this run"
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "3", "--oversubscribe"]
    command += [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", f"--basetemp={base}", str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert told.count("1 passed") == 3
    assert sorted(re.findall("folder (.*)", told)) == [f"{base}/rank{rank}" for rank in range(3)]
    alone = pytest_in(tmp_path, "-s", f"--basetemp={base}")
    assert f"folder {base}\n" in alone


def of_tests(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_sample.py").write_text(f"import pytest, unittest\n{source}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options, "test_sample.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_coroutine_that_ranks_would_not_run_fails(tmp_path: Path) -> None:
    result = of_tests(tmp_path, "@pytest.mark.ompy(2)\nasync def test(): pass\n")
    assert "1 failed" in result.stdout
    assert "ranks run functions only" in result.stdout


def test_a_method_of_a_unittest_fails_rather_than_run_on_one_rank(tmp_path: Path) -> None:
    source = "class Test(unittest.TestCase):\n    @pytest.mark.ompy(2)\n    def test(self): pass\n"
    result = of_tests(tmp_path, source)
    assert "1 error" in result.stdout
    assert "no unittest.TestCase" in result.stdout


def test_a_parameter_s_value_that_is_marked_fails_with_what_can_be(tmp_path: Path) -> None:
    marks = "marks=pytest.mark.ompy(2)"
    result = of_tests(tmp_path, f"@pytest.mark.parametrize('x', [pytest.param(1, {marks})])\ndef test(x): pass\n")
    assert "1 error" in result.stdout
    assert "ompy() marks functions" in result.stdout


def test_what_ranks_can_not_import_skips(tmp_path: Path) -> None:
    result = of_tests(tmp_path, "@pytest.mark.ompy(2)\ndef test(): pytest.importorskip('no_such_module')\n")
    assert "1 skipped" in result.stdout, result.stdout
    assert "could not import 'no_such_module'" in result.stdout


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("True", "numbers of ranks"),
        ("0", "numbers of ranks"),
        ("2, nosuch=1", "no option 'nosuch'; known: mca, timeout, options"),
        ("2, mca='btl self'", "a dict of parameters"),
        ("2, timeout='long'", "takes seconds"),
    ],
)
def test_a_marker_that_is_wrong_is_said_at_collection(tmp_path: Path, marker: str, words: str) -> None:
    result = of_tests(tmp_path, f"@pytest.mark.ompy({marker})\ndef test(): pass\n")
    assert result.returncode == pytest.ExitCode.INTERRUPTED
    assert words in result.stdout


@pytest.mark.parametrize("factor", ["-1", "0", "nan", "inf"])
def test_a_factor_of_timeouts_is_a_number_above_0(tmp_path: Path, factor: str) -> None:
    result = of_tests(tmp_path, "", "--ompy-timeout-factor", factor)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--ompy-timeout-factor: a number above 0" in result.stderr


SET_UP = """
from ompy import MPI

done = []
def setup_module(module): done.append(module.__name__)
def setup_function(function): done.append(function.__name__)
def teardown_function(): assert done[2:] in ([], ["in the test"])  # there where pytest is, on the ranks

@pytest.mark.ompy(2)
def test_function():
    assert done == ["test_sample", "test_function"]
    done.append("in the test")

class Base:
    @pytest.mark.ompy(2)
    def test_inherited(self):
        assert self.made == MPI.COMM_WORLD.allreduce(1) * self.factor
        assert self.before == "test_inherited"

class TestAround:
    class TestWithin:
        @classmethod
        def setup_class(cls): cls.made = 5
        @pytest.mark.ompy(2)
        def test_within(self): assert self.made == 5

class TestTwice(Base):
    factor = 2
    def setup_class(cls): cls.made = MPI.COMM_WORLD.size * 2
    def setup_method(self, method): self.before = method.__name__
    def teardown_method(self): assert self.before != "over"

    @pytest.mark.ompy(2)
    def test_fails_in_the_end(self): self.before = "over" if MPI.COMM_WORLD.rank == 1 else ""
"""


def test_each_rank_has_the_set_up_of_modules_functions_classes_and_methods(tmp_path: Path) -> None:
    result = of_tests(tmp_path, SET_UP)
    told = sorted(re.findall(r"^(PASSED|FAILED|ERROR) test_sample.py::(\S+)", result.stdout, re.MULTILINE))
    assert told == [
        ("FAILED", "TestTwice::test_fails_in_the_end[n2]"),
        ("PASSED", "TestAround::TestWithin::test_within[n2]"),
        ("PASSED", "TestTwice::test_inherited[n2]"),
        ("PASSED", "test_function[n2]"),
    ], result.stdout
    assert "rank 1" in result.stdout
