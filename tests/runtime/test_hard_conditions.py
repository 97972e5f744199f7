"""Jobs that run as no test bench runs them: closed descriptors, killed keepers, odd exits, handlers that take their time."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import DEADLINE, OMPYRUN, Launch, launch, mpi, python

from ompy.runtime.keeper import JOB_VARIABLE

SIZE = "print(comm.Get_size(), file=open(os.environ['OUT'], 'a'))"


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_descriptors_of_the_launcher_change_nothing(closed: str, tmp_path: object) -> None:
    # As cron and daemons start programs; the ranks write to a file of their own.
    words = shlex.join([*OMPYRUN, "-n", "2", *mpi(SIZE)])
    job = subprocess.run(["sh", "-c", f"{words} {closed}"], timeout=DEADLINE, env=os.environ | {"OUT": f"{tmp_path}/sizes"})
    assert job.returncode == 0
    with open(f"{tmp_path}/sizes") as stream:
        assert stream.read() == "2\n2\n"


def test_two_processes_of_one_rank_end_the_job() -> None:
    program = shlex.join(mpi("print(comm.Get_size())"))
    job = launch("-n", "2", "sh", "-c", f"{program} & {program}; wait")
    assert job.process.returncode == 1
    assert "a second process of rank" in job.stderr
    assert "1" not in job.stdout.split(), "a rank went on as a job of its own"


def test_a_rank_whose_connection_was_closed_on_the_way_does_not_go_on_alone() -> None:
    inner = mpi("print(comm.Get_size())")
    job = launch("-n", "2", *python(f"import subprocess, sys; sys.exit(subprocess.call({list(inner)!r}))"))
    assert job.process.returncode == 1
    assert job.stdout == ""
    assert "it can't go on as a job of its own" in job.stderr


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("exit(3)", 3),
        ("sys.exit(3)", 3),
        ("leave(3)", 3),
        ("raise SystemExit('words')", 1),
        ("\n    try: comm.recv(source=9)\n    finally: leave(3)", 3),
        ("raise Unspeakable", 1),
        ("raise ValueError('\\udc80')", 1),
        ("sys.stdout = None; raise ValueError('silent')", 1),
        ("sys.stderr.close(); raise ValueError('silent')", 1),
        ("sys.excepthook = None; raise ValueError('hook')", 1),
        ("\n    def hook(*error): 1 / 0\n    sys.excepthook = hook; raise ValueError('hook')", 1),
    ],
)
def test_however_a_rank_ends_in_failure_its_peers_are_not_left_waiting(statement: str, code: int) -> None:
    source = "from sys import exit as leave\n" + mpi("")[2]
    source += "class Unspeakable(Exception):\n    def __str__(self): raise ValueError\n"
    job = launch("-n", "2", "--timeout", "20", *python(source + f"if rank == 1: {statement}\ncomm.recv(source=1)"))
    assert job.process.returncode == code
    assert re.search(r"rank 1 \(\S+, \d+\) (exited with code|aborted the job)", job.stderr)


def test_an_exit_that_the_program_catches_is_none() -> None:
    source = "for status in (3, 0):\n    try: sys.exit(status)\n    except SystemExit: pass\n"
    job = launch("-n", "2", *mpi(source + "try: raise SystemExit(4)\nexcept SystemExit: pass\ncomm.Barrier()"))
    assert (job.process.returncode, job.stderr) == (0, "")


@pytest.mark.parametrize("statement", ["raise SystemExit", "raise SystemExit(0)", "exit()", "sys.exit(None)"])
def test_a_successful_exit_finalises(statement: str) -> None:
    job = launch("-n", "2", *mpi(statement))
    assert (job.process.returncode, job.stderr) == (0, "")


def test_a_long_message_keeps_its_beginning() -> None:
    job = launch("-n", "2", *mpi("if rank == 1: raise ValueError('begin' + 'x' * 200_000)\ncomm.recv(source=1)"))
    assert "aborted the job (MPI_Abort, code 1): <string>" in job.stderr
    assert "ValueError: beginxxx" in job.stderr.splitlines()[-1]
    assert len(job.stderr.splitlines()[-1]) < 5000


WAIT = "print('up', flush=True)\ncomm.recv(source=comm.Get_size() - 1 - rank, tag=1)"


def keeper_of(job: Launch) -> int:
    for pid in job.living():
        with open(f"/proc/{pid}/comm") as stream:
            if stream.read().strip() == "ompyrun-keeper":
                return pid
    raise AssertionError("there is no keeper")


COMPUTE = "print('up', flush=True)\nwhile True: pass"
SLEEP = "print('up', flush=True)\ntime.sleep(600)"
# A handler of the program's that is called again and again: no sleep of a wait is in vain.
BUSY = "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)\n"


@pytest.mark.parametrize("transport", ["self,sm", "self,zmq"])
@pytest.mark.parametrize("program", [WAIT, BUSY + WAIT, COMPUTE, SLEEP], ids=["waits", "is disturbed", "computes", "sleeps"])
def test_killed_keeper_and_launcher_leave_no_rank_whatever_it_does(transport: str, program: str) -> None:
    with Launch("-n", "2", "--mca", "btl", transport, *mpi(program)) as job:
        job.lines(2)
        os.kill(job.process.pid, signal.SIGSTOP)  # so that it makes no other keeper
        os.kill(keeper_of(job), signal.SIGKILL)
        os.kill(job.process.pid, signal.SIGKILL)
        assert job.wait_until_gone(10) == []


def test_launcher_whose_descriptors_are_closed_ends_and_its_ranks_too() -> None:
    source = """
import os, signal, sys
from ompy.cli.ompyrun import main
from ompy.runtime.launcher import Launcher
start = Launcher.start
def deaf(launcher):
    started = start(launcher)
    os.close(launcher.signals.writer)
    return started
Launcher.start = deaf
sys.exit(main())
"""
    with Launch("-n", "2", *python("import time; time.sleep(600)"), command=python(source)) as job:
        assert job.finish() == 1
        assert "pipe through which signals are heard" in job.stderr
        assert job.wait_until_gone() == []


# The launcher whose forks fail, those whose numbers argv[1] has; ranks are not forked.
SHORT_OF_PROCESSES = """
import errno, os, sys
from ompy.cli.ompyrun import main
refused, fork, forks = sys.argv.pop(1).split(","), os.fork, 0
def scarce():
    global forks
    forks += 1
    if str(forks) in refused:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
    return fork()
os.fork = scarce
sys.exit(main())
"""


def test_a_launcher_that_can_start_no_process_says_so() -> None:
    with Launch("-n", "1", "true", command=[*python(SHORT_OF_PROCESSES), "1"]) as job:
        assert job.finish() == 1
        assert job.stderr == "ompyrun: no process can be started here (Resource temporarily unavailable; ulimit -u)\n"


@pytest.mark.parametrize("refused", ["", "2,3"], ids=["", "when there is room"])
def test_killed_keeper_is_replaced(refused: str) -> None:
    program = python("import time; print('up', flush=True); time.sleep(60)")
    with Launch("-n", "2", *program, command=[*python(SHORT_OF_PROCESSES), refused]) as job:
        job.lines(2)
        first = keeper_of(job)
        os.kill(first, signal.SIGKILL)
        end = time.monotonic() + DEADLINE
        while True:
            assert time.monotonic() < end
            try:
                if keeper_of(job) != first:
                    break
            except (AssertionError, OSError):
                pass
        job.process.kill()
        assert job.wait_until_gone(10) == []


def test_stopped_keeper_does_not_hold_up_the_end() -> None:
    with Launch("-n", "1", *python("print('up', flush=True); input()"), stdin="\n") as job:
        job.lines(1)
        os.kill(keeper_of(job), signal.SIGSTOP)
        assert job.finish() == 0
        assert job.wait_until_gone() == []


SAVE = """
import os, signal, sys, time
def save(number, frame):
    print('saving', flush=True)
    time.sleep(2)
    print('saved', flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGINT, save)
print('up', flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ranks_are_told_once_to_end_and_have_time_for_it(number: signal.Signals) -> None:
    with Launch("-n", "2", *python(SAVE)) as job:
        job.lines(2)
        job.process.send_signal(number)
        assert job.finish() == 128 + number
        assert sorted(job.stdout.split()) == ["saved", "saved", "saving", "saving"]


def test_peers_of_a_failed_rank_have_time_to_save() -> None:
    job = launch("-n", "1", *python(SAVE), ":", "-n", "1", *python("import time; time.sleep(1); raise SystemExit(4)"))
    assert job.process.returncode == 4
    assert job.stdout.split() == ["up", "saving", "saved"]


def test_time_to_end_is_a_parameter() -> None:
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    with Launch("-n", "1", "--mca", "ompyrun_grace", "0.5", *python(source)) as job:
        job.lines(1)
        job.process.send_signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM


@pytest.mark.parametrize("ending", ["exit 0", "exit 3", "kill -9 $$"])
def test_children_in_sessions_of_their_own_end_with_the_job(ending: str) -> None:
    job = launch("-n", "2", "sh", "-c", f"setsid sleep 60 & setsid sh -c 'setsid sleep 60 & sleep 60' & {ending}")
    assert job.seconds < DEADLINE


def test_children_in_sessions_of_their_own_end_with_a_killed_launcher() -> None:
    with Launch("-n", "2", "sh", "-c", "setsid sleep 60 & echo up; sleep 60") as job:
        job.lines(2)
        job.process.kill()
        assert job.wait_until_gone(10) == []


def test_each_job_has_a_name_that_its_processes_know() -> None:
    job = launch("-n", "2", *python(f"import os; print(os.environ[{JOB_VARIABLE!r}])"))
    assert len(set(job.stdout.split())) == 1


RAN = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); print('ran')"


@pytest.mark.parametrize("program", [("echo", "ran"), ("--mpi4py", *python(RAN))], ids=["echo", "mpi4py"])
def test_job_runs_where_the_working_directory_is_gone(tmp_path: object, program: Sequence[str]) -> None:
    words = shlex.join([*OMPYRUN, "-n", "2", *program])
    script = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && {words}"
    job = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert job.stdout == "ran\nran\n"


def test_a_job_of_several_hosts_says_that_its_working_directory_is_gone(tmp_path: object) -> None:
    words = shlex.join([*OMPYRUN, "-n", "2", "--host", "a,b", "--mca", "plm", "local", "true"])
    script = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && {words}"
    job = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert job.returncode == 1
    assert "the working directory is gone" in job.stderr


def test_no_room_for_the_job_board_is_said_in_a_line() -> None:
    words = shlex.join([*OMPYRUN, "-n", "2", "true"])
    job = subprocess.run(["sh", "-c", f"ulimit -f 0; {words}"], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert job.returncode == 1
    assert job.stderr == "ompyrun: the system has no room for a job of 2 ranks: File too large\n"


def test_rank_that_never_reads_its_answers_ends_the_job() -> None:
    source = "import os\nwhile True: os.write(int(os.environ['PMI_FD']), b'cmd=get_maxes\\n' * 1000)"
    job = launch("-n", "2", "--timeout", "25", *python(source))
    assert job.process.returncode == 1
    assert re.search(r"rank \d does not read what its PMI commands are answered", job.stderr)


# A helper that waits for its rank's end, as multiprocessing's tracker of resources does, and then does its work.
HELPER = """
import os, subprocess, sys
reading, writing = os.pipe()
helper = f"import os; os.read({reading}, 1); open(sys.argv[1], 'w').write('done')".replace("import os", "import os, sys")
subprocess.Popen([sys.executable, "-c", helper, sys.argv[1]], pass_fds=[reading], stdin=subprocess.DEVNULL)
os.close(reading)
"""


def test_what_cleans_up_after_a_rank_is_given_the_time(tmp_path: Path) -> None:
    done = tmp_path / "done"
    job = launch("-n", "1", *python(HELPER), str(done))
    assert job.process.returncode == 0
    assert done.read_text() == "done"


def test_what_cleans_up_after_a_rank_that_ends_early_is_given_the_time(tmp_path: Path) -> None:
    done = tmp_path / "done"
    waiting = f"import os, time\nwhile not os.path.exists({str(done)!r}): time.sleep(0.01)"
    job = launch("--timeout", "25", "-n", "1", *python(HELPER), str(done), ":", "-n", "1", *python(waiting))
    assert job.process.returncode == 0, job.stderr


def test_what_a_rank_that_ends_early_leaves_ends_while_the_others_go_on(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    leaving = f"sleep 60 & echo $! > {told}.new; mv {told}.new {told}"
    waiting = f"""
import os, time
while not os.path.exists({str(told)!r}): time.sleep(0.01)
pid = int(open({str(told)!r}).read())
while os.path.exists(f"/proc/{{pid}}"): time.sleep(0.01)
"""
    job = launch("--timeout", "25", "-n", "1", "sh", "-c", leaving, ":", "-n", "1", *python(waiting))
    assert job.process.returncode == 0, job.stderr


def lacks_libfabric() -> bool:
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError:
        return True
    return importlib.util.find_spec("ompy_mtl_ofi") is None


OFI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "tcp", "--mca", "mtl_ofi_device", "lo")
LAYERS = [
    pytest.param(("--mca", "btl", "self,sm"), id="sm"),
    pytest.param(("--mca", "btl", "self,tcp"), id="tcp"),
    pytest.param(("--mca", "pml", "cm", "--mca", "mtl", "portals"), id="portals"),
    pytest.param(
        OFI, id="ofi", marks=pytest.mark.skipif(lacks_libfabric(), reason="no libfabric, or no plugin: tools/setup ofi")
    ),
]


@pytest.mark.parametrize("layer", LAYERS)
def test_who_leaves_while_messages_wait_for_a_busy_peer_heeds_signals(layer: tuple[str, ...], tmp_path: Path) -> None:
    # More messages than the transport takes; rank 1 comes back to MPI when the handler of rank 0 has run amid them three times:
    # once may have been behind them.
    source = f"""
import traceback
told, count, seen = {str(tmp_path / "told")!r}, 30000, []
def handle(_, frame):
    seen.extend(line for line in traceback.format_stack(frame) if "self.pml.finalize()" in line)
    if len(seen) == 3:
        signal.setitimer(signal.ITIMER_REAL, 0)
        open(told, "w").close()
comm.Barrier()
if rank == 0:
    for _ in range(count):
        comm.Isend(bytes(2048), 1).Free()
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
else:
    while not os.path.exists(told):
        time.sleep(0.01)
    for _ in range(count):
        comm.Recv(bytearray(2048), 0)
MPI.Finalize()
print("left", rank, flush=True)
"""
    job = launch("--timeout", "25", "-n", "2", *layer, *mpi(source))
    assert sorted(job.stdout.splitlines()) == ["left 0", "left 1"], job.stderr
