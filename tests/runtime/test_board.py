"""The job board, and what is said of a job that hangs."""

from __future__ import annotations

import os
import random
import re
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from launching import DEADLINE, OMPYRUN, Launch, launch, mpi, python

from ompy.core.board import OPERATIONS, RECORD_BYTES, Board
from ompy.runtime.local_ranks import BOARD_BYTES_A_RANK, seal
from ompy.runtime.report import cycles, dead_ends, processor_time, report, report_process, stuck, table


def row(rank: int, peer: int, state: str = "waiting", operation: str = "Recv") -> SimpleNamespace:
    return SimpleNamespace(
        rank=rank,
        pid=1,
        state=state,
        operation=operation,
        peer=peer,
        peer_job=0,
        tag=3,
        communicator="c",
        nbytes=8,
        seconds=1.5,
        context=1,
        waits=0,
    )


def test_launcher_makes_boards_of_the_size_that_ranks_expect() -> None:
    assert BOARD_BYTES_A_RANK == RECORD_BYTES


def test_empty_board_shows_ranks_that_have_not_come() -> None:
    descriptor = os.memfd_create("board")
    os.ftruncate(descriptor, 3 * RECORD_BYTES)
    rows = Board(descriptor).rows()
    assert [(row.rank, row.state, row.operation) for row in rows] == [(rank, "absent", "") for rank in range(3)]
    os.close(descriptor)


@pytest.mark.parametrize("size", [0, 1, RECORD_BYTES + 1])
def test_memory_that_is_no_board_is_refused(size: int) -> None:
    descriptor = os.memfd_create("board")
    os.ftruncate(descriptor, size)
    with pytest.raises(ValueError, match="is no job board"):
        Board(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        ([1, 0], [[0, 1]]),
        ([1, 2, 0], [[0, 1, 2]]),
        ([0], [[0]]),
        ([1, 2, 1], [[1, 2]]),
        ([1, 2, -1], []),
        ([1, 0, 3, 2, 0], [[0, 1], [2, 3]]),
        ([-1, -1], []),
    ],
)
def test_cycles_of_waits(peers: list[int], expected: list[list[int]]) -> None:
    assert cycles([row(rank, peer) for rank, peer in enumerate(peers)]) == expected


def test_rank_that_runs_breaks_a_cycle() -> None:
    assert cycles([row(0, 1), row(1, 0, state="running")]) == []


def test_wait_for_a_rank_that_has_finalised_is_a_dead_end() -> None:
    assert dead_ends([row(0, 1), row(1, -1, state="finalized")]) == ["rank 0 waits in Recv for rank 1, which has finalised"]


def test_table_is_aligned() -> None:
    lines = table([row(0, 10), row(1, -1)])
    assert len({line.index("waiting") for line in lines[1:]} | {lines[0].index("state")}) == 1


def table_of(text: str) -> dict[int, list[str]]:
    """Rank -> the cells of its line from the state on, and its process."""
    found = re.findall(
        r"^(?:ompyrun: )?\s*(\d+)\s+(\d+|-)\s+(waiting|running|finalized|absent|broken off)(.*)$", text, re.MULTILINE
    )
    return {int(rank): [state, *rest.split(), process] for rank, process, state, rest in found}


def state_when(settled: Callable[[dict[int, list[str]]], bool], *words: str) -> str:
    """What `--report-state` says of a job once its ranks are where `settled` wants them, or when the time for that is over."""
    with Launch(*words) as job:
        command = [*OMPYRUN, "--report-state", str(job.process.pid)]
        end = time.monotonic() + DEADLINE
        while True:
            said = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
            # At first there is no board.
            if (said.returncode == 0 and settled(table_of(said.stdout))) or time.monotonic() > end:
                return said.stdout
            time.sleep(0.05)


def all_wait(cells: dict[int, list[str]]) -> bool:
    return all(it[0] == "waiting" and it[1] != "Init" for it in cells.values())


def test_two_synchronous_sends_to_each_other_are_named_when_the_time_is_over() -> None:
    source = "import numpy\ncomm.Ssend(numpy.zeros(10), dest=1 - rank, tag=7)"
    job = launch("-n", "2", "--timeout", "6", "--report-state-on-timeout", *mpi(source))
    assert job.process.returncode == 124
    for rank, cells in table_of(job.stderr).items():
        assert cells[:6] == ["waiting", "Ssend", str(1 - rank), "7", "MPI_COMM_WORLD", "80"]
        assert float(cells[6]) > 0.5
    assert "cycle of waits: rank 0 waits for rank 1 in Ssend; rank 1 waits for rank 0 in Ssend" in job.stderr


@pytest.mark.parametrize("transport", ["self,sm", "self,zmq"])
def test_cycle_of_receives_over_three_ranks_in_a_communicator_of_its_own(transport: str) -> None:
    source = "turned = comm.Split(0, key=-rank)\nturned.Set_name('turned')\nturned.recv(source=(turned.rank + 1) % 3, tag=5)"
    # Split waits too, in another communicator.
    words = ("-n", "3", "--mca", "btl", transport, *mpi(source))
    said = state_when(lambda cells: all("turned" in it for it in cells.values()), *words)
    cells = table_of(said)
    assert [cells[rank][1:4] for rank in range(3)] == [["Recv", str((rank - 1) % 3), "5"] for rank in range(3)]
    assert all("turned" in cells[rank] for rank in range(3))
    assert "cycle of waits: rank 0 waits for rank 2" in said


def test_receive_from_anyone_waits_for_anyone() -> None:
    said = state_when(all_wait, "-n", "2", *mpi("comm.recv()"))
    assert [cells[1:4] for cells in table_of(said).values()] == [["Recv", "any", "any"]] * 2
    assert "cycle" not in said


def test_collective_that_one_rank_does_not_join_is_named() -> None:
    source = "comm.Barrier()\nif rank == 0: time.sleep(600)\ncomm.Barrier()"
    said = state_when(lambda cells: (cells[0][0], cells[1][1]) == ("running", "Barrier"), "-n", "2", *mpi(source))
    cells = table_of(said)
    assert cells[1][:3] == ["waiting", "Barrier", "0"]
    assert cells[0][0] == "running"


def test_state_of_a_live_job() -> None:
    said = state_when(all_wait, "-n", "2", *mpi("comm.recv(source=1 - rank, tag=4)"))
    assert [cells[1:4] for cells in table_of(said).values()] == [["Recv", "1", "4"], ["Recv", "0", "4"]]
    assert "cycle of waits" in said


def test_what_a_failure_broke_off_stays_to_be_seen() -> None:
    source = (
        "comm.Set_errhandler(MPI.ERRORS_RETURN)\nif rank: time.sleep(600)\ntry: comm.recv(source=1, tag=4)\n"
        "except MPI.Exception: time.sleep(600)"
    )

    def is_broken_off(cells: dict[int, list[str]]) -> bool:
        if cells[0][0] == "waiting" and cells[0][1] == "Recv" and not killed:
            killed.append(int(cells[1][-1]))
            os.kill(killed[0], signal.SIGKILL)
        return cells[0][0] == "broken off"

    killed: list[int] = []
    said = state_when(is_broken_off, "-n", "2", "--enable-recovery", *mpi(source))
    assert table_of(said)[0][:5] == ["broken off", "Recv", "1", "4", "MPI_COMM_WORLD"]
    assert "rank 0 waits" not in said


def test_state_of_a_process_that_is_no_job() -> None:
    said = subprocess.run([*OMPYRUN, "--report-state", str(os.getpid())], capture_output=True, text=True, timeout=DEADLINE)
    assert said.returncode == 2
    assert "has no job board" in said.stderr


def test_wait_for_a_rank_that_is_leaving_is_named() -> None:
    said = state_when(all_wait, "-n", "2", *mpi("if rank == 0: comm.recv(source=1)"))
    cells = table_of(said)
    assert (cells[0][1:3], cells[1][1:3]) == (["Recv", "1"], ["Finalize", "all"])
    assert "rank 0 waits in Recv for rank 1, which is in Finalize" in said


def test_rank_that_does_not_start_mpi_is_named() -> None:
    source = "import os, time\nif os.environ['PMI_RANK'] == '1': time.sleep(600)\nfrom ompy import MPI"
    cells = table_of(state_when(lambda cells: cells[0][1] == "Init", "-n", "2", *python(source)))
    assert (cells[0][1:3], cells[1][0]) == (["Init", "all"], "absent")


def test_stacks_of_every_rank_on_a_time_out() -> None:
    source = "def stuck(): time.sleep(60)\nstuck()"
    job = launch("-n", "2", "--timeout", "6", "--report-state-on-timeout", "--get-stack-traces", *mpi(source))
    assert len(re.findall(r'File "<string>", line \d+ in stuck', job.stderr)) == 2


def sealed_board(content: bytes) -> int:
    descriptor = os.memfd_create("ompy-board", os.MFD_ALLOW_SEALING)
    os.write(descriptor, content)
    seal(descriptor)
    return descriptor


def test_board_that_is_full_of_nonsense_is_read(rng: random.Random) -> None:
    for _ in range(300):
        descriptor = sealed_board(rng.randbytes(3 * RECORD_BYTES))
        text = report(Board(descriptor))
        assert all(line.isprintable() for line in text.splitlines())
        stuck(Board(descriptor), 0.0)
        os.close(descriptor)


def test_words_on_a_board_do_not_reach_the_terminal_as_commands() -> None:
    record = bytearray(RECORD_BYTES)
    record[8:12] = (2).to_bytes(4, "little")  # waiting
    record[56:120] = b"\x1b[2J\x07" + b"x" * 59
    descriptor = sealed_board(bytes(record))
    (row,) = Board(descriptor).rows()
    assert row.communicator == "\ufffd[2J\ufffd" + "x" * 59
    os.close(descriptor)


def test_ranks_cannot_cut_their_board_off() -> None:
    source = "import os\nfor size in (0, 1 << 20):\n    try: os.ftruncate(int(os.environ['OMPY_BOARD_FD']), size)\n"
    source += "    except PermissionError: print('no')"
    assert launch("-n", "1", *python(source)).stdout == "no\nno\n"


def test_only_a_sealed_board_of_the_processs_own_user_is_shown() -> None:
    descriptor = os.memfd_create("ompy-board", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, RECORD_BYTES)
    with pytest.raises(ValueError, match="not sealed"):
        report_process(os.getpid())
    seal(descriptor)
    assert "absent" in report_process(os.getpid())
    if os.geteuid() == 0:
        os.fchown(descriptor, 12345, -1)
        with pytest.raises(ValueError, match="another user's"):
            report_process(os.getpid())
    os.close(descriptor)


def test_operations_have_distinct_names() -> None:
    assert len(set(OPERATIONS)) == len(OPERATIONS)


def test_job_that_hangs_is_told_without_being_asked() -> None:
    source = "if rank == 1: raise SystemExit(0)\ncomm.recv(source=1)"
    with Launch("-n", "2", *mpi(source)) as job:
        assert job.process.stderr is not None
        first = job.process.stderr.readline().decode()
        assert first == "ompyrun: this job seems to hang:\n"
        assert job.process.stderr.readline().decode() == "ompyrun: rank 0 waits in Recv for rank 1, which is in Finalize\n"
        assert job.process.poll() is None


def waiting_record(pid: int, call: str, peer: int) -> bytes:
    return struct.pack("=IiiiiiQqq", 2, pid, 2, OPERATIONS.index(call), peer, 5, 1, 1 << 30, 1).ljust(RECORD_BYTES, b"\0")


def test_ranks_that_move_a_long_message_are_not_said_to_hang() -> None:
    """Sender and receiver wait for each other until the message is over; who moves it uses a processor."""
    descriptor = sealed_board(waiting_record(os.getpid(), "Send", 1) + waiting_record(os.getpid(), "Recv", 0))
    board = Board(descriptor)
    assert "none of them can go on" in stuck(board, 0.0)[0]
    assert stuck(board, 0.0, working=[1]) == []
    before = sum(os.times()[:2])
    used = processor_time(board, range(2))
    assert before - 0.1 <= used[0] <= used[1] <= sum(os.times()[:2]) + 0.1
    os.close(descriptor)


def test_processor_time_of_processes_that_are_not_there_is_not_told() -> None:
    descriptor = sealed_board(waiting_record(-5, "Send", 1) + waiting_record(1 << 30, "Recv", 0) + bytes(RECORD_BYTES))
    assert processor_time(Board(descriptor), range(3)) == {}
    os.close(descriptor)
