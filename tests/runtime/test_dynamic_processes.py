"""Processes that come and meet while a job runs: spawned ones, and jobs that know nothing of each other."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

OMPYRUN = (sys.executable, "-m", "ompy.cli.ompyrun")
LIMIT = 120

CHILD = """
from ompy import MPI
parent = MPI.Comm.Get_parent()
world = MPI.COMM_WORLD
"""

PARENT = """
import sys
from ompy import MPI
world = MPI.COMM_WORLD
def spawn(comm, program, count, **more):
    return comm.Spawn(sys.executable, [program], count, **more)
"""

SUM = (
    CHILD
    + """
merged = parent.Merge(high=True)
assert merged.allreduce(1) == parent.remote_size + world.size
window = MPI.Win.Allocate(8, 1, comm=merged)
window.Fence()
window.Put(bytes([merged.rank]), (merged.rank + 1) % merged.size)
window.Fence()
assert window.tomemory()[0] == (merged.rank - 1) % merged.size
window.Free()
total = parent.allreduce(merged.rank)
assert total == sum(range(parent.remote_size)), total
merged.Disconnect()
parent.Disconnect()
"""
)


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Status and output of a process; it is killed where it does not end."""
    try:
        output, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def job(ranks: int, path: str, *arguments: str, btl: str = "sm", more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    options = ("--oversubscribe", "--timeout", str(LIMIT - 20), "--report-state-on-timeout", "--mca", "btl", f"self,{btl}")
    return start(*OMPYRUN, *options, *more, "-n", str(ranks), sys.executable, path, *arguments)


def alone(path: str, *arguments: str) -> subprocess.Popen[str]:
    return start(sys.executable, path, *arguments)


@pytest.mark.parametrize(("ranks", "btl"), [(1, "sm"), (2, "sm"), (2, "zmq"), (2, "tcp")])
def test_spawned_ranks_merge_share_windows_and_leave(tmp_path: Path, ranks: int, btl: str) -> None:
    child = program(tmp_path, "child.py", SUM)
    parent = program(
        tmp_path,
        "parent.py",
        PARENT + "parent = spawn(world, sys.argv[1] if world.rank == 0 else None, 2 if world.rank == 0 else -1)\n"
        "merged = parent.Merge(high=False)\nassert merged.allreduce(1) == world.size + 2\n"
        "window = MPI.Win.Allocate(8, 1, comm=merged)\nwindow.Fence()\n"
        "window.Put(bytes([merged.rank]), (merged.rank + 1) % merged.size)\nwindow.Fence()\n"
        "assert window.tomemory()[0] == (merged.rank - 1) % merged.size\nwindow.Free()\n"
        "total = parent.allreduce(merged.rank)\nassert total == sum(range(world.size, world.size + 2)), total\n"
        "merged.Disconnect()\nparent.Disconnect()\nprint('parted')\n",
    )
    status, output = ended(job(ranks, parent, child, btl=btl))
    assert status == 0, output
    assert output.count("parted") == ranks


def test_collectives_on_portals_leave_communicators_over_jobs_to_others(tmp_path: Path) -> None:
    merge = (
        "merged = {}.Merge()\ntotal = bytearray(1)\nmerged.Allreduce(b'\\1', total)\nassert total[0] == 4\n"
        "world.Allreduce(b'\\1', total)\nassert total[0] == 2\n"
        "merged.Disconnect()\n{}.Disconnect()\nprint('parted')\n"
    )
    child = program(tmp_path, "child.py", CHILD + merge.format("parent", "parent"))
    parent = program(tmp_path, "parent.py", PARENT + "child = spawn(world, sys.argv[1], 2)\n" + merge.format("child", "child"))
    status, output = ended(job(2, parent, child, more=("--mca", "coll", "portals,basic")))
    assert status == 0, output
    assert output.count("parted") == 4


def test_a_process_without_a_launcher_spawns_and_leaves_nothing(tmp_path: Path) -> None:
    child = program(tmp_path, "child.py", CHILD + "parent.send(world.rank, 0)\nparent.Disconnect()\n")
    text = PARENT + "child = spawn(world, sys.argv[1], 2)\nprint(sorted(child.recv() for _ in range(2)))\nchild.Disconnect()\n"
    status, output = ended(alone(program(tmp_path, "parent.py", text), child))
    assert (status, output) == (0, "[0, 1]\n")


def test_a_spawned_rank_spawns(tmp_path: Path) -> None:
    text = (
        "import sys\nfrom ompy import MPI\nparent = MPI.Comm.Get_parent()\nleft = int(sys.argv[1])\n"
        "below = 0\nif left:\n"
        "    child = MPI.COMM_SELF.Spawn(sys.executable, [sys.argv[0], str(left - 1)], 1)\n"
        "    below = child.recv()\n    child.Disconnect()\n"
        "if parent != MPI.COMM_NULL:\n    parent.send(below + 1, 0)\n    parent.Disconnect()\n"
        "else:\n    print('depth', below)\n"
    )
    status, output = ended(job(1, program(tmp_path, "generations.py", text), "2"))
    assert (status, output) == (0, "depth 2\n")


def test_ranks_of_ompyrun_within_a_step_of_slurm_spawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("JOB_ID", "12"), ("STEP_ID", "0"), ("PROCID", "0"), ("LOCALID", "0")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    child = program(tmp_path, "child.py", CHILD + "parent.send(world.rank, 0)\nparent.Disconnect()\n")
    text = PARENT + "child = spawn(world, sys.argv[1], 2)\nprint(sorted(child.recv() for _ in range(2)))\nchild.Disconnect()\n"
    status, output = ended(job(1, program(tmp_path, "parent.py", text), child))
    assert (status, output) == (0, "[0, 1]\n")


@pytest.mark.parametrize("pml", [("cm", "--mca", "mtl", "portals"), ("rpi",)], ids=["portals", "rpi"])
def test_a_transport_that_stays_within_its_job_says_so_before_anything_is_started(tmp_path: Path, pml: tuple[str, ...]) -> None:
    child = program(tmp_path, "child.py", "print('started')\n")
    text = (
        PARENT
        + "for call in (lambda: spawn(world, sys.argv[1], 1), lambda: world.Accept(''), lambda: world.Connect('none')):\n"
        "    try:\n        call()\n"
        "    except MPI.Exception as error:\n        print(error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION, error)\n"
        "assert world.allreduce(1) == world.size\n"
    )
    status, output = ended(
        start(*OMPYRUN, "-n", "2", "--mca", "pml", *pml, sys.executable, program(tmp_path, "p.py", text), child)
    )
    assert status == 0, output
    assert "started" not in output
    assert output.count("True") == output.count(f"pml {pml[0]}") == output.count("--mca pml ob1") == 6, output


@pytest.mark.parametrize("how", ["launcher", "alone"])
def test_a_program_that_is_not_there_is_an_error_of_spawn(tmp_path: Path, how: str) -> None:
    text = (
        "from ompy import MPI\n"
        "try:\n    MPI.COMM_WORLD.Spawn('/no/such/program', maxprocs=2)\n"
        "except MPI.Exception as error:\n    print(error.Get_error_class() == MPI.ERR_SPAWN, error)\n"
        "print(MPI.COMM_WORLD.allreduce(1))\n"
    )
    path = program(tmp_path, "parent.py", text)
    status, output = ended(job(1, path) if how == "launcher" else alone(path))
    assert status == 0, output
    assert "True" in output
    assert "/no/such/program" in output
    assert "No such file" in output


def test_a_program_without_mpi_is_an_error_of_spawn_on_every_rank(tmp_path: Path) -> None:
    text = (
        "from ompy import MPI\n"
        "try:\n    MPI.COMM_WORLD.Spawn('false', maxprocs=2, root=1)\n"
        "except MPI.Exception as error:\n    print(error.Get_error_class() == MPI.ERR_SPAWN, 'with code 1' in str(error))\n"
    )
    status, output = ended(job(2, program(tmp_path, "parent.py", text)))
    assert (status, output) == (0, "True True\n" * 2)


def test_arguments_of_a_spawned_program_arrive_as_they_are(tmp_path: Path) -> None:
    arguments = ["a\rnprocs=3", "a\x0barg1=evil", "endcmd", "is endcmd it", "\x85\u2028", "two\nlines", ""]
    child = program(tmp_path, "child.py", CHILD + "import sys\nparent.send(sys.argv[1:], 0)\n")
    text = PARENT + "child = world.Spawn(sys.executable, sys.argv[1:], 1)\nprint(child.recv() == sys.argv[2:])\n"
    status, output = ended(job(1, program(tmp_path, "parent.py", text), child, *arguments))
    assert (status, output) == (0, "True\n")


@pytest.mark.parametrize("who", ["parent", "child"])
def test_an_exception_in_a_job_of_one_that_is_connected_ends_both(tmp_path: Path, who: str) -> None:
    fails = "raise ValueError('on purpose')\n"
    child = program(tmp_path, "child.py", CHILD + (fails if who == "child" else "parent.recv()\n"))
    text = PARENT + "child = spawn(world, sys.argv[1], 1)\n" + (fails if who == "parent" else "child.recv()\n")
    status, output = ended(job(1, program(tmp_path, "parent.py", text), child))
    assert status == 1, output
    assert "on purpose" in output
    assert "seems to hang" not in output


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    text = PARENT + (
        "try: world.Accept(MPI.Open_port(), MPI.Info.Create({'timeout': sys.argv[1]}))\n"
        "except MPI.Exception as error: print(error.Get_error_class() == MPI.ERR_INFO_VALUE)\n"
    )
    status, output = ended(job(1, program(tmp_path, "asks.py", text), value))
    assert (status, output) == (0, "True\n")


@pytest.mark.parametrize("how", ["launcher", "alone"])
@pytest.mark.parametrize("child", ["sleep", "late"])
def test_who_is_interrupted_in_spawn_spawns_again_and_nothing_is_left(tmp_path: Path, how: str, child: str) -> None:
    first = {
        "sleep": "('sleep', ['1000'])",
        "late": "(sys.executable, ['-c', 'import time; time.sleep(2); from ompy import MPI'])",
    }
    late = program(tmp_path, "child.py", CHILD + "parent.send('here', 0)\nparent.Disconnect()\n")
    text = PARENT + (
        "import signal\n"
        "def interrupt(*_): raise TimeoutError\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        "for turn in range(2):\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.5)\n"
        f"    try: world.Spawn(*{first[child]}, 1)\n"
        "    except TimeoutError: print('interrupted', flush=True)\n"
        "    child = spawn(world, sys.argv[1], 1)\n"
        "    print(child.recv(), flush=True)\n"
        "    child.Disconnect()\n"
    )
    path = program(tmp_path, "parent.py", text)
    status, output = ended(job(1, path, late) if how == "launcher" else alone(path, late))
    assert (status, output) == (0, "interrupted\nhere\n" * 2)


@pytest.mark.parametrize("how", ["launcher", "alone"])
def test_more_arguments_than_the_launcher_takes_are_an_error_and_the_job_goes_on(tmp_path: Path, how: str) -> None:
    count = program(tmp_path, "child.py", "import sys\n" + CHILD + "parent.send(len(sys.argv) - 1, 0)\nparent.Disconnect()\n")
    text = PARENT + (
        "for count in 60000, 70000:\n"
        "    try:\n"
        "        child = world.Spawn(sys.executable, [sys.argv[1]] + ['y'] * count, 1)\n"
        "        print(child.recv(), flush=True)\n"
        "        child.Disconnect()\n"
        "    except MPI.Exception as error: print(error.Get_error_class() == MPI.ERR_ARG, error)\n"
    )
    path = program(tmp_path, "parent.py", text)
    status, output = ended(job(1, path, count) if how == "launcher" else alone(path, count))
    assert (status, output.splitlines()[0]) == (0, "60000"), output
    assert "True" in output
    assert "takes at most 65536" in output
    assert "70001 arguments" in output


def test_an_argument_that_is_longer_in_bytes_than_in_signs_is_an_error_and_the_job_goes_on(tmp_path: Path) -> None:
    text = (
        "from ompy import MPI\n"
        "try: MPI.COMM_WORLD.Spawn('true', ['\u20ac' * 30000], 1)\n"
        "except MPI.Exception as error: print(error.Get_error_class() == MPI.ERR_ARG, 'at most 60000 bytes' in str(error))\n"
    )
    status, output = ended(job(1, program(tmp_path, "parent.py", text)))
    assert (status, output) == (0, "True True\n")


def test_a_port_is_under_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    # What others on this host find there while it is written.
    text = PARENT + (
        "import os\n"
        "from ompy.runtime.dpm import names\n"
        "service = f'whole {os.getpid()}'\n"
        "def found(): return [name for name in os.listdir(names.SEGMENTS) if name.startswith(names.stem(service))]\n"
        "write = os.write\n"
        "def watched(descriptor, data):\n"
        "    print(len(found()), flush=True)\n"
        "    return write(descriptor, data)\n"
        "port = MPI.Open_port()\n"
        "names.os = type(os)('os')\n"
        "names.os.__dict__.update(os.__dict__, write=watched)\n"
        "MPI.Publish_name(service, port)\n"
        "print(len(found()), names.in_files(service) == port)\n"
        "MPI.Unpublish_name(service, port)\n"
        "print(len(found()))\n"
    )
    status, output = ended(alone(program(tmp_path, "program.py", text)))
    assert (status, output) == (0, "0\n1 True\n0\n")


@pytest.mark.parametrize("how", ["launcher", "alone"])
@pytest.mark.parametrize("word", [1, 2])
def test_who_is_interrupted_while_it_meets_those_it_has_spawned_spawns_again(tmp_path: Path, how: str, word: int) -> None:
    # Instead of its introduction, or of its consent, the first child's root sends its parent a signal, and nothing more.
    silent = program(
        tmp_path,
        "silent.py",
        "import os, signal, sys\nfrom ompy.runtime.dpm import channel\n"
        "send, words = channel.Channel.send, []\n"
        "def interrupt(*words_of_one):\n"
        "    words.append(words_of_one)\n"
        f"    if len(words) < {word}: return send(*words_of_one)\n"
        "    os.kill(int(sys.argv[1]), signal.SIGUSR1)\n"
        "    signal.pause()\n"
        "channel.Channel.send = interrupt\n" + CHILD,
    )
    late = program(tmp_path, "child.py", CHILD + "parent.send('here', 0)\nparent.Disconnect()\n")
    text = PARENT + (
        "import os, signal\n"
        "class Interruption(Exception): pass\n"
        "def interrupt(*_): raise Interruption\n"
        "signal.signal(signal.SIGUSR1, interrupt)\n"
        "for turn in range(2):\n"
        "    try: world.Spawn(sys.executable, [sys.argv[1], str(os.getpid())], 1)\n"
        "    except Interruption: print('interrupted', flush=True)\n"
        "    child = spawn(world, sys.argv[2], 1)\n"
        "    print(child.recv(), flush=True)\n"
        "    child.Disconnect()\n"
    )
    path = program(tmp_path, "parent.py", text)
    status, output = ended(job(1, path, silent, late) if how == "launcher" else alone(path, silent, late))
    assert (status, output) == (0, "interrupted\nhere\n" * 2)


def test_a_spawned_rank_that_fails_ends_the_job(tmp_path: Path) -> None:
    child = program(tmp_path, "child.py", CHILD + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    text = PARENT + "child = spawn(world, sys.argv[1], 1)\nchild.recv()\n"
    status, output = ended(job(2, program(tmp_path, "parent.py", text), child))
    assert status == 128 + signal.SIGKILL, output
    assert "rank 0 of spawned job 1" in output


def test_spawned_ranks_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    child = program(tmp_path, "child.py", CHILD + "import os\nparent.send(os.getpid(), 0)\nparent.recv()\n")
    text = PARENT + "child = spawn(world, sys.argv[1], 1)\nprint(child.recv(), flush=True)\nchild.recv()\n"
    process = alone(program(tmp_path, "parent.py", text), child)
    assert process.stdout is not None
    spawned = int(process.stdout.readline())
    gone = os.pidfd_open(spawned)
    process.kill()
    ended(process)  # its output ends when the last of them has gone
    os.close(gone)
    assert not Path(f"/proc/{spawned}").exists()


SERVER = """
import sys
from ompy import MPI
port = MPI.Open_port() if MPI.COMM_WORLD.rank == 0 else None
if port:
    print(port, flush=True)
for _ in range(int(sys.argv[1])):
    comm = MPI.COMM_WORLD.Accept(port)
    comm.barrier()
    if MPI.COMM_WORLD.rank == 0:
        comm.send(comm.recv(source=0) + 1, 0)
    comm.Disconnect()
"""
CLIENT = """
import sys
from ompy import MPI
comm = MPI.COMM_WORLD.Connect(sys.argv[1])
comm.barrier()
if MPI.COMM_WORLD.rank == 0:
    comm.send(41, 0)
    print(comm.recv(source=0))
comm.Disconnect()
"""


def port_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().strip()


@pytest.mark.parametrize("btl", ["sm", "zmq", "tcp"])
def test_two_jobs_meet_by_the_port_alone_one_client_after_the_other(tmp_path: Path, btl: str) -> None:
    server = job(2, program(tmp_path, "server.py", SERVER), "2", btl=btl)
    port = port_of(server)
    path = program(tmp_path, "client.py", CLIENT)
    clients = [job(ranks, path, port, btl=btl) for ranks in (1, 2)]
    assert [ended(client) for client in clients] == [(0, "42\n")] * 2
    assert ended(server) == (0, "")


def test_strangers_at_a_port_get_nothing_and_end_nothing(tmp_path: Path) -> None:
    server = job(1, program(tmp_path, "server.py", SERVER), "1")
    port = port_of(server)
    _, token, _, number, _ = port.split("/")
    strangers = []
    for words in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"ompy meeting 1\n" + bytes(32), b"", b"ompy meeting 1\n"):
        stranger = socket.create_connection(("127.0.0.1", int(number)), timeout=LIMIT)
        stranger.sendall(words)
        strangers.append(stranger)
    # One that speaks the language, but does not have the token: what it is told is no proof that it could use.
    strangers[2].sendall(bytes(32))
    wrong = port.replace(token, os.urandom(16).hex())
    status, output = ended(alone(program(tmp_path, "client.py", CLIENT), wrong))
    assert status != 0
    assert "does not have the port's token" in output
    assert ended(alone(str(tmp_path / "client.py"), port)) == (0, "42\n")
    assert ended(server) == (0, "")
    for stranger in strangers:
        stranger.close()


def test_connecting_where_nobody_accepts_is_an_error_with_the_address(tmp_path: Path) -> None:
    text = (
        "from ompy import MPI\nport = MPI.Open_port()\nhints = MPI.Info.Create({'timeout': '0.3'})\n"
        "def attempt(call, *arguments):\n"
        "    try:\n        call(*arguments)\n"
        "    except MPI.Exception as error:\n        print(error.Get_error_class() == MPI.ERR_PORT, error)\n"
        "attempt(MPI.COMM_SELF.Connect, port, hints)\n"
        "attempt(MPI.COMM_SELF.Accept, port, hints)\n"
        "MPI.Close_port(port)\n"
        "attempt(MPI.COMM_SELF.Connect, port, hints)\nattempt(MPI.COMM_SELF.Accept, port)\n"
        "attempt(MPI.COMM_SELF.Connect, 'elsewhere')\nattempt(MPI.Close_port, port)\n"
    )
    status, output = ended(alone(program(tmp_path, "nobody.py", text)))
    assert status == 0, output
    lines = output.splitlines()
    assert [line.split()[0] for line in lines] == ["True"] * 6
    assert "127.0.0.1" in lines[0]
    assert "nobody has accepted" in lines[0]
    assert "nobody has connected" in lines[1]
    assert "refused" in lines[2]


def test_a_name_is_known_to_other_jobs_as_long_as_it_is_published(tmp_path: Path) -> None:
    server = job(
        1,
        program(
            tmp_path,
            "server.py",
            "import os\nfrom ompy import MPI\nport = MPI.Open_port()\nname = f'dice & more {os.getpid()}'\n"
            "MPI.Publish_name(name, port)\nprint(name, flush=True)\n"
            "try:\n    MPI.Publish_name(name, port)\nexcept MPI.Exception as error:\n"
            "    assert error.Get_error_class() == MPI.ERR_SERVICE\n"
            "MPI.COMM_SELF.Accept(port).Disconnect()\nMPI.Unpublish_name(name, port)\n"
            "try:\n    MPI.Lookup_name(name)\nexcept MPI.Exception as error:\n"
            "    assert error.Get_error_class() == MPI.ERR_NAME\n",
        ),
    )
    text = "import sys\nfrom ompy import MPI\nMPI.COMM_SELF.Connect(MPI.Lookup_name(sys.argv[1])).Disconnect()\n"
    assert ended(job(1, program(tmp_path, "client.py", text), port_of(server))) == (0, "")
    assert ended(server) == (0, "")


def test_spawning_again_and_again_leaves_no_descriptors_and_no_shared_memory(tmp_path: Path) -> None:
    child = program(tmp_path, "child.py", CHILD + "parent.barrier()\nparent.Disconnect()\n")
    text = PARENT + (
        "import os\ndef counted():\n"
        "    maps = open('/proc/self/maps').read().count('ompy-')\n"
        "    return len(os.listdir('/proc/self/fd')), maps\n"
        "def once():\n    child = spawn(world, sys.argv[1], 1)\n    child.barrier()\n    child.Disconnect()\n"
        "once()\nonce()\nbefore = counted()\n"
        "for _ in range(5):\n    once()\n"
        "assert counted() == before, (before, counted())\n"
    )
    assert ended(job(1, program(tmp_path, "parent.py", text), child)) == (0, "")


def test_those_that_are_connected_finalise_together(tmp_path: Path) -> None:
    child = program(tmp_path, "child.py", CHILD + "parent.isend(bytes(1 << 20), 0)\n")
    text = PARENT + "child = spawn(world, sys.argv[1], 2)\nprint([len(child.recv(source=rank)) for rank in range(2)])\n"
    assert ended(job(1, program(tmp_path, "parent.py", text), child)) == (0, f"[{1 << 20}, {1 << 20}]\n")


def child_that_waits(folder: Path, mark: Path) -> str:
    """A program that begins MPI when the file is there."""
    wait = f"import os, time\nwhile not os.path.exists({str(mark)!r}): time.sleep(0.01)\n"
    return program(folder, "child.py", f"{wait}{CHILD}parent.Disconnect()\n")


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
def test_who_waits_for_processes_to_start_answers_a_rank_that_it_has_never_met(tmp_path: Path, btl: str) -> None:
    # The child begins MPI when rank 1's long message has arrived, for which rank 0 has to let it come.
    arrived = tmp_path / "arrived"
    child = child_that_waits(tmp_path, arrived)
    text = PARENT + (
        "import pathlib\nmessage = bytearray(1 << 20)\n"
        "if world.rank == 0:\n"
        "    receive = world.Irecv(message, 1)\n    child = spawn(MPI.COMM_SELF, sys.argv[1], 1)\n"
        "    receive.Wait()\n    child.Disconnect()\n"
        "else:\n"
        f"    world.Send(message, 0)\n    pathlib.Path({str(arrived)!r}).touch()\n"
    )
    status, output = ended(job(2, program(tmp_path, "parent.py", text), child, btl=btl))
    assert status == 0, output


def test_a_signal_handler_that_asks_the_launcher_while_its_thread_does_is_told_so(tmp_path: Path) -> None:
    # The child begins MPI when the handler has been there.
    heard = tmp_path / "heard"
    child = child_that_waits(tmp_path, heard)
    text = PARENT + (
        "import pathlib, signal\n"
        "def handle(*_):\n"
        "    try: MPI.Lookup_name('anything')\n"
        "    except MPI.Exception as error: print(error)\n"
        f"    pathlib.Path({str(heard)!r}).touch()\n"
        "signal.signal(signal.SIGALRM, handle)\nsignal.setitimer(signal.ITIMER_REAL, 0.5)\n"
        "spawn(world, sys.argv[1], 1).Disconnect()\n"
    )
    status, output = ended(job(1, program(tmp_path, "parent.py", text), child))
    assert status == 0, output
    assert "the launcher owes this thread an answer (spawn_result) still: a signal handler can't ask" in output


def test_spawned_processes_start_with_the_error_handler_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPI4PY_RC_ERRORS", "default")
    child = program(tmp_path, "child.py", CHILD + "assert world.Get_errhandler() == MPI.ERRORS_ABORT\nparent.Disconnect()\n")
    source = PARENT + (
        "for wrong in ('mpi_errors_ignore', ''):\n"
        "    try:\n"
        "        world.Spawn(sys.executable, [sys.argv[1]], 2, MPI.Info.Create({'mpi_initial_errhandler': wrong}))\n"
        "    except MPI.Exception as error:\n"
        "        assert error.Get_error_class() == MPI.ERR_INFO_VALUE and 'mpi_errors_return expected' in str(error)\n"
        "        print('told')\n"
        "info = MPI.Info.Create({'mpi_initial_errhandler': 'mpi_errors_abort'})\n"
        "world.Spawn(sys.executable, [sys.argv[1]], 2, info).Disconnect()\nprint('parted')\n"
    )
    parent = program(tmp_path, "parent.py", source)
    status, output = ended(job(1, parent, child, more=("-initial-errhandler", "mpi_errors_return")))
    assert status == 0, output
    assert output.split() == ["told", "told", "parted"]
