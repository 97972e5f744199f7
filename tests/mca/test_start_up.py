"""What a rank imports before its program begins: start-up time is a feature."""

from __future__ import annotations

import sys

# Each of these would cost every rank milliseconds; the first row is of other distributions.
HEAVY = {
    *("numpy", "zmq", "click", "rich", "pluggy", "psutil", "pickle"),
    *("inspect", "typing", "re", "enum", "dataclasses", "importlib.metadata", "importlib.util"),
    *("_pickle", "copyreg", "functools", "importlib", "mmap", "types", "warnings"),
    *("subprocess", "signal", "socket", "selectors", "threading", "tempfile", "json", "logging", "pathlib"),
}
PROGRAM = "import sys; from ompy import MPI; print(*sys.modules)"


def test_a_rank_imports_nothing_heavy(run) -> None:
    result = run(
        "-m", "ompy.cli.ompyrun", "-n", "2", sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {PROGRAM}"
    )
    assert result.returncode == 0, result.stderr
    for line in result.stdout.splitlines():
        imported = set(line.split())
        assert "ompy_pml_ob1.module" in imported
        assert not imported & HEAVY


def test_a_rank_imports_no_component_that_does_not_serve(run) -> None:
    imported = set(run("-m", "ompy.cli.ompyrun", "-n", "1", sys.executable, "-c", PROGRAM).stdout.split())
    assert "ompy_btl_zmq.module" not in imported
    assert not any(name.startswith("ompy_hook_") for name in imported)


def test_the_launcher_imports_no_mpi(run) -> None:
    program = (
        "import sys; from ompy.cli.ompyrun import main; sys.argv = ['ompyrun', '-n', '1', 'true']; main(); print(*sys.modules)"
    )
    imported = set(run("-c", program).stdout.split())
    assert "ompy.runtime.launcher" in imported
    assert not {name for name in imported if name.startswith(("ompy.mpi", "ompy.MPI", "ompy_", "click", "pluggy"))}
