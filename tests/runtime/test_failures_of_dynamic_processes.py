"""What becomes of the others when a spawned process, one that spawned it, or the other side of a meeting fails."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from launching import OMPYRUN, Launch, python

LIMIT = ("--timeout", "60", "--report-state-on-timeout")
DIES = "os.kill(os.getpid(), signal.SIGKILL)\n"
HEAD = "import os, signal, sys\n"
# Before a spawned job's rank meets those who have spawned it.
MEETS = "from ompy.runtime.dpm import spawning\nspawning.meet_parent = lambda instance: os.kill(os.getpid(), signal.SIGKILL)\n"
CHILD = "from ompy import MPI\nworld = MPI.COMM_WORLD\nparent = MPI.Comm.Get_parent()\n"
PARENT = (
    "import sys\nfrom ompy import MPI\nworld = MPI.COMM_WORLD\n"
    "def spawn(*programs):\n"
    "    return world.Spawn(sys.executable, ['-c', *programs], 2)\n"
    "def tried(call):\n"
    "    try:\n        return call()\n"
    "    except MPI.Exception as error:\n        print(MPI.Get_error_string(error.Get_error_class()), '|', error, flush=True)\n"
)


def run(*arguments: str, environment: dict[str, str] | None = None) -> Launch:
    """A job, to its end; nothing of it is left."""
    with Launch(*arguments, environment=environment) as it:
        it.finish(70)
        assert it.wait_until_gone() == []
    return it


def job(child: str, parent: str, *options: str, ranks: int = 2) -> Launch:
    """Ranks that spawn two: the parent's text is `PARENT` and `parent`, the child's is argv[1] there."""
    return run(*LIMIT, *options, "-n", str(ranks), *python(PARENT + parent), child)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_child_that_dies_before_it_has_begun_mpi_is_an_error_of_spawn(rank: int) -> None:
    child = HEAD + f"if os.environ['PMI_RANK'] == '{rank}': {DIES}" + CHILD
    it = job(child, "tried(lambda: spawn(sys.argv[1]))\nprint(world.allreduce(1))\n")
    assert it.process.returncode == 0, it.stderr
    assert it.stdout.count("could not spawn") == 4
    assert it.stdout.count("killed by SIGKILL before all had begun MPI") == 2
    assert it.stdout.count("\n2\n") or it.stdout.endswith("2\n2\n")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_child_that_dies_before_it_meets_its_parents_ends_the_job(rank: int) -> None:
    child = HEAD + f"if os.environ['PMI_RANK'] == '{rank}':\n    " + MEETS.replace("\n", "\n    ") + "\n" + CHILD
    it = job(child, "tried(lambda: spawn(sys.argv[1]))\n")
    assert it.process.returncode == 128 + signal.SIGKILL
    assert f"rank {rank} of spawned job 1" in it.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_a_child_that_dies_before_it_meets_its_parents_is_an_error_of_spawn_where_the_job_goes_on(rank: int) -> None:
    child = HEAD + f"if os.environ['PMI_RANK'] == '{rank}':\n    " + MEETS.replace("\n", "\n    ") + "\n" + CHILD
    it = job(child, "tried(lambda: spawn(sys.argv[1]))\nprint(world.allreduce(1))\n", "--enable-recovery")
    assert it.process.returncode == 128 + signal.SIGKILL
    assert it.stdout.count(f"its rank {rank} was killed by SIGKILL before it met those who have spawned it") == 2, it.stdout
    assert it.stdout.count("2\n") == 2


@pytest.mark.long
@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
def test_parents_hear_that_a_child_they_never_spoke_to_has_failed(btl: str) -> None:
    child = HEAD + CHILD + f"parent.barrier()\nif world.rank == 1: {DIES}parent.recv(source=0)\nMPI.COMM_WORLD.Abort(0)\n"
    parent = "child = spawn(sys.argv[1])\nchild.barrier()\ntried(lambda: child.recv(source=1))\nworld.barrier()\n"
    parent += "if world.rank == 0: child.send(0, 0)\nworld.Abort(3)\n"
    it = job(child, parent, "--enable-recovery", "--mca", "btl", f"self,{btl}")
    assert it.stdout.count("a peer process failed") >= 2, it.stderr


@pytest.mark.long
def test_first_contact_with_a_process_that_is_just_ending_says_that_it_has_failed(tmp_path: Path) -> None:
    """Much memory takes the system a while to give back: the process is still there, and can't be reached any more."""
    flag = tmp_path / "flag"
    child = HEAD + CHILD + "memory = MPI.Alloc_mem(400 << 20)\nmemory[:] = bytes(400 << 20)\n"
    child += f"open({str(flag)!r}, 'w').close()\n{DIES}"
    parent = (
        "import os, time\n"
        "def send(child):\n"
        f"    while not os.path.exists({str(flag)!r}): pass\n"
        f"    os.remove({str(flag)!r})\n"
        "    for _ in range(100): child.send(None, 0), time.sleep(0.001)\n"
        "for _ in range(5): tried(lambda: send(MPI.COMM_SELF.Spawn(sys.executable, ['-c', sys.argv[1]], 1)))\n"
    )
    it = job(child, parent, "--enable-recovery", ranks=1)
    assert re.findall(r"^(.*?) \|", it.stdout, re.MULTILINE) == ["a peer process failed"] * 5, it.stdout


@pytest.mark.long
@pytest.mark.parametrize("end", [DIES, "world.Abort(7)\n"], ids=["killed", "abort"])
@pytest.mark.parametrize("recovery", [(), ("--enable-recovery",)], ids=["", "recovery"])
def test_a_job_that_has_disconnected_fails_alone(end: str, recovery: tuple[str, ...]) -> None:
    child = HEAD + CHILD + f"parent.Disconnect()\nif world.rank == 1:\n    {end}\nworld.barrier()\n"
    # Those who go on wait until all of the other job has ended: its shared memory has gone then, and its processes.
    parent = (
        "import os\nchild = spawn(sys.argv[1], *sys.argv[2:])\nchild.Disconnect()\n"
        "launcher = os.getppid()\n"
        "def others():\n"
        "    ranks = open(f'/proc/{launcher}/task/{launcher}/children').read().split()\n"
        "    return len(ranks) - 1 - world.size\n"
        "while others(): pass\n"
        "world.barrier()\nprint('here', world.allreduce(1))\n"
    )
    it = job(child, parent, *recovery)
    assert it.process.returncode == (7 if "Abort" in end else 128 + signal.SIGKILL), it.stderr
    assert it.stdout == "here 2\n" * 2, it.stderr
    assert "rank 1 of spawned job 1" in it.stderr


def test_a_job_that_is_connected_with_another_one_does_not_fail_alone() -> None:
    """The first child parts from its parents, but not from the second."""
    port = "port = parent.recv(source=0) if world.rank == 0 else None\n"
    child = HEAD + CHILD + "parent.Disconnect()\nserved = world.Accept(port)\nserved.barrier()\n"
    child = child.replace(
        "parent.Disconnect()", "port = MPI.Open_port()\nif world.rank == 0: parent.send(port, 0)\nparent.Disconnect()"
    )
    child += f"if world.rank == 0: {DIES}served.recv(source=0)\n"
    other = HEAD + CHILD + port + "met = world.Connect(port)\nmet.barrier()\nmet.recv(source=0)\n"
    parent = (
        "first = spawn(sys.argv[1])\nport = first.recv() if world.rank == 0 else None\nfirst.Disconnect()\n"
        "second = spawn(sys.argv[2])\nif world.rank == 0: second.send(port, 0)\nsecond.recv(source=0)\n"
    )
    it = run(*LIMIT, "-n", "1", *python(PARENT + parent), child, other)
    assert it.process.returncode == 128 + signal.SIGKILL
    assert "time is over" not in it.stderr


def test_a_rank_that_fails_after_a_job_that_had_disconnected_ends_the_others() -> None:
    child = HEAD + CHILD + "parent.Disconnect()\nos._exit(3)\n"
    parent = (
        "import os, signal\nchild = spawn(sys.argv[1])\nchild.Disconnect()\n"
        "launcher = os.getppid()\n"
        "def others():\n"
        "    return len(open(f'/proc/{launcher}/task/{launcher}/children').read().split()) - 1 - world.size\n"
        "while others(): pass\n"
        f"world.barrier()\nif world.rank == 0: {DIES}signal.pause()\n"
    )
    it = job(child, parent)
    assert it.process.returncode == 3, it.stderr
    assert re.search(r"rank 0 \(.*\) killed by SIGKILL", it.stderr)


# A launcher that does nothing as long as a file is there, and says by another one that it has begun to.
HELD = """
import os, sys, time
from ompy.cli.ompyrun import main
from ompy.runtime.loop import Loop
turn = Loop.turn
def held(loop, limit=None):
    while os.path.exists("hold"):
        open("held", "w").close()
        time.sleep(0.01)
    turn(loop, limit)
Loop.turn = held
sys.argv[0] = "ompyrun"
sys.exit(main())
"""
UNTIL = "import os, time\ndef until(condition):\n    while not condition(): time.sleep(0.01)\n"
HOLDS = UNTIL + (
    "def hold():\n"
    "    open('hold', 'w').close()\n    print('wakes', flush=True)\n    until(lambda: os.path.exists('held'))\n"
    "def has_ended(pid): return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] == 'Z'\n"
)


@pytest.mark.parametrize("end", ["exits", "aborts"])
def test_children_that_fail_when_they_have_been_given_up_are_no_failure(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the launcher is slow, and hears of all of it at once."""
    fail = {"exits": "told(), os._exit(3)", "aborts": "instance.rte.wire.tell('abort exitcode=3'), told(), signal.pause()"}
    child = HEAD + UNTIL
    child += (
        "from ompy.runtime.dpm import spawning\n"
        "def told(): print(os.getpid(), file=open('new', 'w'), flush=True), os.rename('new', 'told')\n"
        f"def fail(instance): until(lambda: os.path.exists('given up')), {fail[end]}\n"
        "spawning.meet_parent = fail\n" + CHILD
    )
    ended = "until(lambda: has_ended(int(open('told').read())))\n" if end == "exits" else ""
    parent = PARENT + HOLDS
    parent += (
        "from ompy.runtime.dpm.port import Port\naccept = Port.accept\n"
        "def interrupted(*_):\n    hold()\n    raise TimeoutError\n"
        "Port.accept = interrupted\n"
        "try: world.Spawn(sys.executable, ['-c', sys.argv[1]], 1)\n"
        "except TimeoutError: open('given up', 'w').close()\n"
        "until(lambda: os.path.exists('told'))\n" + ended + "os.unlink('hold')\n"
        "Port.accept = accept\nspawn(sys.argv[2]).Disconnect()\n"
    )
    monkeypatch.chdir(tmp_path)
    command = (*LIMIT, "-n", "1", *python(parent), child, CHILD + "parent.Disconnect()\n")
    with Launch(*command, command=python(HELD)) as it:
        it.finish(70)
        assert it.wait_until_gone() == []
    assert (it.process.returncode, it.stdout) == (0, "wakes\n"), it.stderr


def test_a_program_that_ends_without_mpi_while_another_one_waits_for_it_is_an_error_of_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "cmd=init pmi_version=1 pmi_subversion=1\\ncmd=barrier_in\\n"
    waits = HEAD + f"os.write(int(os.environ['PMI_FD']), b'{words}')\nos.mkdir('waits')\nsignal.pause()\n"
    ends = "until [ -d waits ]; do sleep 0.01; done"
    parent = (
        "both = [sys.executable, 'sh'], [['-c', argument] for argument in sys.argv[1:]]\n"
        "tried(lambda: world.Spawn_multiple(*both, [1, 1]))\nprint(world.allreduce(1))\n"
    )
    monkeypatch.chdir(tmp_path)
    it = run(*LIMIT, "-n", "1", *python(PARENT + parent), waits, ends)
    assert it.process.returncode == 0, it.stderr
    assert "exited with code 0 before all had begun MPI" in it.stdout
    assert it.stdout.endswith("\n1\n")


# Of a process without a launcher.
AWAITS = "import os, select\ndef await_end(process): select.select([process], [], [])\n"
ANSWERS = CHILD + "parent.send(parent.recv(source=0), 0)\nparent.Disconnect()\n"
ASK = (
    "def ask(child):\n    for rank in (0, 1): child.send('here', rank)\n    print(child.recv(source=0), child.recv(source=1))\n"
)


def test_a_spawned_job_that_fails_ends_nothing_that_its_parent_has_spawned_beside_it() -> None:
    fails = HEAD + CHILD + "if world.rank == 0: parent.recv(source=0), os._exit(3)\n"
    fails += "parent.send(os.getpid(), 0)\nsignal.pause()\n"
    parent = PARENT + AWAITS + ASK
    parent += (
        "first, second = spawn(sys.argv[1]), spawn(sys.argv[2])\n"
        "other = os.pidfd_open(first.recv(source=1))\nfirst.send(1, 0)\nawait_end(other)\n"
        "third = spawn(sys.argv[2])\n"
        "for child in second, third: ask(child), child.Disconnect()\n"
    )
    with Launch(fails, ANSWERS, command=python(parent)) as it:
        assert it.finish(70) == 0, it.stderr
        assert it.wait_until_gone() == []
    assert it.stdout == "here here\n" * 2
    assert it.stderr.count("rank 0 of spawned job 1") == 1


def test_a_spawned_job_that_fails_ends_one_that_has_met_it() -> None:
    fails = HEAD + CHILD
    fails += (
        "port = MPI.Open_port()\nif world.rank == 0: parent.send(port, 0)\nserved = world.Accept(port)\nserved.barrier()\n"
        "if world.rank == 0: parent.recv(source=0), os._exit(3)\nsignal.pause()\n"
    )
    meets = HEAD + CHILD
    meets += (
        "met = world.Connect(parent.recv(source=0) if world.rank == 0 else None)\nmet.barrier()\n"
        "parent.send(os.getpid(), 0)\nsignal.pause()\n"
    )
    parent = PARENT + AWAITS + ASK
    parent += (
        "first, second = spawn(sys.argv[1]), spawn(sys.argv[2])\n"
        "second.send(first.recv(source=0), 0)\nothers = [os.pidfd_open(second.recv(source=rank)) for rank in (0, 1)]\n"
        "first.send(1, 0)\n"
        "for other in others: await_end(other)\n"
        "third = spawn(sys.argv[3])\nask(third)\nthird.Disconnect()\n"
    )
    with Launch(fails, meets, ANSWERS, command=python(parent)) as it:
        assert it.finish(70) == 0, it.stderr
        assert it.wait_until_gone() == []
    assert it.stdout == "here here\n"


def test_children_end_with_a_parent_that_dies() -> None:
    child = HEAD + CHILD + "parent.barrier()\nparent.recv(source=1)\n"
    parent = f"import os, signal\nchild = spawn(sys.argv[1])\nchild.barrier()\nif world.rank == 0: {DIES}world.barrier()\n"
    it = job(child, parent)
    assert it.process.returncode == 128 + signal.SIGKILL
    assert "rank 0 (" in it.stderr


# Two jobs that know nothing of each other: the server prints its port, the client gets it.
SERVER = "port = MPI.Open_port() if world.rank == 0 else None\nif port: print(port, flush=True)\ncomm = world.Accept(port)\n"
CLIENT = "comm = world.Connect(sys.argv[1])\n"


def meeting(server: str, client: str, btl: str = "sm", ranks: int = 2) -> tuple[Launch, Launch]:
    """Both jobs, ended; neither leaves a process."""
    options = (*LIMIT, "--mca", "btl", f"self,{btl}", "-n", str(ranks))
    with Launch(*options, *python(PARENT + SERVER + HEAD + server)) as serving:
        (port,) = serving.lines(1)
        calling = run(*options, *python(PARENT + CLIENT + HEAD + client), port)
        serving.finish(70)
        assert serving.wait_until_gone() == []
    return serving, calling


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
def test_the_death_of_a_job_that_is_connected_is_an_error_of_what_waits_for_it(btl: str) -> None:
    server, client = meeting(
        "comm.send(0, 0)\ntried(lambda: comm.recv(source=0))\nworld.barrier()\nworld.Abort(5)\n",
        f"if world.rank == 0:\n    for rank in range(2): comm.recv(source=rank)\n    {DIES}comm.recv(source=0)\n",
        btl,
    )
    assert client.process.returncode == 128 + signal.SIGKILL
    assert server.process.returncode == 5, server.stderr
    assert server.stdout.count("a peer process failed") >= 2


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
def test_the_death_of_a_job_that_has_disconnected_is_none_of_ours(btl: str) -> None:
    server, client = meeting(
        "comm.Disconnect()\ncomm = world.Accept(port)\ncomm.barrier()\ncomm.Disconnect()\nprint(world.allreduce(1))\n",
        "comm.Disconnect()\nworld.barrier()\nif world.rank == 0:\n    comm = MPI.COMM_SELF.Connect(sys.argv[1])\n"
        "    comm.barrier()\n    comm.Disconnect()\n" + DIES,
        btl,
    )
    assert client.process.returncode == 128 + signal.SIGKILL
    assert (server.process.returncode, server.stdout) == (0, "2\n2\n"), server.stderr


def test_a_server_that_dies_in_accept_is_an_error_of_connect() -> None:
    options = (*LIMIT, "-n", "1")
    with Launch(*options, *python(PARENT + SERVER)) as server:
        (port,) = server.lines(1)
        server.process.kill()
        assert server.wait_until_gone() == []
    client = run(*options, *python(PARENT + "tried(lambda: world.Connect(sys.argv[1]))\n"), port)
    assert client.process.returncode == 0
    assert "invalid port name" in client.stdout or "port" in client.stdout.partition("|")[0]
    assert "Connection refused" in client.stdout


@pytest.mark.parametrize(
    "port",
    [
        "",
        "nonsense",
        "ompy1",
        "ompy1/zz/host/1/127.0.0.1",
        "ompy1/" + "00" * 16 + "/host/0/127.0.0.1",
        "ompy1/" + "00" * 16 + "/host/99999/127.0.0.1",
        "ompy1/" + "00" * 16 + "/host/1/",
        "ompy1/" + "00" * 16 + "/host/1/no.such.host.invalid",
        "ompy1/" + "00" * 15 + "/host/1/127.0.0.1",
        "tag#0$description#x$port#1$ifname#127.0.0.1$",
        "\0" * 1024,
        "é" * 1024,
    ],
)
def test_what_is_no_port_is_an_error(port: str, tmp_path: Path) -> None:
    path = tmp_path / "port"
    path.write_text(port)
    source = PARENT + "name = open(sys.argv[1]).read()\nhint = MPI.Info.Create({'timeout': '5'})\n"
    source += "tried(lambda: MPI.COMM_SELF.Connect(name, hint))\ntried(lambda: MPI.COMM_SELF.Accept(name))\n"
    source += "tried(lambda: MPI.Close_port(name))\n"
    done = run("-n", "1", *python(source), str(path))
    assert done.process.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3, done.stdout


def test_who_accepts_and_whom_nobody_calls_can_be_asked_whom_he_waits_for() -> None:
    with Launch("-n", "1", *python(PARENT + SERVER)) as server:
        (port,) = server.lines(1)
        report = ""
        while "Comm_accept" not in report:
            os.kill(server.process.pid, signal.SIGQUIT)
            assert server.process.stderr is not None
            report = server.process.stderr.readline().decode()
        assert f"port {port.split('/')[3]}" in report
        server.process.terminate()
        server.finish()
        assert server.wait_until_gone() == []


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
@pytest.mark.parametrize("how", ["alone", "launcher"])
def test_spawning_again_and_again_leaves_nothing(how: str, btl: str) -> None:
    """Neither in the process that spawns nor in the launcher: descriptors, children, mappings, files of shared memory."""
    source = PARENT + (
        "import os, time\n"
        "def counted():\n"
        "    here, above = os.getpid(), os.getppid()\n"
        "    launcher = above if sys.argv[2] == 'launcher' else int(open(f'/proc/self/task/{here}/children').read())\n"
        # A job ends a moment after it has disconnected; the launcher's keeper stays, and this process where it is a child.
        "    while len(open(f'/proc/{launcher}/task/{launcher}/children').read().split()) > 1 + (launcher == above):\n"
        "        MPI.COMM_SELF.Iprobe()\n"
        "    files = sum(str(pid) in name for name in os.listdir('/dev/shm') for pid in (here, launcher))\n"
        "    maps = open('/proc/self/maps').read().count('ompy-')\n"
        "    return *[len(os.listdir(f'/proc/{pid}/fd')) for pid in (here, launcher)], files, maps\n"
        "def once():\n    child = spawn(sys.argv[1])\n    child.barrier()\n    child.Disconnect()\n"
        "once()\nonce()\nbefore = counted()\n"
        "for _ in range(8): once()\n"
        # What is left each time is six at least, though two were still open before; what is made once, as when the engine
        # sleeps first, is fewer.  A transport closes connections when it is looked at.
        "left = lambda found: any(now - then >= 6 for now, then in zip(found, before))\n"
        "end = time.monotonic() + 10\n"
        "while left(found := counted()) and time.monotonic() < end: MPI.COMM_SELF.Iprobe()\n"
        "print(not left(found) or (before, found))\n"
    )
    child = CHILD + "parent.barrier()\nparent.Disconnect()\n"
    command = (*python(source), child, how)
    environment = {"OMPY_MCA_btl": f"self,{btl}"}
    if how == "launcher":
        it = run(*LIMIT, "-n", "1", *command, environment=environment)
    else:
        with Launch(command=command, environment=environment) as it:
            it.finish(60)
            assert it.wait_until_gone() == []
    assert (it.process.returncode, it.stdout) == (0, "True\n"), it.stderr
    assert not [name for name in os.listdir("/dev/shm") if str(it.process.pid) in name.split("-")]


HERE = ("--mca", "plm", "local")


@pytest.mark.parametrize("hosts", ["a:1,b:1", "localhost:1,b:1"])
def test_spawned_ranks_run_on_the_hosts_of_the_job(hosts: str) -> None:
    child = HEAD + CHILD + "parent.send((world.rank, world.size, os.environ['MPI_LOCALNRANKS']), 0)\nparent.Disconnect()\n"
    parent = "child = world.Spawn(sys.executable, ['-c', sys.argv[1]], 3)\n"
    parent += "if world.rank == 0: print(sorted(child.recv() for _ in range(3)))\nchild.Disconnect()\n"
    it = run(*LIMIT, *HERE, "--host", hosts, *python(PARENT + parent), child)
    assert (it.process.returncode, it.stdout) == (0, "[(0, 3, '2'), (1, 3, '1'), (2, 3, '2')]\n"), it.stderr


def test_a_program_that_is_missing_on_another_host_is_an_error_of_spawn_and_the_others_end() -> None:
    parent = (
        "hint = MPI.Info.Create({'host': 'b'})\n"
        "call = lambda: world.Spawn_multiple([sys.executable, '/no/such'], [['-c', 'import signal; signal.pause()'], []],"
        " [1, 1], [MPI.INFO_NULL, hint])\n"
        "tried(call)\nprint(world.allreduce(1))\n"
    )
    it = run(*LIMIT, *HERE, "--host", "a:1,b:1", *python(PARENT + parent))
    assert it.process.returncode == 0, it.stderr
    assert it.stdout.count("host b: can't start '/no/such': No such file or directory") == 2, it.stdout


def test_spawned_ranks_are_allowed_the_descriptors_that_they_cost_the_launcher() -> None:
    parent = "tried(lambda: world.Spawn('false', maxprocs=24))\n"
    little = ("sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *OMPYRUN)
    with Launch("-n", "1", *python(PARENT + parent), command=little) as it:
        assert it.finish(70) == 0, it.stderr
    assert "false: exited with code 1 before all had begun MPI" in it.stdout


def test_a_host_that_is_none_of_the_jobs_is_an_error_of_spawn() -> None:
    parent = "tried(lambda: world.Spawn('true', maxprocs=1, info=MPI.Info.Create({'host': 'elsewhere'})))\n"
    it = run("-n", "1", *python(PARENT + parent))
    assert it.process.returncode == 0
    assert "host elsewhere is none of the job's" in it.stdout
