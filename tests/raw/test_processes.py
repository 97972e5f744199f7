"""A job's ranks as the programs of one chip: the same cycles whatever the host does, and nobody waits for the dead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from ompy_raw.trace import load

PRELUDE = """
import os, signal, sys, time
from ompy.mca import selection
from ompy.mca.component import Context
from ompy_raw.component import COMPONENT
from ompy_raw.job import join, leave

rte = selection.select("rte")[0]
context = Context(COMPONENT, rte)
tile = join(context)
rank, size = rte.rank, rte.size


def end():
    leave(tile, context)
    rte.commit_and_fence()
    rte.finalize()
"""
ALL_TO_ALL = """
got = []
tile.on_interrupt(lambda tile: got.extend(tile.receive_available(31)))
tile.enable()
for other in range(1, size):
    if (rank + {spread}) % 3 == 0:
        time.sleep(0.002)                        # the host's time, not the chip's
    tile.send((rank + other) % size, [rank] * 10)
    tile.advance(50 * rank)
while len(got) < 10 * (size - 1):
    tile.wait()
assert sorted(got) == sorted(other for other in range(size) for _ in range(10) if other != rank)
print(rank, tile.clock, tile.interrupts)
end()
"""


def job(program, ranks, *options, **parameters):
    given = [word for name, value in parameters.items() for word in ("--mca", f"machine_raw_{name}", str(value))]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(ranks), *given, *options]
    source = PRELUDE + textwrap.dedent(program)
    return subprocess.run([*command, sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)


def test_the_same_programs_take_the_same_cycles_however_the_host_schedules_them():
    runs = [job(ALL_TO_ALL.format(spread=spread), 6) for spread in range(3)]
    assert [run.returncode for run in runs] == [0, 0, 0], runs[0].stderr
    clocks = [sorted(run.stdout.splitlines()) for run in runs]
    assert len(clocks[0]) == 6
    assert clocks[0] == clocks[1] == clocks[2]


def test_a_deadlock_ends_every_rank_with_the_diagnosis_and_leaves_a_record(tmp_path):
    trace = tmp_path / "dead.json"
    run = job("tile.send(1 - rank, range(9)); tile.receive(9); end()", 2, trace=trace)
    assert run.returncode != 0
    assert "tile 0 at (0, 0) is stalled writing, 9 of 10 words written; full buffers: output ($CGNO) 4/4" in run.stderr
    found = load(str(trace))
    assert "tile 1 at (1, 0) is stalled writing" in found["deadlock"]
    assert [wait[0] for wait in found["waits"]] == [0, 1]


def test_with_the_watchdog_the_same_program_completes():
    run = job(
        "tile.send(1 - rank, range(9)); assert tile.receive(9) == list(range(9)); print(tile.clock); end()", 2, watchdog=300
    )
    assert run.returncode == 0, run.stderr
    assert all(int(clock) > 300 for clock in run.stdout.split())


def test_a_rank_that_dies_does_not_keep_the_others_waiting():
    begun = time.monotonic()
    run = job(
        """
        from ompy_raw.errors import TileDied
        signal.signal(signal.SIGTERM, signal.SIG_IGN)   # the launcher's way of ending the others
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            tile.receive(1)
        except TileDied as error:
            print(error, flush=True)
        """,
        3,
    )
    assert time.monotonic() - begun < 50
    assert "rank 1" in run.stderr
    for line in run.stdout.splitlines():  # of those that were not ended before they could say so
        assert re.search(r"the program of tile 1 \(process \d+\) ended in cycle \d+ without leaving the chip", line)


def test_a_rank_that_has_left_holds_nobody_up():
    run = job(
        """
        if rank == 2:
            end()
            sys.exit()
        if rank == 0:
            tile.advance(100000)
            tile.send(2, [1] * 31)                       # thrown away
            tile.send(1, [7])
        else:
            assert tile.receive(1) == [7]
        end()
        """.replace(
            "end()\n            sys.exit()", "leave(tile, context); rte.commit_and_fence(); rte.finalize(); sys.exit()"
        ),
        3,
    )
    assert run.returncode == 0, run.stderr


def test_with_a_limit_to_its_patience_the_chip_goes_on_without_a_rank_that_computes(tmp_path):
    """Rank 1 computes until rank 0, which waits for the chip, has gone on: by the rules of a patient chip for ever."""
    program = f"""
        mark = {str(tmp_path / "mark")!r}
        if rank == 0:
            tile.wait(1000)
            open(mark, "w").close()
        else:
            while not os.path.exists(mark):
                time.sleep(0.001)
            tile.send(0, [1])
            assert tile.clock >= 1000            # in the chip's present
        if rank == 0:
            assert tile.receive(1) == [1]
        end()
        """
    run = job(program, 2, patience=20)
    assert run.returncode == 0, run.stderr


def test_ranks_that_want_different_chips_are_told():
    run = job("end()", 33)
    assert "33 ranks do not fit the Raw chip of 4 x 4 tiles" in run.stderr
    assert "--mca machine_raw_width 6" in run.stderr
    run = job("end()", 2, width=40)
    assert "parameter machine_raw_width" in run.stderr
    assert "tiles from 1 to 32" in run.stderr


def test_nothing_is_left_in_shared_memory():
    run = job("print(os.environ['OMPY_JOB'])\nend()", 2)
    assert run.returncode == 0, run.stderr
    killed = job(
        "print(os.environ['OMPY_JOB'], flush=True)\ntile.receive(1) if rank else os.kill(os.getpid(), signal.SIGKILL)", 2
    )
    assert killed.returncode != 0
    jobs = {*run.stdout.split(), *killed.stdout.split()}
    assert len(jobs) == 2
    assert not [path.name for path in Path("/dev/shm").iterdir() if any(job in path.name for job in jobs)]


def test_a_record_holds_the_words_on_the_wires_and_samples_over_time(tmp_path):
    trace = tmp_path / "run.json"
    run = job("tile.send(1, [5] * 31) if rank == 0 else tile.receive(31); end()", 2, trace=trace)
    assert run.returncode == 0, run.stderr
    found = load(str(trace))
    over_link = [word for _, tile, side, word in found["words"] if (tile, side) == (0, 2)]
    assert over_link == [31 << 24 | 1, *[5] * 31]
    assert found["crossed"][5 * 0 + 2] == 32
    assert len(found["samples"]) > 10
    assert found["deadlock"] == ""


def test_a_file_that_is_no_record_is_refused(tmp_path):
    other = tmp_path / "other.json"
    for text in ("{", "[]", '{"format": "something else"}'):
        other.write_text(text)
        with pytest.raises(ValueError, match="is no trace of the Raw chip"):
            load(str(other))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="who has one processor sleeps, so that the other has it")
def test_ranks_that_have_begun_to_sleep_for_one_another_wait_awake_again():
    run = job(
        """
        fewest = tile.chip.looks
        for turn in range(40):                       # each keeps the other waiting for long, by the host's time
            if turn % 2 == rank:
                time.sleep(0.002)
                tile.send(1 - rank, [turn])
            else:
                assert tile.receive(1) == [turn]
                fewest = min(fewest, tile.chip.looks)
        most = tile.chip.looks
        for turn in range(20_000):                   # and now for the shortest time
            if turn % 2 == rank:
                tile.send(1 - rank, [turn])
            else:
                assert tile.receive(1) == [turn]
                most = max(most, tile.chip.looks)
        print(fewest, most, flush=True)
        end()
        """,
        2,
    )
    assert run.stdout == "8 2048\n" * 2, run.stderr
