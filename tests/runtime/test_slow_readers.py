"""Readers of the launcher's output that stop reading."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from launching import DEADLINE, OMPYRUN, python

FLOOD = "import sys\nfor i in range(4000): print('x' * 1000)\nsys.exit({code})"


def start(code: int) -> tuple[subprocess.Popen[bytes], int]:
    """A job of two ranks that write 4 MB each into a pipe which nobody reads."""
    reader, writer = os.pipe()
    command = [*OMPYRUN, "-n", "2", *python(FLOOD.format(code=code))]
    job = subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(writer)
    return job, reader


def read_all(reader: int) -> bytes:
    data = b""
    while piece := os.read(reader, 1 << 20):
        data += piece
    os.close(reader)
    return data


def test_nothing_is_lost_when_the_reader_comes_back_late() -> None:
    job, reader = start(0)
    time.sleep(1)
    assert read_all(reader).count(b"x" * 1000 + b"\n") == 8000
    assert job.wait(DEADLINE) == 0


def test_job_ends_when_it_is_interrupted_while_nobody_reads() -> None:
    job, reader = start(0)
    time.sleep(0.5)
    job.send_signal(signal.SIGINT)
    assert job.wait(DEADLINE) == 130
    os.close(reader)


def test_job_whose_ranks_have_ended_elsewhere_is_interrupted_while_nobody_reads(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    # More than the launcher takes ahead of its reader, and less than it and the other hosts do.
    rank = f"echo $$ > {tmp_path}/new.$PMI_RANK; mv {tmp_path}/new.$PMI_RANK {tmp_path}/$PMI_RANK; yes | head -c 900000"
    command = [*OMPYRUN, "--mca", "plm", "local", "--host", "a:1,b:1", "sh", "-c", rank]
    job = subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(writer)
    for path in (tmp_path / "0", tmp_path / "1"):
        while not path.exists() or os.path.exists(f"/proc/{path.read_text().strip()}"):
            assert job.poll() is None
            time.sleep(0.01)
    job.send_signal(signal.SIGINT)
    try:
        assert job.wait(DEADLINE) == 130
    finally:
        job.kill()
        os.close(reader)


def test_regular_file_as_output(tmp_path: object) -> None:
    path = f"{tmp_path}/out"
    with open(path, "wb") as stream:
        command = [*OMPYRUN, "-n", "2", sys.executable, "-c", FLOOD.format(code=0)]
        assert subprocess.run(command, stdout=stream, timeout=DEADLINE).returncode == 0
    assert os.path.getsize(path) == 2 * 4000 * 1001
