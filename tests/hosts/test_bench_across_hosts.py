"""`tools/bench --hosts`: what it measures between hosts, and that nothing is left of them however it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from machines import reason_against

pytestmark = pytest.mark.long

BENCH = Path(__file__).parents[2] / "tools" / "bench"
LONGEST = 120
# Tells the first processes of the hosts and of what is between them, and waits for its end.
HOLDER = f"""
import sys, time
sys.path[:0] = [{str(BENCH)!r}, {str(Path(__file__).parent)!r}]
from hosts import two_hosts
with two_hosts() as machines:
    print(*(it.pid for it in machines.machines), machines.switch_pid, flush=True)
    time.sleep({LONGEST})
"""


@pytest.fixture(autouse=True)
def can_have_hosts() -> None:
    if reason := reason_against():
        pytest.skip(reason)
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("each host needs a processor")


def test_a_quick_run_compares_with_bare_sockets(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    rows = [word for row in ("latency:8@2", "window:1024:64@2", "allreduce:8@4") for word in ("--rows", row)]
    command = [sys.executable, str(BENCH), "--hosts", "--rounds", "1", "--only", "ompy tcp", "--only", "bare sockets", *rows]
    command += ["--json", str(figures), "--markdown", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert {name: set(libraries) for name, libraries in found.items()} == {
        "latency:8@2": {"ompy tcp", "bare sockets"},
        "window:1024:64@2": {"ompy tcp", "bare sockets"},
        "allreduce:8@4": {"ompy tcp"},
    }
    assert all(rounds[0]["median"] > 0 for libraries in found.values() for rounds in libraries.values())
    assert "to bare sockets" in page.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=str)
def test_nothing_is_left_of_the_hosts_however_it_ends(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as holder:
        assert holder.stdout is not None
        watched = [os.pidfd_open(int(word)) for word in holder.stdout.readline().split()]
        assert len(watched) == 3
        holder.send_signal(number)
        for descriptor in watched:
            # Readable at its end.
            assert select.select([descriptor], [], [], LONGEST / 2)[0]
            os.close(descriptor)
        holder.wait(LONGEST / 2)
    assert holder.returncode


def test_where_hosts_can_not_be_made_it_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH), "--hosts", "--only", "ompy tcp", "--rows", "latency:8@2"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no hosts on this machine: there is no " in done.stderr
