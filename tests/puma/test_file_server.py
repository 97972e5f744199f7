"""The parallel file server of docs/examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(__file__).resolve().parents[2] / "docs" / "examples" / "parallel_file_server.py")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(report: str, clients: int, servers: int, size: int, stripe: int) -> None:
    assert report.count(f"{size} bytes written and read back") == clients
    stripes = [tuple(map(int, found)) for found in re.findall(r"(\d+) stripes pulled, (\d+) pushed", report)]
    assert len(stripes) == servers
    expected = clients * -(-size // stripe)
    assert [sum(column) for column in zip(*stripes, strict=True)] == [expected, expected]
    assert sum(map(int, re.findall(r"(\d+) bytes on disk", report))) == clients * size
    assert report.count(f"{stripe} bytes of buffer") == servers


@pytest.mark.parametrize(
    ("servers", "clients", "size", "stripe"), [(3, 2, 100_001, 8192), (1, 3, 5, 4096), (4, 1, 300_000, 100_000)]
)
def test_what_clients_write_they_read_and_servers_hold_one_stripe(servers, clients, size, stripe):
    options = ["--servers", servers, "--clients", clients, "--size", size, "--stripe", stripe]
    check(run(sys.executable, PROGRAM, *map(str, options)), clients, servers, size, stripe)


@pytest.mark.parametrize("transports", ["self,sm", "self,zmq"])
def test_it_serves_in_a_job(transports):
    launcher = [str(Path(sys.executable).with_name("ompyrun")), "-n", "4", "--timeout", "60", "--mca", "btl", transports]
    report = run(*launcher, sys.executable, PROGRAM, "--job", "--servers", "2", "--size", "100001")
    check(report, 2, 2, 100_001, 8192)
