"""`ompy activate`: in one environment `import mpi4py` is ompy, however Python is started, until `ompy deactivate`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ASK = "import mpi4py; print(mpi4py.__path__[0])"
REAL = "__path__[:] = ['the installed one']\n"


class Environment:
    """A virtual environment that has ompy, and an mpi4py."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.scripts = folder / "bin"
        self.python = self.scripts / "python"
        self.site = next(folder.glob("lib/python*/site-packages"))
        # ompy itself, and what it needs, are those of the tests.
        (self.site / "borrowed.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        (self.site / "mpi4py").mkdir()
        (self.site / "mpi4py" / "__init__.py").write_text(REAL)
        (self.scripts / "ompyrun").write_text(f"#!{self.python}\nfrom ompy.cli.ompyrun import main\nraise SystemExit(main())\n")
        (self.scripts / "ompyrun").chmod(0o755)

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OMPY_MPI4PY")}
        return subprocess.run(command, env=clean | environment, capture_output=True, text=True, timeout=60, cwd=self.scripts)

    def ompy(self, *arguments: str) -> str:
        done = self.run(self.python, "-m", "ompy", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def mpi4py(self, *options: str, **environment: str) -> str:
        done = self.run(self.python, *options, "-c", ASK, **environment)
        assert done.stderr == ""
        return "real" if "the installed one" in done.stdout else "ompy" if "compat" in done.stdout else done.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def test_it_is_ompy_from_activation_to_deactivation(environment: Environment) -> None:
    before = {path.name for folder in (environment.site, environment.scripts) for path in folder.iterdir()}
    assert environment.mpi4py() == "real"
    for _ in range(2):
        environment.ompy("activate")
        assert [environment.mpi4py(*options) for options in ((), ("-I",), ("-E",), ("-P",))] == ["ompy"] * 4
    environment.ompy("deactivate")
    assert environment.mpi4py() == "real"
    assert {path.name for folder in (environment.site, environment.scripts) for path in folder.iterdir()} == before
    assert environment.ompy("deactivate") == ""


def test_a_variable_makes_an_exception_for_one_command(environment: Environment) -> None:
    environment.ompy("activate")
    assert [environment.mpi4py(OMPY_MPI4PY=word) for word in ("no", "0", "yes")] == ["real", "real", "ompy"]
    environment.ompy("activate", "--on-request")
    assert environment.mpi4py() == "real"
    assert [environment.mpi4py(OMPY_MPI4PY=word) for word in ("no", "yes", "1")] == ["real", "ompy", "ompy"]


def test_a_program_can_see_who_was_chosen(environment: Environment) -> None:
    environment.ompy("activate")
    ask = "import mpi4py; print(*mpi4py.get_config().values())"
    assert environment.run(environment.python, "-c", ask).stdout.startswith("ompy ")
    for question, answer in (("--mpi-library", "compat/mpi4py/MPI."), ("--mpi-lib-version", "ompy ")):
        assert answer in environment.run(environment.python, "-m", "mpi4py", question).stdout


def test_mpiexec_and_mpirun_start_ranks_on_ompy(environment: Environment) -> None:
    environment.ompy("activate")
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    for name in ("mpiexec", "mpirun"):
        done = environment.run(environment.scripts / name, "-n", "2", environment.python, "-I", "-c", program)
        assert (done.stdout, done.stderr) == ("2\n2\n", "")
        excepted = environment.run(environment.scripts / name, "-n", "2", environment.python, "-c", ASK, OMPY_MPI4PY="no")
        assert excepted.stdout.count("the installed one") == 2


def test_mpiexec_alone_is_enough(environment: Environment, tmp_path: Path) -> None:
    environment.ompy("activate", "--on-request", "--launchers", str(tmp_path / "launchers"))
    assert not (environment.scripts / "mpiexec").exists()
    done = environment.run(tmp_path / "launchers" / "mpiexec", "-n", "2", environment.python, "-c", ASK)
    assert done.stdout.count("compat") == 2
    environment.ompy("deactivate", "--launchers", str(tmp_path / "launchers"))
    assert list((tmp_path / "launchers").iterdir()) == []


def test_another_librarys_mpiexec_stays(environment: Environment) -> None:
    theirs = environment.scripts / "mpiexec"
    theirs.write_text("theirs")
    told = environment.ompy("activate")
    assert f"{theirs} is another library's" in told
    environment.ompy("deactivate")
    assert theirs.read_text() == "theirs"


def test_what_outlives_ompy_does_no_harm(environment: Environment, tmp_path: Path) -> None:
    environment.ompy("activate")
    line = environment.site / "ompy-mpi4py.pth"
    from ompy.compat import folder

    line.write_text(line.read_text().replace(folder(), str(tmp_path / "gone")))
    (environment.scripts / "ompyrun").unlink()
    assert environment.mpi4py() == "real"
    assert shutil.which("mpiexec", path=str(environment.scripts)) is None


def test_a_python_of_another_version_is_left_alone(environment: Environment) -> None:
    environment.ompy("activate")
    line = environment.site / "ompy-mpi4py.pth"
    line.write_text(line.read_text().replace(sys.implementation.cache_tag, "cpython-27"))
    assert environment.mpi4py() == "real"


def test_where_nothing_can_be_written_it_says_what_to_do_instead(environment: Environment) -> None:
    # A folder in the file's place: permissions don't stop root.
    (environment.site / "ompy-mpi4py.pth").mkdir()
    done = environment.run(environment.python, "-m", "ompy", "activate")
    assert done.returncode == 1
    assert "can't be written (Is a directory). For a shell, or one command: PYTHONPATH=" in done.stderr
    assert not (environment.scripts / "mpiexec").exists()
    assert environment.mpi4py(PYTHONPATH=done.stderr.strip().rpartition("PYTHONPATH=")[2]) == "ompy"


def test_what_can_t_be_told_is_done_all_the_same(environment: Environment) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OMPY_MPI4PY")}
    for verb, who, launcher in (("activate", "ompy", True), ("deactivate", "real", False)):
        with open("/dev/full", "w") as nowhere:
            command = (environment.python, "-m", "ompy", verb)
            subprocess.run(command, env=clean, stdout=nowhere, stderr=subprocess.DEVNULL, timeout=60, cwd=environment.scripts)
        assert environment.mpi4py() == who
        assert (environment.scripts / "mpiexec").exists() == launcher
