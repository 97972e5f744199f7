"""The programs of docs/examples: they find the right result, say so, and fail when it is wrong."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
PROGRAMS = {
    "trapezoid.py": [],
    "pi.py": ["--intervals", "200000"],
    "matrix_product.py": [],
    "jacobi.py": ["--size", "200", "--steps", "30"],
    "mandelbrot.py": ["mandelbrot.npy", "--width", "90", "--height", "70"],
    "checkpoint.py": ["plate.npy", "--size", "50", "--steps", "30"],
}


def run(
    program: Path, *options: str, ranks: int, transports: str = "self,sm", folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    launcher = [str(Path(sys.executable).with_name("ompyrun")), "-n", str(ranks), "--timeout", "60", "--mca", "btl", transports]
    command = [*launcher, "--mpi4py", sys.executable, str(program), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("ranks", "transports"), [(1, "self,sm"), (5, "self,sm"), (4, "self,zmq")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_checks_its_result(name: str, ranks: int, transports: str, tmp_path: Path) -> None:
    result = run(EXAMPLES / name, *PROGRAMS[name], ranks=ranks, transports=transports, folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("correct") == 1
    assert f"{ranks} ranks" in result.stdout
    assert not result.stderr


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("trapezoid.py", "/ 2\n", "/ 3\n"),
        ("pi.py", "(places + 0.5)", "places"),
        ("matrix_product.py", "my_c = my_a @ b", "my_c = my_a @ b + comm.rank"),
        ("jacobi.py", "comm.Sendrecv(old[-2], below, 1, old[0], above, 1)", "pass"),
        ("mandelbrot.py", "own = escapes(rows", "own = comm.rank + escapes(rows"),
        ("checkpoint.py", "u[1:-1, 2:]) / 4", "u[1:-1, 2:]) / 4.01"),
    ],
)
def test_a_wrong_result_is_noticed(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    source = (EXAMPLES / name).read_text()
    assert source.count(right) == 1
    broken = tmp_path / name
    broken.write_text(source.replace(right, wrong))
    result = run(broken, *PROGRAMS[name], ranks=2, folder=tmp_path)
    assert "WRONG" in result.stdout
    assert result.returncode == 1


def test_jacobi_saves_a_picture(tmp_path: Path) -> None:
    result = run(EXAMPLES / "jacobi.py", "--size", "100", "--steps", "5", "--picture", "plate.png", ranks=3, folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    data = (tmp_path / "plate.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (100, 98)  # the inner rows, all columns
    length = struct.unpack(">I", data[33:37])[0]
    assert len(zlib.decompress(data[41 : 41 + length])) == height * (1 + 3 * width)


def test_a_plate_goes_on_where_another_number_of_ranks_has_saved_it(tmp_path: Path) -> None:
    begin = 1
    for ranks in (4, 3, 1):
        result = run(EXAMPLES / "checkpoint.py", *PROGRAMS["checkpoint.py"], ranks=ranks, folder=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert f"steps {begin} to {begin + 29}" in result.stdout
        begin += 30


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("trapezoid.py", ["--trapezoids", "0"]),
        ("pi.py", ["--intervals", "-1"]),
        ("jacobi.py", ["--size", "2"]),
        ("jacobi.py", ["--size", "4", "--steps", "1"]),
    ],
)
def test_senseless_sizes_end_every_rank(name: str, options: list[str]) -> None:
    result = run(EXAMPLES / name, *options, ranks=3)
    assert result.returncode == 2
    assert "--size" in result.stderr or "expected" in result.stderr
