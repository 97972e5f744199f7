"""Output in whole lines, whatever ranks write and however slowly somebody reads; input for one rank."""

from __future__ import annotations

import os
import pty
import random
import subprocess
import sys
import time

from launching import DEADLINE, OMPYRUN, Launch, launch, python

# Each rank writes numbered lines in pieces that end anywhere.
PIECES = """
import os, random
rank = int(os.environ["PMI_RANK"])
generator = random.Random(SEED + rank)
text = "".join(f"{rank} {i} " + chr(97 + rank) * generator.randrange(200) + " end\\n" for i in range(3000)).encode()
place = 0
while place < len(text):
    size = generator.randrange(1, 5000)
    os.write(1, text[place : place + size])
    place += size
"""


def test_lines_of_four_ranks_stay_whole(seed: int) -> None:
    job = launch("-n", "4", *python(PIECES.replace("SEED", str(seed))))
    seen: dict[str, int] = {}
    for line in job.stdout.splitlines():
        rank, number, *letters, end = line.split(" ")
        assert (end, len(letters)) == ("end", 1), line
        assert set(letters[0]) <= {chr(97 + int(rank))}, line
        assert int(number) == seen.get(rank, 0)
        seen[rank] = int(number) + 1
    assert seen == {str(rank): 3000 for rank in range(4)}


def test_line_longer_than_any_buffer_stays_whole() -> None:
    job = launch("-n", "2", *python("import os; print(os.environ['PMI_RANK'] * 3_000_000)"))
    assert sorted((line[0], len(line), len(set(line))) for line in job.stdout.splitlines()) == [
        ("0", 3_000_000, 1),
        ("1", 3_000_000, 1),
    ]


def test_last_line_without_a_newline_gets_none_but_between_ranks() -> None:
    assert launch("-n", "1", *python("print('end', end='')")).stdout == "end"
    assert launch("-n", "2", *python("print('end', end='')")).stdout == "end\nend"


def test_what_one_rank_writes_arrives_byte_for_byte() -> None:
    source = "import os, random; os.write(1, random.Random(7).randbytes(60000) + b'\\n\\n\\0 end')"
    with Launch("-n", "1", *python(source)) as job:
        out, _ = job.process.communicate(timeout=DEADLINE)
    assert out == random.Random(7).randbytes(60000) + b"\n\n\0 end"


def test_both_streams_keep_their_own() -> None:
    job = launch("-n", "2", *python("import sys; print('out'); print('err', file=sys.stderr)"))
    assert (job.stdout, job.stderr) == ("out\n" * 2, "err\n" * 2)


def test_slow_reader_holds_the_ranks_not_the_launcher() -> None:
    source = "import sys\nfor i in range(40000): print('x' * 1000)"
    with Launch("-n", "2", *python(source)) as job:
        job.lines(10)
        time.sleep(0.5)
        with open(f"/proc/{job.process.pid}/status") as stream:
            resident = next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))
        assert resident < 60_000, "kB: the launcher has read what nobody took from it"
        assert job.finish() == 0
        assert len(job.stdout.splitlines()) == 80_000 - 10


def test_reader_that_goes_ends_the_job() -> None:
    command = [*OMPYRUN, "-n", "2", "yes"]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdout is not None
    assert job.stderr is not None
    assert job.stdout.readline() == b"y\n"
    job.stdout.close()
    assert job.wait(DEADLINE) == 141
    assert job.stderr.read() == b""
    job.stderr.close()


def test_full_disk_is_said() -> None:
    with open("/dev/full", "w") as full:
        job = subprocess.run(
            [*OMPYRUN, "-n", "1", "echo", "x"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE
        )
    assert job.returncode == 1
    assert "No space left on device" in job.stderr


READ = "import os, sys; print(os.environ['PMI_RANK'], len(sys.stdin.read()))"


def test_input_goes_to_rank_0() -> None:
    assert sorted(launch("-n", "3", *python(READ), stdin="x" * 200_000).stdout.splitlines()) == ["0 200000", "1 0", "2 0"]


def test_input_goes_to_the_rank_that_is_named() -> None:
    assert sorted(launch("-n", "2", "--stdin", "1", *python(READ), stdin="abc").stdout.splitlines()) == ["0 0", "1 3"]
    assert sorted(launch("-n", "2", "--stdin", "none", *python(READ), stdin="abc").stdout.splitlines()) == ["0 0", "1 0"]


def test_loop_over_lines_keeps_its_input() -> None:
    script = f"while read word; do {' '.join(OMPYRUN)} -n 1 echo $word; done"
    job = subprocess.run(["sh", "-c", script], input="one\ntwo\nthree\n", capture_output=True, text=True, timeout=DEADLINE)
    assert job.stdout == "one\ntwo\nthree\n"


def test_terminal_shows_a_prompt_and_passes_on_what_is_typed() -> None:
    program = "import os\nif os.environ['PMI_RANK'] == '0':\n    name = input('name: ')\n    print('got', name)"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*OMPYRUN, "-n", "2", "--timeout", "20", *python(program)])
    seen = b""
    while b"name: " not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"hello\n")
    while b"got hello" not in seen:
        seen += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
