"""btl/gdn: MPI over the simulated chip, in the chip's time."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading

import pytest

GDN = {"btl": "gdn,self"}
LINE = re.compile(r"times are simulated: (\d+) cycles of the Raw chip")


def job(program, ranks, *options):
    """Runs a program on the chip; its result."""
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(ranks), "--mca", "btl", "gdn,self", *options]
    return subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.long
def test_it_keeps_the_contract_of_transports():
    """The clauses alone: whole MPI programs over it are below, and in mpi4py's suite."""
    command = [sys.executable, "-c", "from ompy.cli.ompy import main; main()", "conformance", "--mca", "btl", "gdn,self"]
    run = subprocess.run([*command, "--level", "contract"], capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.ompy(4, mca=GDN)
def test_every_size_arrives_intact(comm):
    following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (0, 1, 3, 4, 5, 115, 116, 117, 236, 4000, 4096, 5000, 32768, 100_001):
        out = bytes((index * 7 + comm.rank) % 251 for index in range(size))
        found = bytearray(size)
        comm.Sendrecv(out, following, 3, found, before, 3)
        assert found == bytes((index * 7 + before) % 251 for index in range(size)), size


@pytest.mark.ompy(2, mca=GDN)
def test_two_ranks_that_send_first_do_not_fill_the_network_for_ever(comm):
    from ompy import MPI

    out, found = bytearray(4000), bytearray(4000)
    for _ in range(5):
        comm.Send([out, MPI.BYTE], 1 - comm.rank)
        comm.Recv([found, MPI.BYTE], 1 - comm.rank)


@pytest.mark.ompy(2, mca=GDN)
def test_a_loop_of_looks_makes_time_pass(comm):
    from ompy import MPI

    found = bytearray(8)
    if comm.rank == 0:
        begun = MPI.Wtime()
        request = comm.Irecv(found, 1)
        looks = 0
        while not request.Test():
            looks += 1
        assert looks > 0
        assert MPI.Wtime() > begun
    else:
        comm.Send(b"01234567", 0)


@pytest.mark.ompy(2, mca=GDN)
def test_threads_of_a_rank_take_turns_on_its_tile(comm):
    def exchange(tag):
        for _ in range(10):
            found = bytearray(200)
            comm.Sendrecv(bytes([tag]) * 200, 1 - comm.rank, tag, found, 1 - comm.rank, tag)
            assert found == bytes([tag]) * 200
        ended.append(tag)

    ended = []
    threads = [threading.Thread(target=exchange, args=(tag,)) for tag in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [1, 2, 3]


PROGRAM = """
    from ompy import MPI
    comm = MPI.COMM_WORLD
    begun = MPI.Wtime()
    for size in (1, 1000, 20000):
        out = bytearray(size)
        comm.Bcast(out, 0)
        comm.Allgather(out[:16], bytearray(16 * comm.size) if size >= 16 else bytearray(comm.size))
    comm.Barrier()
    print(comm.rank, round((MPI.Wtime() - begun) * 425e6), MPI.Wtick() * 425e6)
"""


def test_the_same_program_takes_the_same_cycles_each_time_and_output_says_that_they_are_simulated():
    runs = [job(PROGRAM, 4) for _ in range(3)]
    assert all(run.returncode == 0 for run in runs), runs
    assert len({tuple(sorted(run.stdout.splitlines())) for run in runs}) == 1
    assert len({LINE.search(run.stderr).group(1) for run in runs}) == 1
    assert all(float(line.split()[2]) == pytest.approx(1) for line in runs[0].stdout.splitlines())


def test_it_serves_only_when_it_is_named():
    run = subprocess.run(
        [sys.executable, "-c", "from ompy import MPI; from ompy.mca.selection import verdicts; print(verdicts('btl'))"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "serves only where it is named" in run.stdout


def test_more_ranks_than_tiles_are_refused_with_the_remedy():
    run = job("from ompy import MPI", 5, "--mca", "machine_raw_width", "2", "--mca", "machine_raw_height", "2")
    assert run.returncode != 0
    assert "5 ranks do not fit the Raw chip of 2 x 2 tiles" in run.stderr
    assert "--mca machine_raw_width 3 --mca machine_raw_height 3" in run.stderr


def test_a_rank_that_dies_on_the_chip_ends_the_job():
    run = job(
        """
        import os, signal
        from ompy import MPI
        comm = MPI.COMM_WORLD
        comm.Barrier()
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.Barrier()
        """,
        3,
    )
    assert run.returncode == 137
    assert "rank 1" in run.stderr
