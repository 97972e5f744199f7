"""What happens when something goes wrong: it is named, the job ends soon, and nothing is left."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time

import pytest
from launching import OMPYRUN, POWERLESS, Launch, launch, mpi, python

# Far less than what the programs would wait for, and more than a machine under load takes.
SOON = 15.0
# Rank 1 fails as the test says, the others wait for a message that never comes.
OTHERS_WAIT = "\ncomm.recv(source=1, tag=9)"
WAIT = "print('up', flush=True)\ntime.sleep(60)"


def fail_on_rank_1(statement: str, ranks: int = 3) -> tuple[Launch, float]:
    """The finished job, and the seconds from the failure to the launcher's end."""
    source = f"comm.Barrier()\nif rank == 1:\n    print('now', time.monotonic(), flush=True)\n    {statement}" + OTHERS_WAIT
    job = launch("-n", str(ranks), "--timeout", "20", *mpi(source))
    failed_at = float(re.search(r"now ([\d.]+)", job.stdout).group(1))
    return job, job.begun + job.seconds - failed_at


@pytest.mark.parametrize("ranks", [2, 4])
def test_uncaught_exception_is_reported_with_rank_and_line_and_ends_the_others(ranks: int) -> None:
    job, seconds = fail_on_rank_1("raise ValueError('boom')", ranks)
    assert job.process.returncode == 1
    reason = r"aborted the job \(MPI_Abort, code 1\): <string>:\d+: ValueError: boom"
    assert re.search(r"ompyrun: rank 1 \(\S+, \d+\) " + reason, job.stderr)
    assert "Traceback (most recent call last)" in job.stderr
    assert seconds < SOON


def test_tracebacks_of_ranks_that_fail_together_do_not_mix() -> None:
    source = "def inner(): raise ValueError(rank)\ndef outer(): inner()\ncomm.Barrier()\nouter()"
    job = launch("-n", "4", *mpi(source))
    tracebacks = job.stderr.split("Traceback (most recent call last):\n")[1:]
    assert tracebacks
    # From Python 3.13 on, the lines of a program given by -c are shown, too.
    frames = r'(  File "<string>", line \d+, in \S+\n(    .*\n)*){3}ValueError: \d\n'
    assert all(re.match(frames, text) for text in tracebacks)


def test_killed_rank_is_named_with_its_signal() -> None:
    job, seconds = fail_on_rank_1("os.kill(os.getpid(), signal.SIGKILL)")
    assert job.process.returncode == 137
    assert re.search(r"rank 1 \(\S+, \d+\) killed by SIGKILL", job.stderr)
    assert seconds < SOON


@pytest.mark.parametrize("transport", ["self,sm", "self,zmq"])
def test_cause_is_named_not_the_peers_that_noticed(transport: str) -> None:
    source = "comm.Barrier()\nif rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ncomm.recv(source=2)"
    job = launch("-n", "4", "--mca", "btl", transport, "--timeout", "20", *mpi(source))
    assert job.process.returncode == 137
    assert re.fullmatch(r"ompyrun: rank 2 \(\S+, \d+\) killed by SIGKILL\n", job.stderr)


def test_crashed_rank_is_named_with_its_signal() -> None:
    job, seconds = fail_on_rank_1("os.kill(os.getpid(), signal.SIGSEGV)")
    assert job.process.returncode == 139
    assert "killed by SIGSEGV" in job.stderr
    assert seconds < SOON


def test_exit_code_of_the_failing_rank_is_the_jobs() -> None:
    job, seconds = fail_on_rank_1("os._exit(7)")
    assert job.process.returncode == 7
    assert "exited with code 7" in job.stderr
    assert seconds < SOON


def test_rank_that_leaves_with_sys_exit_does_not_wait_for_its_peers() -> None:
    job, seconds = fail_on_rank_1("sys.exit(5)")
    assert job.process.returncode == 5
    assert "exited with code 5" in job.stderr
    assert seconds < SOON


def test_rank_that_goes_without_finalising_is_named() -> None:
    job, seconds = fail_on_rank_1("os._exit(0)")
    assert job.process.returncode == 1
    assert re.search(r"rank 1 \(\S+, \d+\) exited with code 0 but without finalising MPI", job.stderr)
    assert seconds < SOON


def test_abort_gives_its_code() -> None:
    job, seconds = fail_on_rank_1("comm.Abort(42)")
    assert job.process.returncode == 42
    assert re.search(r"rank 1 \(\S+, \d+\) aborted the job \(MPI_Abort, code 42\)", job.stderr)
    assert seconds < SOON


def test_rank_that_never_initialises_is_not_waited_for() -> None:
    job = launch("-n", "1", *mpi(""), ":", "-n", "1", "true")
    assert job.process.returncode == 1
    assert "rank 1" in job.stderr
    assert "without initialising MPI" in job.stderr


def test_exception_before_mpi_starts() -> None:
    source = "import os\nif os.environ['PMI_RANK'] == '1':\n    import no_such_module\n"
    source += "from ompy import MPI\nMPI.COMM_WORLD.Barrier()"
    job = launch("-n", "2", *python(source))
    assert job.process.returncode == 1
    assert "no_such_module" in job.stderr
    assert re.search(r"rank 1 \(\S+, \d+\) exited with code 1", job.stderr)
    assert job.seconds < 5 + SOON


def test_caught_exceptions_end_nothing() -> None:
    job = launch("-n", "2", *mpi("try:\n    raise ValueError\nexcept ValueError:\n    pass\ncomm.Barrier()"))
    assert (job.process.returncode, job.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_to_the_launcher_ends_the_job(number: signal.Signals) -> None:
    with Launch("-n", "3", *mpi(WAIT)) as job:
        assert job.lines(3) == ["up"] * 3
        job.process.send_signal(number)
        begun = time.monotonic()
        assert job.finish() == 128 + number
        assert time.monotonic() - begun < SOON
        assert job.wait_until_gone() == []


def test_interrupt_says_once_for_each_rank_where_it_was() -> None:
    with Launch("-n", "2", *mpi(WAIT)) as job:
        job.lines(2)
        job.process.send_signal(signal.SIGINT)
        job.finish()
        assert len(re.findall(r"ompy: rank \d: <string>:\d+: KeyboardInterrupt", job.stderr)) == 2
        assert "Traceback" not in job.stderr


def test_second_interrupt_kills_what_ignores_the_first() -> None:
    source = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    with Launch("-n", "2", "--mca", "ompyrun_grace", "50", *python(source)) as job:
        job.lines(2)
        job.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert len(job.living()) > 1
        job.process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert job.finish() == 130
        assert time.monotonic() - begun < SOON
        assert job.wait_until_gone() == []


def test_rank_that_ignores_termination_is_killed() -> None:
    source = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\n"
    source += "time.sleep(0.5)\nif os.environ['PMI_RANK'] == '0': os._exit(9)\ntime.sleep(60)"
    job = launch("-n", "2", "--mca", "ompyrun_grace", "1", *python(source))
    assert job.process.returncode == 9
    assert job.seconds < 1 + SOON + 3


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_passed_on(number: signal.Signals) -> None:
    # Blocked before it is announced, so that it can't come between the announcement and the wait.
    source = f"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
    source += f"print('up', flush=True)\nsignal.sigwait([{int(number)}])\nprint('got it')"
    with Launch("-n", "2", *python(source)) as job:
        job.lines(2)
        job.process.send_signal(number)
        assert job.finish() == 0
        assert job.stdout.splitlines() == ["got it"] * 2


def test_stop_and_continue_reach_the_ranks() -> None:
    with Launch("-n", "2", *python("import time\nprint('up', flush=True)\ntime.sleep(60)")) as job:
        job.lines(2)
        ranks = [pid for pid in job.living() if parent_of(pid) == job.process.pid and name_of(pid) != "ompyrun-keeper"]

        def states() -> set[str]:
            return {state_of(pid) for pid in [job.process.pid, *ranks]}

        assert len(ranks) == 2
        job.process.send_signal(signal.SIGTSTP)
        assert until(lambda: states() == {"T"})
        job.process.send_signal(signal.SIGCONT)
        assert until(lambda: "T" not in states())


@pytest.mark.parametrize("transport", ["self,sm", "self,zmq"])
def test_killed_launcher_leaves_nothing(transport: str) -> None:
    source = "comm.sendrecv(b'x' * 100000, (rank + 1) % 3, source=(rank - 1) % 3)\n" + WAIT
    with Launch("-n", "3", "--mca", "btl", transport, *mpi(source)) as job:
        assert job.lines(3) == ["up"] * 3
        job.process.kill()
        begun = time.monotonic()
        assert job.wait_until_gone() == []
        assert time.monotonic() - begun < SOON


def test_killed_launcher_of_programs_without_mpi_leaves_nothing() -> None:
    with Launch("-n", "2", "sh", "-c", "sleep 60 & echo up; wait") as job:
        assert job.lines(2) == ["up"] * 2
        job.process.kill()
        assert job.wait_until_gone() == []


def test_processes_that_ranks_have_started_end_with_them() -> None:
    source = "import subprocess\nsubprocess.Popen(['sleep', '60'])\nprint('up', flush=True)"
    job = launch("-n", "2", *python(source))
    assert job.process.returncode == 0
    assert job.seconds < 10


def segments_of(pids: list[str]) -> list[str]:
    """What processes have left in /dev/shm."""
    return [name for name in os.listdir("/dev/shm") if any(f".{pid}." in name for pid in pids)]


FILES = ("--mca", "btl_sm_backing", "file")
MAKE_SEGMENTS = """
comm.sendrecv(b'x' * 100000, rank ^ 1, source=rank ^ 1)
comm.Barrier()
print(os.getpid(), [name for name in os.listdir('/dev/shm') if f'.{os.getpid()}.' in name], flush=True)
comm.Barrier()
"""


@pytest.mark.parametrize("statement", ["pass", "raise SystemExit(1)", "os.kill(os.getpid(), 9)", "comm.recv(source=0)"])
def test_no_segment_is_left(statement: str) -> None:
    source = MAKE_SEGMENTS + f"if rank == 1: {statement}\n"
    job = launch("-n", "2", *FILES, "--timeout", "3", *mpi(source))
    assert (job.process.returncode == 0) == (statement == "pass")
    assert "ompy-" in job.stdout, "the test has seen no segment: it proves nothing"
    pids = [line.split()[0] for line in job.stdout.splitlines()]
    assert segments_of(pids) == []


def test_no_segment_is_left_by_ranks_in_a_shell() -> None:
    words = " ".join(shlex.quote(word) for word in mpi(MAKE_SEGMENTS + "os.kill(os.getpid(), 9)"))
    job = launch("-n", "2", *FILES, "sh", "-c", words + "; exit 3")
    assert job.process.returncode == 3
    assert segments_of([line.split()[0] for line in job.stdout.splitlines()]) == []


def test_no_segment_is_left_by_a_killed_launcher() -> None:
    with Launch("-n", "2", *FILES, *mpi(MAKE_SEGMENTS + WAIT)) as job:
        lines = job.lines(4)
        pids = [line.split()[0] for line in lines if line != "up"]
        assert segments_of(pids)
        job.process.kill()
        assert job.wait_until_gone() == []
        assert until(lambda: segments_of(pids) == [])


def parent_of(pid: int) -> int:
    return int(fields_of(pid)[1])


def state_of(pid: int) -> str:
    return fields_of(pid)[0]


def fields_of(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat") as stream:
        return stream.read().rpartition(")")[2].split()


def name_of(pid: int) -> str:
    with open(f"/proc/{pid}/comm") as stream:
        return stream.read().strip()


def until(condition: object, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


# Starts the command behind it with the signals blocked that end a launcher, or tell it that a rank has ended.
BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_signals_that_were_blocked_before_the_launcher_began_reach_it() -> None:
    show = "import signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)\n"
    with Launch("-n", "1", *python(show), command=(*python(BLOCKED), *OMPYRUN)) as job:
        assert (job.finish(), job.stdout) == (0, "set()\n")
    with Launch("-n", "1", *python(show + "import time; time.sleep(60)"), command=(*python(BLOCKED), *OMPYRUN)) as job:
        job.lines(1)
        job.process.send_signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM


ENDS_ALONE = "import os, time\nif os.environ['PMI_RANK'] == '0': os.setuid(1)\nprint('up', flush=True)\ntime.sleep(60)"


@pytest.mark.skipif(os.geteuid() != 0, reason="a process of another user is wanted")
def test_rank_that_may_not_be_signalled_is_named_and_left_behind() -> None:
    command = (*python(POWERLESS), *OMPYRUN)
    with Launch("-n", "2", "--mca", "ompyrun_grace", "1", *python(ENDS_ALONE), command=command) as job:
        job.lines(2)
        job.process.send_signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM
        assert "Traceback" not in job.stderr
        assert len(re.findall(r"rank 0 \(.*\) can't be sent signals \(Operation not permitted\)", job.stderr)) == 1
        assert "rank 1" not in job.stderr
        assert len(job.living()) == 1
