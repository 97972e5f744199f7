"""A process that is out of file descriptors for a while: what fails is told, and what does not fail arrives, once, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import launch, mpi

EXHAUST = """
import resource
held = []
def exhaust(left):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True: held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError: pass
    for _ in range(left): os.close(held.pop())
def release():
    while held: os.close(held.pop())
"""
SENDER = """
LONG = 500_000
pairs = MPI.BYTE.Create_vector(2, 1, 2).Commit()
def send_init(data):
    request = comm.Send_init(data, 1)
    request.Start(), request.Wait(), request.Free()
def send(number):
    data = bytes([number] * 3)
    {call}
if rank == 0:
    exhaust({left})
    for number in range(4):
        if number == 1: release()
        try: send(number)
        except MPI.Exception as error: print("failed", number)
    comm.Send(b"", 1, 1)
else:
    status, buffer = MPI.Status(), bytearray(LONG)
    while True:
        comm.Recv(buffer, 0, MPI.ANY_TAG, status)
        if status.tag == 1: break
        print("received", buffer[0])
"""
CALLS = {
    "Send": "comm.Send(data, 1)",
    "Isend": "comm.Isend(data, 1).Wait()",
    "Ssend": "comm.Ssend(data, 1)",
    "persistent": "send_init(data)",
    "with gaps": "comm.Send([data, 1, pairs], 1)",
    "long": "comm.Send(data * (LONG // 3), 1)",
}


@pytest.mark.parametrize("left", [0, 1, 2, 3])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_send_that_fails_leaves_the_order_of_messages_as_it_is(call: str, left: int) -> None:
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,sm", *mpi(EXHAUST + SENDER.format(call=call, left=left)))
    assert job.process.returncode == 0, job.stderr
    lines = job.stdout.splitlines()
    received = [line for line in lines if line.startswith("received")]
    assert received in ([f"received {number}" for number in range(first, 4)] for first in (0, 1)), lines
    # That an error means that nothing was sent holds for who has not to wait for an answer, which can fail as well.
    if "Ssend" not in call and "LONG" not in call:
        assert ("failed 0" in lines) == ("received 0" not in lines)


def test_a_message_whose_sender_can_not_be_woken_by_a_doorbell_of_its_own_arrives_once() -> None:
    source = EXHAUST + SENDER.format(call=CALLS["Ssend"], left=1)
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,tcp", *mpi(source))
    assert job.process.returncode == 0, job.stderr
    assert job.stdout.splitlines() == [f"received {number}" for number in range(4)]


RECEIVER = """
import threading
buffer = bytearray({length})
if rank == 0:
    comm.Send(b"y" * {length}, 1)
else:
    exhaust(0)
    sys.stderr = Told()
    threading.Thread(target=lambda: (sys.stderr.told.wait(), release())).start()
    comm.Recv(buffer, 0)
    assert buffer == b"y" * {length}
    print(sys.stderr.words)
"""
TOLD = """
import threading
class Told:
    def __init__(self): self.words, self.told = "", threading.Event()
    def flush(self): pass
    def write(self, words):
        self.words += words
        self.told.set()
"""


@pytest.mark.parametrize("length", [8, 1_000_000])
def test_what_can_not_be_opened_yet_is_told_and_received_later(length: int) -> None:
    source = EXHAUST + TOLD + RECEIVER.format(length=length)
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,sm", *mpi(source))
    assert job.process.returncode == 0, job.stderr
    assert job.stdout.count("of a peer can't be opened: Too many open files; what it sends is received when that is over") == 1


def test_a_process_ends_whatever_it_could_not_open() -> None:
    source = EXHAUST + "if rank == 0: comm.Send(b'y', 1)\nelse: exhaust(0)\n"
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,sm", "--mca", "coll", "tuned,basic", *mpi(source))
    assert job.process.returncode == 0, job.stderr


OPENER = """
import os
MPI.File.Open(comm, "{path}", MPI.MODE_CREATE | MPI.MODE_RDWR).Close()
comm.Barrier()
exhaust({left} if rank == {short} else 9)
try:
    file = MPI.File.Open(comm, "{path}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    print("opened")
    file.Close()
except MPI.Exception as error:
    told = rank != {short} or "Too many open files" in str(error)
    print("failed", error.Get_error_class() == MPI.ERR_IO, "{path}" in str(error), told)
release()
file = MPI.File.Open(comm, "{path}", MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Write_ordered(b"x")
file.Close()
"""


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("short", [0, 1])
def test_a_file_that_cannot_be_opened_on_one_rank_is_an_error_of_all(tmp_path: Path, short: int, left: int) -> None:
    path = tmp_path / "shared"
    program = EXHAUST + OPENER.format(left=left, short=short, path=path)
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,sm", *mpi(program))
    assert job.process.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) in (["opened"] * 2, ["failed True True True"] * 2)
    assert left > 1 or "failed" in job.stdout
    assert path.read_bytes() == b"xx"


def test_sends_that_fail_for_want_of_memory_keep_no_descriptors() -> None:
    body = """
import resource
if rank == 0:
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    counts = set()
    for _ in range(5):
        try: comm.Send(b"x", 1)
        except MPI.Exception: counts.add(len(os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    comm.Send(b"x", 1)
    print(len(counts))
else:
    comm.Recv(bytearray(1), 0)
"""
    job = launch("-n", "2", "--timeout", "30", "--mca", "btl", "self,sm", *mpi(body))
    assert (job.process.returncode, job.stdout) == (0, "1\n"), job.stderr


LOADING = """
seen = []
exhaust(0)
MPI.COMM_SELF.Set_errhandler(MPI.Comm.Create_errhandler(lambda comm, error: seen.append(error)))
calls = {
    "Barrier": lambda: MPI.COMM_SELF.Barrier(),
    "Open": lambda: MPI.File.Open(MPI.COMM_SELF, "/dev/null", MPI.MODE_RDONLY).Close(),
    "Open_port": lambda: MPI.Close_port(MPI.Open_port()),
    "Lookup_name": lambda: MPI.Lookup_name("nobody"),
    "Spawn": lambda: MPI.COMM_SELF.Spawn("true"),
}
for name, call in calls.items():
    try: call()
    except MPI.Exception as error: print(name, "can't be loaded" in str(error) or "Too many open files" in str(error))
print("handled", len(seen))
release()
for name in ("Barrier", "Open", "Open_port"): calls[name]()
"""


def test_what_a_call_can_not_load_is_an_error_of_the_call_and_loaded_later() -> None:
    job = launch("-n", "1", "--timeout", "30", *mpi(EXHAUST + LOADING))
    assert job.process.returncode == 0, job.stderr
    assert job.stdout.splitlines() == [
        "Barrier True",
        "Open True",
        "Open_port True",
        "Lookup_name True",
        "Spawn True",
        "handled 2",
    ]
