"""`ompy trace` draws each message: how it went, when it was matched, who waited, and an arrow from its send to its receive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

OMPYRUN = (sys.executable, "-m", "ompy.cli.ompyrun")
TRACE = (sys.executable, "-m", "ompy", "trace")
PROGRAM = """
from ompy import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.Send(bytearray(8), 1, 1)
    comm.Send(bytearray(8), 1, 2)                 # stands behind tag 3 in the program of rank 1: kept there
    comm.Send(bytearray(8), 1, 3)
    comm.Isend(bytearray(500), 1, 4).Wait()
    comm.Send(bytearray(3_000_000), 1, 5)
    comm.Ssend(bytearray(10), 1, 6)
else:
    comm.Recv(bytearray(8), 0, 1)
    comm.Recv(bytearray(8), MPI.ANY_SOURCE, 3)
    comm.Recv(bytearray(8), 0, 2)
    comm.Recv(bytearray(500), 0, 4)
    comm.Recv(bytearray(3_000_000), 0, 5)
    message = comm.Mprobe(0, 6)
    message.Recv(bytearray(10))
"""
FLOOD = """
from ompy import MPI
comm = MPI.COMM_WORLD
for number in range(100):
    comm.Sendrecv(bytearray(8), 1 - comm.rank, 1, bytearray(8), 1 - comm.rank, 1)
"""
KILLED = """
import os, signal
from ompy import MPI
comm = MPI.COMM_WORLD
never = comm.Irecv(bytearray(8), 1, 2)
comm.Sendrecv(bytearray(8), 1 - comm.rank, 1, bytearray(8), 1 - comm.rank, 1)
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
never.Wait()
"""


class Drawing:
    """A trace as Perfetto reads it."""

    def __init__(self, path: Path) -> None:
        self.events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]

    def of(self, phase: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["ph"] == phase]

    def slices(self, rank: int, family: str) -> dict[int, dict[str, Any]]:
        """The slices of a family by tag, those of the library's own messages left out."""
        return {
            it["args"]["tag"]: it for it in self.of("X") if it["pid"] == rank and it["cat"] == family and it["args"]["tag"] >= 0
        }

    def arrows(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        ends = {event["id"]: event for event in self.of("f")}
        return [(event, ends[event["id"]]) for event in self.of("s")]

    def slice_at(self, arrow: dict[str, Any]) -> dict[str, Any]:
        """What an end of an arrow is bound to."""
        [found] = [
            it
            for it in self.of("X")
            if (it["pid"], it["tid"]) == (arrow["pid"], arrow["tid"]) and it["ts"] <= arrow["ts"] <= it["ts"] + it["dur"]
        ]
        return found

    def marks(self, it: dict[str, Any]) -> list[str]:
        return [
            mark["name"]
            for mark in self.of("i")
            if (mark["pid"], mark["tid"]) == (it["pid"], it["tid"]) and it["ts"] <= mark["ts"] <= it["ts"] + it["dur"]
        ]


def trace(folder: Path, program: str, *options: str, mca: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ompy", "trace", "-o", "run.json", *options, "--"]
    command += [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "60", *mca, sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Drawing:
    folder = tmp_path_factory.mktemp("trace")
    done = trace(folder, PROGRAM, mca=("--mca", "btl_sm_single_copy", "none"))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["run.json"]
    return Drawing(folder / "run.json")


def test_each_message_is_drawn_on_both_sides_with_an_arrow_between(drawing: Drawing) -> None:
    sizes = {1: 8, 2: 8, 3: 8, 4: 500, 5: 3_000_000, 6: 10}
    for rank, family in ((0, "send"), (1, "receive")):
        assert {tag: it["args"]["bytes"] for tag, it in drawing.slices(rank, family).items()} == sizes
    joined = set()
    for start, end in drawing.arrows():
        send, receive = drawing.slice_at(start), drawing.slice_at(end)
        assert (send["cat"], receive["cat"]) == ("send", "receive")
        assert send["args"]["tag"] == receive["args"]["tag"]
        joined.add(send["args"]["tag"])
    assert joined >= set(sizes)


def test_protocols_and_fragments_are_marked(drawing: Drawing) -> None:
    sends = drawing.slices(0, "send")
    assert [sends[tag]["args"]["protocol"] for tag in (1, 4, 5, 6)] == ["eager", "eager", "rendezvous", "rendezvous"]
    sent = [int(words.split()[0]) for words in drawing.marks(sends[5]) if words.endswith("sent")]
    received = [int(words.split()[0]) for words in drawing.marks(drawing.slices(1, "receive")[5]) if "received" in words]
    assert len(sent) > 10
    assert sum(sent) == sum(received)
    assert 0 < 3_000_000 - sum(sent) < 100_000  # what went with the announcement


def test_what_came_before_its_receive_is_drawn_as_kept(drawing: Drawing) -> None:
    kept = drawing.slices(1, "unexpected")
    assert 2 in kept
    assert "matched" in drawing.marks(drawing.slices(1, "receive")[2])


def test_waits_name_what_they_wait_for(drawing: Drawing) -> None:
    assert {it["name"] for it in drawing.of("X") if it["cat"] == "wait"} & {"Recv", "Send", "Ssend"}


def test_slices_of_one_line_do_not_overlap(drawing: Drawing) -> None:
    lines = defaultdict(list)
    for it in drawing.of("X"):
        lines[it["pid"], it["tid"]].append((it["ts"], it["ts"] + it["dur"]))
    assert len(lines) >= 5
    for spans in lines.values():
        spans.sort()
        for (_, end), (begin, _) in pairwise(spans):
            assert begin >= end - 0.0011  # a slice is drawn a nanosecond long at least


SPAWNS = """
import sys
from ompy import MPI
comm, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
comm.Sendrecv(bytearray(8), 1 - comm.rank, 1, bytearray(8), 1 - comm.rank, 1)
if not parent:
    children = comm.Spawn(sys.executable, ["-c", sys.argv[1], sys.argv[1]], 2)
    children.Send(bytearray(9), comm.rank, 2)
    children.Disconnect()
else:
    parent.Recv(bytearray(9), comm.rank, 2)
    parent.Disconnect()
"""


@pytest.mark.parametrize("by_parameter", [False, True])
def test_spawned_processes_are_drawn_beside_those_that_have_spawned_them(tmp_path: Path, by_parameter: bool) -> None:
    program = (*OMPYRUN, "-n", "2", "--timeout", "60", "--oversubscribe")
    if by_parameter:
        program += ("--mca", "trace_output", "run.json")
    else:
        program = (*TRACE, "-o", "run.json", "--", *program)
    done = subprocess.run(
        [*program, sys.executable, "-c", SPAWNS, SPAWNS], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    drawing = Drawing(tmp_path / "run.json")
    names = {event["pid"]: event["args"]["name"] for event in drawing.of("M") if event["name"] == "process_name"}
    assert [name.split()[1] for _, name in sorted(names.items())][:2] == ["0", "1"]
    pairs = {(start["pid"], end["pid"]) for start, end in drawing.arrows() if drawing.slice_at(start)["args"]["tag"] == 1}
    assert {(0, 1), (1, 0)} <= pairs
    if not by_parameter:  # who parted earlier may end later
        assert sorted(names) == [0, 1, 2, 3]
        assert all(" of " in names[number] for number in (2, 3))
        assert {(2, 3), (3, 2)} <= pairs
        between = [(start["pid"], end["pid"]) for start, end in drawing.arrows() if drawing.slice_at(start)["args"]["tag"] == 2]
        assert sorted(between) == [(0, 2), (1, 3)]


def test_memory_that_is_read_is_marked(tmp_path: Path) -> None:
    done = trace(tmp_path, PROGRAM, mca=("--mca", "btl", "self,sm", "--mca", "btl_sm_single_copy", "cma"))
    if done.returncode and "cma" in done.stderr:
        pytest.skip("one process may not read another's memory here")
    assert done.returncode == 0, done.stderr
    drawing = Drawing(tmp_path / "run.json")
    assert drawing.slices(0, "send")[5]["args"]["protocol"] == "read"


def test_a_ring_that_is_too_small_keeps_the_latest_and_says_so(tmp_path: Path) -> None:
    assert trace(tmp_path, FLOOD, "--events", "100").returncode == 0
    drawing = Drawing(tmp_path / "run.json")
    names = [event["args"]["name"] for event in drawing.of("M") if event["name"] == "process_name"]
    assert all("events lost: raise trace_events" in name for name in names)
    assert drawing.arrows()
    for rank in (0, 1):
        assert sum(event["pid"] == rank for event in drawing.of("X")) <= 128


def test_a_rank_that_is_killed_is_drawn_up_to_its_end(tmp_path: Path) -> None:
    done = trace(tmp_path, KILLED)
    assert done.returncode == 137
    drawing = Drawing(tmp_path / "run.json")
    assert 1 in drawing.slices(1, "send")
    told = drawing.slices(0, "receive")[2]["args"]
    assert told.get("complete") is False or told["error class"]  # ended by the launcher, or told by the transport first


def test_nothing_is_recorded_unless_asked_for(tmp_path: Path) -> None:
    program = "from ompy import MPI; from ompy.core.trace import is_recording; assert not is_recording()"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert not list(tmp_path.iterdir())


def test_a_command_that_is_no_job_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ompy", "trace", "-o", "run.json", "--", sys.executable, "-c", "raise SystemExit(7)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 7
    assert "nothing was recorded" in done.stderr


def test_a_number_of_events_that_is_no_power_of_two_is_refused(tmp_path: Path) -> None:
    mca = ("--mca", "trace_output", "x.json", "--mca", "trace_events", "1000")
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "1", *mca, sys.executable, "-c", "from ompy import MPI"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "trace_events must be a power of two, not 1000" in done.stderr


def test_files_that_others_have_put_there_are_neither_written_to_nor_read(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    output = tmp_path / "run.json"
    for name in ("run.json", "run.json.0.ring", "run.json.7.ring"):
        (tmp_path / name).symlink_to(precious)
    command = [
        "-n",
        "2",
        "--mca",
        "trace_output",
        str(output),
        sys.executable,
        "-c",
        "from ompy import MPI; MPI.COMM_WORLD.Barrier()",
    ]
    subprocess.run([sys.executable, "-m", "ompy.cli.ompyrun", *command], check=True, timeout=60)
    assert precious.read_text() == "mine"
    assert not output.is_symlink()
    assert json.loads(output.read_text())["traceEvents"]
    assert output.stat().st_mode & 0o077 == 0


SAVES = """
import os, signal, sys
from ompy import MPI
def save(number, frame):
    open(f"saved.{MPI.COMM_WORLD.rank}", "w").close()
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, save)
MPI.COMM_WORLD.Barrier()
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_told_to_end_has_its_time_and_is_drawn(tmp_path: Path, number: signal.Signals) -> None:
    words = [*TRACE, "-o", "run.json", "--", *OMPYRUN, "-n", "2", sys.executable, "-c", SAVES]
    job = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True)
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
    if number == signal.SIGINT:
        os.killpg(job.pid, number)  # as the terminal does
    else:
        job.send_signal(number)
    assert job.wait(60) == 128 + number
    assert {path.name for path in tmp_path.iterdir()} >= {"saved.0", "saved.1", "run.json"}
    assert not list(tmp_path.glob("*.ring"))


def test_a_job_that_ends_is_noticed_where_children_are_not_told_of(tmp_path: Path) -> None:
    source = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", source, *TRACE, "-o", "run.json", "--", *OMPYRUN, "-n", "2", sys.executable, "-c", FLOOD]
    assert subprocess.run(words, cwd=tmp_path, timeout=60, check=False).returncode == 0
    assert (tmp_path / "run.json").exists()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [Path.mkdir, make_pipe], ids=["a folder", "a pipe"])
@pytest.mark.parametrize("by_parameter", [True, False])
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path: Path, make: Callable[[Path], None], by_parameter: bool) -> None:
    place = tmp_path / "place"
    make(place)
    before = place.stat()
    program = [sys.executable, "-c", "from ompy import MPI"]
    command = [*OMPYRUN, "-n", "2", "--mca", "trace_output", str(place), *program]
    words = command if by_parameter else [*TRACE, "-o", str(place), "--", *OMPYRUN, "-n", "2", *program]
    job = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert job.returncode != 0
    assert f"{place} is " in job.stderr or f"'{place}' is " in job.stderr
    assert (place.stat().st_ino, place.stat().st_mode) == (before.st_ino, before.st_mode)
    assert [it.name for it in tmp_path.iterdir()] == ["place"]


def test_a_command_that_can_not_run_leaves_the_trace_before_it(tmp_path: Path) -> None:
    earlier = tmp_path / "run.json"
    earlier.write_text("precious")
    job = subprocess.run([*TRACE, "-o", str(earlier), "--", "no-such-program"], capture_output=True, timeout=60, check=False)
    assert job.returncode != 0
    assert earlier.read_text() == "precious"
