"""`ompyrun --host n1:2,n2:2,n3:1` over ssh: everything that a job on one host has."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from machines import Start

pytestmark = pytest.mark.long

HOSTS = ("--host", "n1:2,n2:2,n3:1")
HEAD = "import os, signal, sys, time\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.Get_rank()\n"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def mpi(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", HEAD + source)


def test_ranks_run_where_the_hosts_say(ompyrun: Start) -> None:
    with ompyrun(*HOSTS, *mpi("print(rank, comm.Get_size(), MPI.Get_processor_name(), comm.allreduce(rank))")) as job:
        assert job.finish() == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 5 n1 10", "1 5 n1 10", "2 5 n2 10", "3 5 n2 10", "4 5 n3 10"]


def test_the_main_job_of_the_readme(ompyrun: Start) -> None:
    program = str(EXAMPLES / "jacobi.py")
    with ompyrun(*HOSTS, "--mpi4py", sys.executable, program, "--size", "800", "--steps", "20") as job:
        assert job.finish(120) == 0, job.stderr
    assert "5 ranks" in job.stdout


def test_interleaved_pieces_of_all_hosts_are_written_whole_by_one_rank_of_each(ompyrun: Start, tmp_path: Path) -> None:
    path = tmp_path / "pieces"
    source = f"""
import numpy
from ompy.tool import Session
piece, count = 24, 20_000
pieces = MPI.BYTE.Create_vector(1, piece, piece).Create_resized(0, piece * 5).Commit()
file = MPI.File.Open(comm, {str(path)!r}, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(piece * rank, MPI.BYTE, pieces)
data = numpy.repeat(numpy.arange(count, dtype="u8") * 5 + rank, 3)
with Session() as session:
    written = session.handle("fbtl_posix_bytes_written")
    session.start()
    file.Write_all(data)
    session.stop()
    moved = written.read()
got = numpy.zeros_like(data)
file.Read_at_all(0, got)
assert (got == data).all()
print(rank, moved)
file.Close()
"""
    with ompyrun(*HOSTS, *mpi(source)) as job:
        assert job.finish() == 0, job.stderr
    assert path.read_bytes() == b"".join(number.to_bytes(8, "little") * 3 for number in range(100_000))
    written = dict(line.split() for line in job.stdout.splitlines())
    assert sum(map(int, written.values())) == 2_400_000
    assert [rank for rank in sorted(written) if written[rank] == "0"] == ["1", "3"]


def test_lines_carry_their_rank_and_arrive_whole(ompyrun: Start) -> None:
    source = "print('x' * 100_000 + str(rank)); print('word', file=sys.stderr)"
    with ompyrun(*HOSTS, "-l", *mpi(source)) as job:
        assert job.finish() == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == [f"[{rank}] " + "x" * 100_000 + str(rank) for rank in range(5)]
    assert sorted(job.stderr.splitlines()) == [f"[{rank}] word" for rank in range(5)]


def test_output_that_nobody_reads_makes_the_ranks_wait(ompyrun: Start) -> None:
    source = "for _ in range(200): print('x' * 100_000)\nprint('end', rank)"
    with ompyrun("--host", "n2:1,n3:1", *mpi(source)) as job:
        assert job.process.stdout is not None
        assert job.process.stdout.read(1) == b"x"
        assert job.finish() == 0, job.stderr
    assert job.stdout.count("x" * 100_000) >= 399
    assert len(job.stdout) == 2 * (200 * 100_001 + 6) - 1


def test_input_goes_to_the_rank_that_is_to_have_it(ompyrun: Start) -> None:
    text = "line\n" * 100_000
    source = "text = sys.stdin.read(); print(rank, len(text))"
    for target, expected in (("3", [0, 0, 0, 1, 0]), ("all", [1] * 5), ("none", [0] * 5)):
        with ompyrun(*HOSTS, "--stdin", target, *mpi(source), stdin=text) as job:
            assert job.finish() == 0, job.stderr
        assert sorted(job.stdout.splitlines()) == [f"{rank} {len(text) * has}" for rank, has in enumerate(expected)]


def test_a_rank_that_reads_no_input_does_not_hold_the_job_up(ompyrun: Start) -> None:
    with ompyrun("--host", "n2:1,n3:1", *mpi("comm.Barrier()"), stdin="x" * 1_000_000) as job:
        assert job.finish() == 0, job.stderr


def test_exit_code_and_variables_and_folder(ompyrun: Start, tmp_path: Path) -> None:
    source = "print(os.environ['WORD'], os.getcwd())\ncomm.Barrier()\nif rank == 4: sys.exit(7)"
    with ompyrun(*HOSTS, "-x", "WORD=a b'c", *mpi(source)) as job:
        assert job.finish() == 7, job.stderr
    assert set(job.stdout.splitlines()) == {f"a b'c {tmp_path}"}
    assert "rank 4 (n3, " in job.stderr


def test_who_waits_for_whom_across_hosts(ompyrun: Start) -> None:
    source = "comm.Barrier()\nif rank in (1, 4): comm.Ssend(bytearray(8), dest=5 - rank, tag=7)"
    words = ("--timeout", "5", "--report-state-on-timeout", "--get-stack-traces")
    with ompyrun(*HOSTS, *words, *mpi(source)) as job:
        assert job.finish() == 124, job.stderr
    assert "cycle of waits: rank 1 waits for rank 4 in Ssend; rank 4 waits for rank 1 in Ssend" in job.stderr
    assert "rank 4 (n3, " in job.stderr
    assert job.stderr.count('File "<string>", line 6') == 2


def test_a_job_that_hangs_says_so_by_itself(ompyrun: Start) -> None:
    with ompyrun("--host", "n2:1,n3:1", "--timeout", "45", *mpi("comm.Ssend(bytearray(8), dest=1 - rank)")) as job:
        assert job.finish() == 124
    assert "this job seems to hang" in job.stderr


def test_signals_reach_ranks_on_other_hosts(ompyrun: Start) -> None:
    source = "signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))\nprint('up', flush=True)\ntime.sleep(600)"
    with ompyrun("--host", "n2:1,n3:1", sys.executable, "-c", "import os, signal, time\n" + source) as job:
        assert [job.line(), job.line()] == ["up\n", "up\n"]
        os.kill(job.pid, signal.SIGUSR1)
        assert job.finish() == 0, job.stderr


def test_a_program_that_is_not_there_is_told_with_its_host(ompyrun: Start) -> None:
    with ompyrun("--host", "n2:1", "no-such-program") as job:
        assert job.finish() == 127
    assert "host n2: can't start 'no-such-program': No such file" in job.stderr


def test_a_folder_that_is_not_there_is_told_with_its_host(ompyrun: Start) -> None:
    with ompyrun("--host", "n2:1", "--wdir", "/no/such/folder", "true") as job:
        assert job.finish() != 0
    assert "host n2: " in job.stderr
    assert "/no/such/folder" in job.stderr


def test_a_host_that_can_not_be_reached_is_told_with_what_ssh_says(ompyrun: Start) -> None:
    with ompyrun("--host", "n2:1,nowhere:1", "true") as job:
        assert job.finish() == 1
    assert "host nowhere: no proxy there: ssh" in job.stderr
    assert "Could not resolve hostname" in job.stderr


def test_host_file_order_and_map(ompyrun: Start, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1 slots=2\nn2 slots=2 max-slots=3\nn3\n")
    source = "names = comm.gather(MPI.Get_processor_name())\nif rank == 0: print(names)"

    def hosts(*words: str) -> str:
        with ompyrun("--hostfile", "hosts", *words, *mpi(source)) as job:
            assert job.finish() == 0, job.stderr
        return job.stdout.replace("'", "")

    assert hosts() == "[n1, n1, n2, n2, n3]\n"
    assert hosts("--map-by", "node") == "[n1, n2, n3, n1, n2]\n"
    assert hosts("-N", "1") == "[n1, n2, n3]\n"
    assert hosts("--map-by", "ppr:1:node", "--host", "+n2,+n0") == "[n3, n1]\n"
    assert hosts("-n", "4", "--rank-by", "node") == "[n1, n2, n1, n2]\n"
    assert hosts("--map-by", "seq", "-n", "2") == "[n1, n2]\n"
    (tmp_path / "ranks").write_text("rank 0=+n1 slot=0\nrank 1=n3 slot=0-1\nrank 2=n1 slot=1\n")
    with ompyrun("--hostfile", "hosts", "-n", "3", "--rankfile", "ranks", "--display", "map", *mpi(source)) as job:
        assert job.finish() == 0, job.stderr
    assert job.stdout.replace("'", "") == "[n2, n3, n1]\n"
    assert "rank 1: host n3, processors 0-1" in job.stderr
