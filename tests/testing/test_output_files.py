"""Files that a command writes at its end: what would stop them is said before anything is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFORMANCE = ("conformance", "--mca", "btl", "self", "-n", "1", "-k", "delivery", "--junit")
TUNE = ("tune", "-n", "2", "--only", "bcast", "--bytes", "8")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("bench", "btl", "sm", "--plot"), "picture.png"),
        (CONFORMANCE, "results.xml"),
        ((*TUNE, "-o"), "rules.toml"),
        ((*TUNE, "--times"), "times.json"),
        ((*TUNE, "-o", "/dev/null", "--picture"), "rules-{n}.png"),
    ],
    ids=["bench", "junit", "tune", "times", "picture"],
)
def test_a_file_that_can_t_be_written_is_refused_at_once(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    for path, reason in ((tmp_path / "nowhere" / name, "there is no folder"), (tmp_path, "")):
        told = subprocess.run(
            [sys.executable, "-m", "ompy", *command, str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert told.returncode == 2, told.stdout + told.stderr
        assert "Traceback" not in told.stderr
        words = " ".join(told.stderr.replace("│", " ").split())
        assert (reason or ("is a folder" if "--plot" not in command else "a name that ends with")) in words
