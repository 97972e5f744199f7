"""Extension modules and libraries that were made for a C library of MPI are refused in words, wherever they come in."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from launching import launch, python

EXTENSION = """
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "sample"};

/* What Cython's cimport, and import_mpi4py() of mpi4py.h, do at a module's start. */
static int look_up(void) {
    PyObject *module = PyImport_ImportModule("mpi4py.MPI"), *found = NULL;
    if (module) { found = PyObject_GetAttrString(module, WANTED); Py_DECREF(module); }
    Py_XDECREF(found);
    return found ? 0 : -1;
}
PyMODINIT_FUNC PyInit_sample(void) { return look_up() ? NULL : PyModule_Create(&definition); }
"""


def compile_library(source: str, target: Path, *options: str) -> None:
    include = sysconfig.get_path("include")
    command = ["cc", "-shared", "-fPIC", f"-I{include}", *options, "-x", "c", "-", "-o", str(target)]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("wanted", ["Comm", "Status", "__pyx_capi__"])
def test_an_extension_module_of_another_library_is_refused_at_its_import(tmp_path: Path, wanted: str) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    compile_library(EXTENSION, tmp_path / f"sample{suffix}", f'-DWANTED="{wanted}"')
    program = "try:\n    import sample\nexcept ImportError as error:\n    print(error)"
    job = launch("-n", "1", "--mpi4py", *python(program), environment={"PYTHONPATH": str(tmp_path)})
    assert f"mpi4py.MPI.{wanted} of an mpi4py over a C library of MPI; here mpi4py is ompy" in job.stdout
    assert job.stderr == ""


def test_every_way_of_importing_yields_the_module_or_what_stands_for_it() -> None:
    source = (
        "import importlib, pickle, sys\nimport mpi4py.MPI\nimport mpi4py.MPI as second\nfrom mpi4py import MPI\n"
        "from mpi4py.MPI import COMM_WORLD\nimport ompy.MPI\n"
        "assert mpi4py.MPI is second is MPI is ompy.MPI and COMM_WORLD is MPI.COMM_WORLD\n"
        "gate = importlib.import_module('mpi4py.MPI')\nassert gate is sys.modules['mpi4py.MPI']\n"
        "assert gate.Comm is MPI.Comm and gate.__name__ == MPI.__name__ and dir(gate) == dir(MPI) and vars(gate) is vars(MPI)\n"
        "gate.new = 1\nassert MPI.new == 1\ndel gate.new\nassert not hasattr(MPI, 'new')\n"
        "assert pickle.loads(pickle.dumps(MPI.INT)) is MPI.INT"
    )
    assert launch("-n", "1", "--mpi4py", *python(source)).stderr == ""


@pytest.mark.parametrize("ask", ["handle", "toint()", "py2f()"])
def test_no_handle_goes_to_another_library_of_the_process(tmp_path: Path, ask: str) -> None:
    compile_library("int MPI_Nothing;", tmp_path / "libmpi.so.40", "-Wl,-soname,libmpi.so.40")
    source = (
        f"import ctypes\nfrom mpi4py import MPI\nbefore = MPI.COMM_WORLD.{ask}\nassert before == MPI.COMM_WORLD.{ask}\n"
        f"ctypes.CDLL({str(tmp_path / 'libmpi.so.40')!r})\n"
        f"for question in (lambda: MPI.COMM_WORLD.{ask}, lambda: MPI._handleof(MPI.INT), lambda: MPI._addressof(MPI.SUM)):\n"
        "    try:\n        question()\n    except NotImplementedError as error:\n        print(error)\n"
        "assert MPI.COMM_WORLD == MPI.COMM_WORLD and MPI.COMM_WORLD.allreduce(1) == 2"
    )
    job = launch("-n", "2", "--mpi4py", *python(source))
    assert job.stdout.count("a handle of ompy means nothing to libmpi.so.40") == 6
    assert job.stderr == ""


def test_the_process_of_the_tests_has_no_other_library() -> None:
    assert "libmpi" not in sys.modules
    with pytest.raises(OSError, match=r"libmpi|dlopen"):
        ctypes.CDLL("libmpi.so.40", mode=4)  # RTLD_NOLOAD: where the system has it, an error without its name
