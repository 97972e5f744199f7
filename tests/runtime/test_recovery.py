"""Jobs that go on without the ranks that fail: whoever waits for one of them hears it, and the others still end together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launching import Launch, launch, mpi, python

DIES = "os.kill(os.getpid(), signal.SIGKILL)"
SURVIVOR = """
comm.Set_errhandler(MPI.ERRORS_RETURN)
WINDOW = 65536
mine, all = bytearray(b"x" * WINDOW), bytearray(WINDOW * comm.size)
def tried(call):
    try:
        call()
    except MPI.Exception as error:
        print(f"{rank}: {error.Get_error_class() == MPI.ERR_PROC_FAILED} {error}", flush=True)
    else:
        print(f"{rank}: done", flush=True)
comm.Barrier()
"""
# What has coll/han divide the world at once.
TWO_HOSTS = tuple(
    word
    for name, value in (("pretended_hosts", "0,0,1,1"), ("first_calls", "0"), ("priority", "50"))
    for word in ("--mca", f"coll_han_{name}", value)
)
# Rank 1 fails when the others are out of what was before.
AFTER_ALL = "comm.gather(None, root=1)"
COLLECTIVES = {
    "Barrier": "comm.Barrier()",
    "Bcast from the rank": "comm.Bcast(mine, root=1)",
    "Allgather": "comm.Allgather(mine, all)",
    "Alltoall": "comm.Alltoall(all, bytearray(len(all)))",
    "allreduce": "comm.allreduce(rank)",
    "Scan": "comm.Scan(mine, bytearray(WINDOW))",
    "Ibarrier": "comm.Ibarrier().Wait()",
    "Iallgather": "comm.Iallgather(mine, all).Wait()",
    "Dup": "comm.Dup(), comm.Barrier()",
    "Split": "comm.Split(0)",
}
HEARD = """
def hear():
    try:
        comm.recv(source=1)
    except MPI.Exception:
        pass
"""

# Which ranks of a call have the error depends on who needs the failed one.
OBJECTS = {
    "scatter": "comm.scatter([b'x' * WINDOW] * comm.size)",
    "scatter from the rank": "comm.scatter([rank] * comm.size, root=1)",
    "gather": "comm.gather(b'x' * WINDOW)",
    "alltoall": "comm.alltoall([rank] * comm.size)",
    "alltoall of much": "comm.alltoall([b'x' * WINDOW] * comm.size)",
    "reduce to the last": "comm.reduce(rank, root=3)",
    "scan": "comm.scan(rank)",
    "exscan": "comm.exscan(rank)",
    "neighbor_alltoall": "ring.neighbor_alltoall([rank, rank])",
}


def survive(setup: str, call: str, *options: str, ranks: int = 4, dies: str = DIES, before: str = AFTER_ALL) -> Launch:
    """A job of which rank 1 fails, after what they do `before`, and the others try `call`."""
    source = f"{SURVIVOR}{setup}\n{before}\nif rank == 1: {dies}\ntried(lambda: ({call}))"
    return launch("-n", str(ranks), "--enable-recovery", "--timeout", "60", *options, *mpi(source))


def survivors(job: Launch, ranks: int = 4) -> dict[int, str]:
    assert job.process.returncode == 137, job.stderr
    told = dict(re.findall(r"^(\d): (.*)$", job.stdout, re.MULTILINE))
    assert sorted(told) == [str(rank) for rank in range(ranks) if rank != 1], job.stderr
    return {int(rank): words for rank, words in told.items()}


@pytest.mark.parametrize("coll", ["sm,tuned,basic", "tuned,basic", "basic", "han,sm,tuned,basic", "portals,basic"])
@pytest.mark.parametrize("call", COLLECTIVES.values(), ids=COLLECTIVES)
def test_a_collective_with_a_failed_rank_is_an_error_on_every_rank_that_waits(call: str, coll: str) -> None:
    # The job ends by finalisation: the survivors meet without the rank that failed.
    told = survivors(survive("", call, "--mca", "coll", coll, *TWO_HOSTS * ("han" in coll)))
    if "Scan" in call:
        del told[0]  # it needs nobody
    for words in told.values():
        assert re.match(
            r"True .*rank 1 of ompy-\S+ \(host \S+, pid \d+\) is gone: |True .* \(rank 1 of job \S+\) has died", words
        )


@pytest.mark.parametrize("call", OBJECTS.values(), ids=OBJECTS)
def test_a_collective_of_objects_with_a_failed_rank_holds_nobody_up(call: str) -> None:
    setup = HEARD + f"ring = comm.Create_cart([4], [True])\ndef call():\n    if rank == 0: hear()\n    {call}"
    told = survivors(survive(setup, "call()"))
    assert any(words.startswith("True") for words in told.values()), told
    assert all(words == "done" or words.startswith("True") for words in told.values()), told


def test_both_groups_are_told_of_a_failure_in_one_amid_a_reduction_of_objects() -> None:
    # Rank 1 leads the other group.
    setup = "sides = comm.Split(rank % 2)\ninter = sides.Create_intercomm(0, comm, 1 - rank % 2)\n"
    told = survivors(survive(setup, "inter.allreduce(rank)"))
    assert all(words.startswith("True") for words in told.values()), told


def test_a_failure_is_heard_by_ranks_that_never_met_the_failed_one() -> None:
    # Rank 3 waits for rank 2, which lives, and which waits for rank 1.
    call = "comm.Bcast(mine, root=1)"
    told = survivors(survive("", call, "--mca", "coll", "basic", "--mca", "btl", "zmq,self"))
    assert all("rank 1 of" in words for words in told.values())


def test_who_only_tests_hears_it_too() -> None:
    setup = "def test():\n    request = comm.Ibarrier()\n    while not request.Test(): pass"
    assert all(words.startswith("True") for words in survivors(survive(setup, "test()")).values())


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
@pytest.mark.parametrize("send", ["comm.Send(mine[:8], 1)", "comm.Isend(mine[:8], 1).Wait()", "comm.send(1, 1)"])
def test_who_only_sends_short_messages_hears_it_too(send: str, btl: str) -> None:
    # Far fewer than there is room for.
    setup = f"""
def is_there(pid):
    try:
        return "\\nState:\\tZ" not in open(f"/proc/{{pid}}/status").read()
    except OSError:
        return False
def send(pids=comm.allgather(os.getpid())):
    while is_there(pids[1]): pass
    for _ in range(1000):
        {send}
        time.sleep(0.001)"""
    told = survivors(survive(setup, "send()", "--mca", "btl", f"self,{btl}", ranks=2, before=""), ranks=2)
    assert told[0].startswith("True"), told


def test_messages_between_survivors_go_on() -> None:
    call = "comm.Sendrecv(mine, (rank + 2) % 4, recvbuf=all, source=(rank - 2) % 4) if rank != 3 else comm.recv(source=1)"
    told = survivors(survive("", call, ranks=4))
    assert told[3].startswith("True")
    source = f"if rank == 1: {DIES}\nif rank == 0: print(comm.recv(source=2))\nif rank == 2: comm.send('here', 0)"
    job = launch("-n", "3", "--enable-recovery", "--timeout", "60", *mpi(source))
    assert job.stdout == "here\n", job.stderr


# Of two ranks, after whose failure there is nobody left.
IN_VAIN = {
    "a probe": "comm.Probe(1)",
    "a matched probe": "comm.Mprobe(1)",
    "one look after another": "[comm.Iprobe(1) for _ in iter(int, 1)]",
    "a matched look after another": "[comm.Improbe(1) for _ in iter(int, 1)]",
    "a receive from anybody": "comm.recv()",
    "a probe for anybody": "comm.Probe()",
}
LAYERS = {"ob1": ("--mca", "pml", "ob1"), "portals": ("--mca", "pml", "cm", "--mca", "mtl", "portals")}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("call", IN_VAIN.values(), ids=IN_VAIN)
def test_what_nobody_is_left_to_send_is_waited_for_no_more(call: str, layer: tuple[str, ...]) -> None:
    setup = f"def twice():\n    try: {call}\n    except MPI.Exception: {call}"
    told = survivors(survive(setup, "twice()", *layer, ranks=2), ranks=2)
    assert told[0].startswith("True"), told


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_sends_that_fill_all_queues_to_a_rank_that_fails_all_end(layer: tuple[str, ...]) -> None:
    # Rank 1 takes nothing: its transport, the kernel's queue and the library's are full.
    setup = """
pids = comm.allgather(os.getpid())
def send():
    requests = [comm.Isend(mine[:8], 1) for _ in range(20000)]
    os.kill(pids[1], signal.SIGKILL)
    failures = 0
    for request in requests:
        try: request.Wait()
        except MPI.Exception as error: failures += error.Get_error_class() == MPI.ERR_PROC_FAILED
    print("failures:", failures > 1000, flush=True)"""
    job = survive(setup, "send()", *layer, ranks=2, dies="signal.pause()")
    assert survivors(job, ranks=2) == {0: "done"}, job.stderr
    assert "failures: True" in job.stdout, job.stdout


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("receive", ["comm.Recv(found, 1, 5)", "comm.Irecv(found, 1, 5).Wait()", "comm.Recv(found)"])
def test_a_message_that_came_before_its_sender_failed_is_received(receive: str, layer: tuple[str, ...]) -> None:
    setup = f"""
found = bytearray(8)
if rank == 1: comm.Send(b"the last", 0, 5)
def take():
    comm.Probe(1, 5)
    try: comm.recv(source=1, tag=6)
    except MPI.Exception: pass
    {receive}
    assert found == b"the last"
"""
    told = survivors(survive(setup, "take()", *layer, ranks=2, before=""), ranks=2)
    assert told == {0: "done"}


def test_communicators_without_the_failed_rank_go_on() -> None:
    setup = "others = comm.Create_group(comm.group.Excl([1])) if rank != 1 else None\ncomm.Barrier()"
    assert set(survivors(survive(setup, "others.Barrier(), others.allreduce(1)")).values()) == {"done"}


def test_members_of_a_new_communicator_are_told_by_its_leader_though_one_has_failed() -> None:
    setup = HEARD + "def make():\n    if rank == 0: hear()\n    comm.Create_group(comm.group)"
    told = survivors(survive(setup, "make()"))
    assert told[0].startswith("True")
    assert told[2] == told[3] == "done"


INTRODUCTIONS = {
    "Create_intercomm": "sides.Create_intercomm(0, comm, 1 - rank % 2)",
    "Dup": "inter.Dup()",
    "Split": "inter.Split(0, rank)",
    "Merge": "inter.Merge()",
}


@pytest.mark.parametrize("call", INTRODUCTIONS.values(), ids=INTRODUCTIONS)
def test_a_group_whose_leader_meets_nobody_is_told_by_it(call: str) -> None:
    # Rank 1 leads the other group.
    setup = HEARD + (
        "sides = comm.Split(rank % 2)\n"
        "inter = sides.Create_intercomm(0, comm, 1 - rank % 2)\n"
        f"def make():\n    if rank == 0: hear()\n    {call}"
    )
    told = survivors(survive(setup, "make()"))
    assert all(words.startswith("True") for words in told.values()), told


@pytest.mark.parametrize("gathered", ["enable", "disable"])
def test_a_collective_write_names_the_file_and_what_was_written_stays(tmp_path, gathered: str) -> None:
    path = str(tmp_path / "data")
    setup = f"""
file = MPI.File.Open(comm, {path!r}, MPI.MODE_RDWR | MPI.MODE_CREATE, MPI.Info.Create({{"romio_cb_write": {gathered!r}}}))
file.Set_view(0, MPI.INT, MPI.INT.Create_hindexed([1], [4 * rank]).Create_resized(0, 4 * comm.size).Commit())
file.Write_at_all(0, mine)
comm.Barrier()"""
    for words in survivors(survive(setup, "file.Write_at_all(WINDOW // 4, mine)")).values():
        assert words == "done" or (words.startswith("True") and path in words)
    if gathered == "enable":
        assert Path(path).read_bytes()[: 4 * 65536] == b"x" * (4 * 65536)


def test_a_rank_that_fails_before_it_has_started_mpi_is_not_waited_for() -> None:
    source = "import os, signal\nif os.environ['PMI_RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
    source += "from ompy import MPI\ncomm = MPI.COMM_WORLD\ncomm.Set_errhandler(MPI.ERRORS_RETURN)\n"
    source += "try: comm.Barrier()\nexcept MPI.Exception as error: print(error)"
    job = launch("-n", "3", "--enable-recovery", "--timeout", "60", *python(source))
    assert job.process.returncode == 137
    assert len(job.stdout.splitlines()) == 2, job.stderr


def test_a_rank_that_computes_hears_later_of_however_many_failures() -> None:
    launcher = """
import socket, sys
from ompy.cli.ompyrun import main
from ompy.runtime import process
def with_little_room(family, kind):
    ends = socket.socketpair(family, kind)
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    return ends
process.socketpair = with_little_room
sys.exit(main())
"""
    deaf = """
import os, sys
wire = int(os.environ["PMI_FD"])
def ask(*questions):
    os.write(wire, "".join(f"cmd={words}\\n" for words in questions).encode())
heard = b""
def hear(sign):
    global heard
    while sign not in heard:
        heard += os.read(wire, 4096)
ask("init pmi_version=1 pmi_subversion=1", "hear_of_failures")
hear(b"hears_of_failures")
sys.stdin.readline()
ask("get_appnum", "finalize")
hear(b"finalize_ack")
lines = heard.decode().splitlines()
print(sum(line.startswith("cmd=process_failed ") for line in lines), *lines[-2:])
"""
    count = 40
    words = ("--oversubscribe", "--enable-recovery", "-n", "1", *python(deaf), ":", "-n", str(count), "false")
    with Launch(*words, stdin="go\n", command=python(launcher)) as job:
        assert job.process.stderr is not None
        for _ in range(count):
            assert b"exited with code 1" in job.process.stderr.readline()
        assert job.finish() == 1
        assert job.stdout == f"{count} cmd=appnum appnum=0 cmd=finalize_ack\n", job.stderr


def test_a_rank_that_leaves_in_order_is_no_failure() -> None:
    source = "others = comm.Split(rank == 1)\nif rank == 1: MPI.Finalize()\nelse: others.Barrier(), print(others.allreduce(1))"
    job = launch("-n", "3", "--enable-recovery", "--timeout", "60", *mpi(source))
    assert (job.process.returncode, job.stdout) == (0, "2\n2\n"), job.stderr


LOOKS = {
    "test": "(lambda request: lambda: request.test()[0])(comm.irecv(source=1))",
    "Test": "comm.Irecv(bytearray(8), 1).Test",
    "Testany": "(lambda requests: lambda: MPI.Request.Testany(requests)[1])([comm.Irecv(bytearray(8), 1)])",
    "of a collective": "comm.Ibarrier().Test",
    "iprobe": "(lambda: comm.iprobe(source=1))",
    "improbe": "(lambda: comm.improbe(source=1))",
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp", "self,zmq"])
def test_who_only_looks_now_and_then_is_told_of_a_failed_rank_too(look: str, btl: str) -> None:
    # The time between two looks is a program's that computes; a wait would hear of it in its own time.
    setup = f"look = None if rank == 1 else {look}\ndef often():\n    while not look(): time.sleep(0.01)"
    told = survivors(survive(setup, "often()", "--mca", "btl", btl, ranks=2), 2)
    assert all(words.startswith("True") for words in told.values())


def test_what_a_rank_sent_before_it_died_waiting_for_room_is_received() -> None:
    setup = (
        "import select\n"
        "if rank == 1:\n"
        "    comm.send(os.getpid(), 0)\n"
        "    flood = [comm.Isend(mine[:1024], 0) for _ in range(20_000)]\n"
        "elif rank == 0:\n"
        "    select.select([os.pidfd_open(comm.recv(source=1))], [], [])\n"
        "def receive():\n"
        "    if rank == 0:\n"
        "        for _ in range(100): comm.Recv(all, 1)\n"
        "    comm.Sendrecv(mine, 2 - rank, 0, all, 2 - rank)\n"
    )
    job = survive(setup, "receive()", "--mca", "btl", "self,sm", ranks=3, before="")
    assert set(survivors(job, 3).values()) == {"done"}


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp", "self,zmq"])
def test_requests_with_living_ranks_complete_though_one_that_is_written_to_fails(btl: str) -> None:
    setup = (
        "LONG = 4_000_000\n"
        "from threading import Timer\n"
        "peers = [peer for peer in range(3) if peer != rank]\n"
        "def begin():\n"
        "    for tag in range(4):\n"
        "        for peer in peers:\n"
        "            yield peer, comm.Isend(bytes(LONG), peer, tag)\n"
        "            yield peer, comm.Irecv(bytearray(LONG), peer, tag)\n"
        "requests = list(begin())\n"
        "def wait():\n"
        "    for peer, request in requests:\n"
        "        try: request.Wait()\n"
        "        except MPI.Exception:\n"
        "            if peer != 1: raise\n"
    )
    # Rank 1 dies in the middle of it.
    job = survive(setup, "wait()", "--mca", "btl", btl, ranks=3, dies=f"comm.Iprobe(), {DIES}", before="")
    assert set(survivors(job, 3).values()) == {"done"}
