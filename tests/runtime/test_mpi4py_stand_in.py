"""`ompyrun --mpi4py`: programs that import mpi4py receive ompy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import DEADLINE, launch, python

# Stands for the mpi4py distribution: what the real one has beside its compiled module.
INSTALLED = {
    "__init__.py": "raise AssertionError('the installed package itself is not run')",
    "MPI.py": "raise AssertionError('the installed MPI is not used')",
    "util/__init__.py": "",
    "util/tool.py": "from .. import MPI\n\ndef ranks():\n    return MPI.COMM_WORLD.Get_size()",
    "include/mpi4py/mpi4py.h": "",
    "run.py": "def main():\n    print('installed run')",
    "__main__.py": "from .run import main\nmain()",
}


@pytest.fixture
def installed(tmp_path: Path) -> str:
    for name, text in INSTALLED.items():
        path = tmp_path / "mpi4py" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(tmp_path)


def test_mpi_is_the_same_module_under_both_names() -> None:
    source = "from mpi4py import MPI\nimport mpi4py.MPI, ompy.MPI\nassert mpi4py.MPI is MPI is ompy.MPI\n"
    source += "print(MPI.COMM_WORLD.allreduce(1))"
    job = launch("-n", "2", "--mpi4py", *python(source))
    assert (job.process.returncode, job.stdout, job.stderr) == (0, "2\n2\n", "")


def test_module_is_a_shared_library_that_says_which_mpi_it_is() -> None:
    source = (
        "import ctypes\nfrom mpi4py import MPI\nlibrary = ctypes.CDLL(MPI.__file__)\n"
        "first, second, words = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(MPI.MAX_LIBRARY_VERSION_STRING)\n"
        "for function, expected in (library.MPI_Get_version, MPI.Get_version()), (library.MPI_Abi_get_version, (-1, -1)):\n"
        "    assert function(ctypes.byref(first), ctypes.byref(second)) == 0\n"
        "    assert (first.value, second.value) == expected\n"
        "assert library.MPI_Get_library_version(words, ctypes.byref(first)) == 0\n"
        "assert words.value.decode() == MPI.Get_library_version() and first.value == len(words.value)"
    )
    job = launch("-n", "1", "--mpi4py", *python(source))
    assert (job.process.returncode, job.stderr) == (0, "")


def test_importing_the_package_starts_nothing() -> None:
    source = "import mpi4py, sys\nassert mpi4py.__version__.startswith('4.1') and 'ompy.MPI' not in sys.modules"
    assert launch("-n", "1", "--mpi4py", *python(source)).process.returncode == 0


def test_options_are_taken_before_the_import() -> None:
    source = (
        "import mpi4py\nmpi4py.rc.initialize = False\nmpi4py.rc(finalize=False)\nfrom mpi4py import MPI\n"
        "assert not MPI.Is_initialized()\nMPI.Init()\nassert MPI.COMM_WORLD.Get_size() == 2\n"
        "MPI.Finalize()\nassert MPI.Is_finalized()"
    )
    assert launch("-n", "2", "--mpi4py", *python(source)).process.returncode == 0


def test_options_come_from_the_environment() -> None:
    source = "import mpi4py.rc\nfrom mpi4py import MPI\nassert not MPI.Is_initialized()"
    assert launch("-n", "1", "--mpi4py", "-x", "MPI4PY_RC_INITIALIZE=0", *python(source)).process.returncode == 0


def test_option_that_does_not_exist_is_an_error() -> None:
    source = "import mpi4py\ntry:\n    mpi4py.rc.thread = 1\nexcept TypeError:\n    print('refused')"
    assert launch("-n", "1", "--mpi4py", *python(source)).stdout == "refused\n"


def test_pure_python_parts_of_the_installed_mpi4py_run_on_ompy(installed: str) -> None:
    source = "from mpi4py.util import tool\nimport mpi4py\nprint(tool.ranks(), mpi4py.get_include(), mpi4py.__file__)"
    job = launch("-n", "2", "--mpi4py", *python(source), environment={"PYTHONPATH": installed})
    assert job.stdout == f"2 {installed}/mpi4py/include {installed}/mpi4py/__init__.py\n" * 2


def test_installed_runner_goes_first(installed: str) -> None:
    job = launch("-n", "1", "--mpi4py", sys.executable, "-m", "mpi4py", environment={"PYTHONPATH": installed})
    assert job.stdout == "installed run\n"


def test_without_the_flag_the_installed_mpi4py_is_untouched(installed: str) -> None:
    job = launch("-n", "1", *python("import mpi4py"), environment={"PYTHONPATH": installed})
    assert "the installed package itself is not run" in job.stderr


def test_without_the_flag_there_is_no_stand_in() -> None:
    code = "import importlib.util\nprint(importlib.util.find_spec('mpi4py'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE).stdout
    assert "compat" not in found


@pytest.mark.parametrize("way", ["file", "module", "command"])
def test_runner_where_no_mpi4py_is_installed(way: str, tmp_path: Path) -> None:
    program = "import sys\nfrom mpi4py import MPI\nprint(__name__, MPI.COMM_WORLD.Get_size(), sys.argv[1:])"
    (tmp_path / "sample.py").write_text(program)
    words = {"file": [str(tmp_path / "sample.py")], "module": ["-m", "sample"], "command": ["-c", program]}[way]
    job = launch("-n", "2", "--mpi4py", sys.executable, "-m", "mpi4py", *words, "a", environment={"PYTHONPATH": str(tmp_path)})
    assert job.stdout == "__main__ 2 ['a']\n" * 2


def test_headers_are_not_promised_without_mpi4py() -> None:
    job = launch(
        "-n", "1", "--mpi4py", *python("import mpi4py\nassert 'mpicc' not in mpi4py.get_config()\nmpi4py.get_include()")
    )
    assert "no mpi4py distribution is installed" in job.stderr


@pytest.mark.parametrize("part", ["futures", "util", "util.dtlib", "bench", "typing"])
def test_parts_that_only_mpi4py_has_say_how_to_get_them(part: str) -> None:
    source = f"try: import mpi4py.{part}\nexcept ModuleNotFoundError as error: print(error)"
    told = launch("-n", "1", "--mpi4py", *python(source)).stdout
    assert f"mpi4py.{part.split('.')[0]} is a part of the mpi4py distribution, which is not installed here: `pip" in told


def test_a_part_that_only_mpi4py_has_is_named_where_it_is_run() -> None:
    told = launch("-n", "1", "--mpi4py", sys.executable, "-m", "mpi4py.bench", "helloworld").stderr
    assert "mpi4py.bench is a part of the mpi4py distribution" in told


@pytest.mark.parametrize(
    ("words", "reason"), [(["--wrong"], "--wrong is no option"), (["-m"], "-m expects"), (["-c"], "-c expects")]
)
def test_runner_says_what_it_takes_where_it_is_called_wrongly(words: list[str], reason: str) -> None:
    job = launch("-n", "1", "--mpi4py", sys.executable, "-m", "mpi4py", *words)
    assert job.process.returncode == 2
    assert reason in job.stderr
    assert "python -m mpi4py -m MODULE" in job.stderr
    assert "Traceback" not in job.stderr


def test_a_program_whose_mpi4py_has_no_library_is_told_of_the_flag_once() -> None:
    source = "raise RuntimeError('cannot load MPI library\\nlibmpi.so: no such file')"
    in_pieces = (
        "import os\nfor piece in (b'RuntimeError', b': ', b'cannot load', b' MPI library'): os.write(2, piece)\nos._exit(1)"
    )
    for program in (source, in_pieces):
        job = launch("-n", "3", *python(program))
        assert job.stderr.count("with --mpi4py it receives ompy") == 1
    assert "with --mpi4py" not in launch("-n", "2", *python("raise RuntimeError('of another kind')")).stderr


def test_a_program_that_finds_no_mpi4py_is_told_of_the_flag_once() -> None:
    job = launch("-n", "3", sys.executable, "-I", "-S", "-c", "import mpi4py")
    assert job.stderr.count("mpi4py, which is not installed here: with --mpi4py it receives ompy") == 1
    assert "--mpi4py" not in launch("-n", "2", sys.executable, "-S", "-c", "import mpi5py").stderr


@pytest.mark.parametrize("options", ["-I", "-E"])
def test_a_program_that_does_not_look_where_the_flag_puts_ompy_is_told_so(options: str) -> None:
    job = launch("-n", "2", "--mpi4py", sys.executable, options, "-S", "-c", "import mpi4py")
    assert job.stderr.count("`ompy activate` does without") == 1
    assert "it receives ompy" not in job.stderr


def test_values_without_a_meaning_are_warned_of_and_the_defaults_count() -> None:
    source = (
        "import warnings\nfrom mpi4py import rc\nnames = [name for name in dir(rc) if name[0] != '_']\n"
        "for name in names: setattr(rc, name, -123456789)\n"
        "with warnings.catch_warnings(record=True) as seen: from mpi4py import MPI\n"
        "assert {str(it.message) for it in seen} == {f'mpi4py.rc.{name}: unexpected value -123456789' for name in names}\n"
        "assert MPI.Is_initialized() and MPI.Query_thread() == MPI.THREAD_MULTIPLE and len(names) == 8"
    )
    assert launch("-n", "1", "--mpi4py", *python(source)).stderr == ""


def test_values_from_the_environment_are_checked_as_well() -> None:
    source = "from mpi4py import MPI"
    job = launch("-n", "1", "--mpi4py", "-x", "MPI4PY_RC_ERRORS=often", "-x", "MPI4PY_RC_THREADS=perhaps", *python(source))
    assert "mpi4py.rc.errors: unexpected value 'often'" in job.stderr
    assert "mpi4py.rc.threads: unexpected value 'perhaps'" in job.stderr
    assert job.process.returncode == 0


def test_profilers_are_loaded_or_refused() -> None:
    source = (
        "import mpi4py, warnings\n"
        "for name, path in (('@nothing', None), ('nothing', '/usr/lib')):\n"
        "    try:\n        mpi4py.profile(name, path=path)\n    except ValueError as error:\n        print(error)\n"
        "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
        "    mpi4py.profile('hosts', path=['/etc'])\nprint(len(seen))"
    )
    job = launch("-n", "1", "--mpi4py", *python(source))
    assert job.stdout == "profiler '@nothing' not found\nprofiler 'nothing' not found\n1\n"


def test_exception_in_a_program_written_for_mpi4py_ends_the_job() -> None:
    source = "from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1:\n    raise ValueError('boom')\nMPI.COMM_WORLD.recv()"
    job = launch("-n", "2", "--mpi4py", *python(source))
    assert job.process.returncode == 1
    assert "aborted the job (MPI_Abort, code 1): <string>:3: ValueError: boom" in job.stderr


def test_folder_of_the_stand_in_holds_nothing_else() -> None:
    from ompy.compat import folder

    assert {name for name in os.listdir(folder()) if not name.startswith("__")} == {"mpi4py"}


def test_a_python_without_ompy_is_named() -> None:
    from ompy.compat import folder

    # Without site-packages nothing is installed for it.
    command = [sys.executable, "-S", "-c", "from mpi4py import MPI"]
    result = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": folder()}, cwd="/")
    assert f"{sys.executable} has no ompy: install it there" in result.stderr
