"""PMI-1: what the launcher answers, and ranks under launchers of other projects."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import DEADLINE, Launch, launch, mpi, python

from ompy.core.errors import MPIError
from ompy.mca.pmi_wire import SecondWire
from ompy.runtime.pmi_server import KeyValueSpace, Session


class Client:
    """A session and what it was sent."""

    def __init__(self, space: KeyValueSpace, rank: int) -> None:
        self.answers: list[str] = []
        self.session = Session(space, rank, 0, lambda data: self.answers.extend(data.decode().splitlines()))

    def say(self, text: str) -> list[str]:
        self.answers.clear()
        self.session.receive(text.encode())
        return list(self.answers)


def test_conversation_of_one_client() -> None:
    client = Client(KeyValueSpace("ompy-1", 1), 0)
    assert client.say("cmd=init pmi_version=1 pmi_subversion=1\n") == [
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    ]
    assert client.say("cmd=get_maxes\n") == ["cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"]
    assert client.say("cmd=get_my_kvsname\n") == ["cmd=my_kvsname kvsname=ompy-1"]
    assert client.say("cmd=put kvsname=ompy-1 key=k value=v=1\n") == ["cmd=put_result rc=0 msg=success"]
    assert client.say("cmd=get kvsname=ompy-1 key=k\n") == ["cmd=get_result rc=0 msg=success value=v=1"]
    assert client.say("cmd=get kvsname=ompy-1 key=other\n") == ["cmd=get_result rc=-1 msg=key_other_not_found"]
    assert client.say("cmd=finalize\n") == ["cmd=finalize_ack"]
    assert client.session.finalised


def test_commands_arrive_in_any_pieces() -> None:
    client = Client(KeyValueSpace("ompy-1", 1), 0)
    assert client.say("cmd=get_a") == []
    assert client.say("ppnum\ncmd=get_universe_size\ncmd=") == ["cmd=appnum appnum=0", "cmd=universe_size size=1"]


def test_barrier_opens_when_the_last_has_come() -> None:
    space = KeyValueSpace("ompy-1", 3)
    clients = [Client(space, rank) for rank in range(3)]
    for _ in range(2):
        assert clients[2].say("cmd=barrier_in\n") == []
        assert clients[0].say("cmd=barrier_in\n") == []
        assert clients[1].say("cmd=barrier_in\n") == ["cmd=barrier_out"]
        assert clients[0].answers == clients[2].answers == ["cmd=barrier_out"]


def test_names_are_published_once() -> None:
    client = Client(KeyValueSpace("ompy-1", 1), 0)
    assert "rc=0" in client.say("cmd=publish_name service=ocean port=p1\n")[0]
    assert "rc=-1" in client.say("cmd=publish_name service=ocean port=p2\n")[0]
    assert client.say("cmd=lookup_name service=ocean\n") == ["cmd=lookup_result rc=0 info=ok port=p1"]
    assert "rc=0" in client.say("cmd=unpublish_name service=ocean\n")[0]
    assert "rc=-1" in client.say("cmd=lookup_name service=ocean\n")[0]
    assert "rc=-1" in client.say("cmd=unpublish_name service=ocean\n")[0]


def test_abort_carries_code_and_reason() -> None:
    client = Client(KeyValueSpace("ompy-1", 1), 0)
    client.say(f"cmd=abort exitcode=3 message={b'no space left'.hex()}\n")
    assert client.session.aborted == (3, "no space left")


@pytest.mark.parametrize("words", ["cmd=dance\n", "hello\n", "\x00\xff\n", "x" * 70_000])
def test_words_that_are_no_pmi_end_the_job_not_the_launcher(words: str) -> None:
    with pytest.raises(ValueError, match="rank 4"):
        Client(KeyValueSpace("ompy-1", 9), 4).say(words)
    source = f"import os, time; os.write(int(os.environ['PMI_FD']), {words[:100].encode()!r} + b'\\n'); time.sleep(60)"
    job = launch("-n", "2", *python(source))
    assert job.process.returncode == 1
    assert "PMI" in job.stderr
    assert "Traceback" not in job.stderr


def test_a_second_beginning_is_a_second_process() -> None:
    client = Client(KeyValueSpace("ompy-1", 2), 1)
    client.say("cmd=init pmi_version=1 pmi_subversion=1\n")
    with pytest.raises(ValueError, match="a second process of rank 1"):
        client.say("cmd=init pmi_version=1 pmi_subversion=1\n")


def test_nobody_stands_in_a_barrier_for_others() -> None:
    client = Client(KeyValueSpace("ompy-1", 2), 1)
    client.say("cmd=barrier_in\n")
    with pytest.raises(ValueError, match="rank 1 came twice"):
        client.say("cmd=barrier_in\n")


def test_values_are_published_once_and_are_of_bounded_length() -> None:
    space = KeyValueSpace("ompy-1", 2)
    client = Client(space, 1)
    assert "rc=0" in client.say(f"cmd=put key={'k' * 64} value={'v' * 1024}\n")[0]
    for key, value in (("k" * 64, "other"), ("k" * 65, "v"), ("k", "v" * 1025), ("", "v")):
        assert "rc=-1" in client.say(f"cmd=put key={key} value={value}\n")[0]
    assert list(space.values) == ["k" * 64]


@pytest.mark.parametrize("words", ["exitcode=--5", "exitcode=x", "message=abc", "message=\u00b2", f"exitcode={'9' * 5000}"])
def test_abort_in_words_that_nobody_understands_is_an_abort(words: str) -> None:
    client = Client(KeyValueSpace("ompy-1", 1), 0)
    client.say(f"cmd=abort {words}\n")
    assert client.session.aborted is not None
    assert client.session.aborted[0] == 1


EXCHANGE = """
import os, sys
sys.argv = ["prog"]
from ompy.mca import selection
rte = selection.select("rte")[0]
card = bytes(range(256)) * 20 + bytes([rte.rank])
rte.put("card", card)
rte.put("empty", b"")
rte.commit_and_fence()
for rank in range(rte.size):
    assert rte.get(rank, "card") == card[:-1] + bytes([rank])
    assert rte.get(rank, "empty") == b""
try:
    rte.get(0, "missing")
except Exception as error:
    assert "missing" in str(error)
else:
    raise AssertionError
print(f"{rte.rank} {rte.size} {rte.local_rank} {rte.local_size} {rte.secret.hex()}\\n", end="", flush=True)
rte.finalize()
"""


def check_exchange(output: str, ranks: int) -> None:
    lines = sorted(line.split() for line in output.splitlines())
    assert [line[:4] for line in lines] == [[str(rank), str(ranks), str(rank), str(ranks)] for rank in range(ranks)]
    secrets = {line[4] for line in lines}
    assert len(secrets) == 1
    assert len(secrets.pop()) == 64


@pytest.mark.parametrize("ranks", [1, 4, 9])
def test_ranks_exchange_any_bytes_and_share_a_secret(ranks: int) -> None:
    check_exchange(launch("-n", str(ranks), *python(EXCHANGE)).stdout, ranks)


def test_secret_is_in_no_environment_and_on_no_command_line() -> None:
    source = "import time\nfrom ompy.mca import selection\n"
    source += "print(selection.select('rte')[0].secret.hex(), flush=True)\ntime.sleep(60)"
    with Launch("-n", "1", *python(source)) as job:
        (secret,) = job.lines(1)
        assert len(secret) == 64
        for pid in job.living():
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as stream:
                    assert secret.encode() not in stream.read()
                    stream.seek(0)
                    assert bytes.fromhex(secret) not in stream.read()


def hydra() -> str:
    """MPICH's mpiexec, where there is one."""
    for folder in (os.environ.get("OMPY_TEST_HYDRA", ""), sysconfig.get_path("scripts")):
        if folder and os.path.exists(f"{folder}/mpiexec.hydra"):
            return f"{folder}/mpiexec.hydra"
    found = shutil.which("mpiexec.hydra")
    if not found:
        pytest.skip("no mpiexec.hydra on PATH, in this environment, or in the folder OMPY_TEST_HYDRA (pip install mpich)")
    return found


@pytest.mark.parametrize("options", [[], ["-pmi-port"], ["-genv", "OMPY_MCA_rte_pmi_version", "2"]])
def test_ranks_under_hydra(options: list[str]) -> None:
    command = [hydra(), *options, "-n", "3", *python(EXCHANGE)]
    job = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert (job.returncode, job.stderr) == (0, "")
    check_exchange(job.stdout, 3)


@pytest.mark.parametrize("transport", ["self,sm", "self,zmq"])
def test_program_under_hydra(transport: str) -> None:
    source = "sys.stdout.write(f'{rank} {comm.allreduce(rank + 1)}\\n')"
    command = [hydra(), "-n", "3", "-genv", "OMPY_MCA_btl", transport, *mpi(source)]
    job = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 6", "1 6", "2 6"]


def test_exception_under_hydra_ends_the_job() -> None:
    source = "if rank == 1: raise ValueError('boom')\ncomm.recv(source=1)"
    job = subprocess.run([hydra(), "-n", "3", *mpi(source)], capture_output=True, text=True, timeout=DEADLINE)
    assert job.returncode != 0
    assert "ValueError: boom" in job.stderr


@pytest.fixture
def second() -> Iterator[tuple[SecondWire, socket.socket]]:
    """A client of PMI-2, and the server's end."""
    ours, theirs = socket.socketpair()
    wire = SecondWire(ours.detach())
    yield wire, theirs
    wire.close()
    theirs.close()


def test_messages_of_pmi_2_arrive_in_any_pieces(second: tuple[SecondWire, socket.socket]) -> None:
    wire, server = second
    body = b"cmd=kvs-get-response;rc=0;found=TRUE;value=a b=c;"
    answer = f"{len(body):6d}".encode() + body

    def serve() -> None:
        assert server.recv(100) == b"    18cmd=kvs-get;key=k;"
        for place in range(len(answer)):
            server.sendall(answer[place : place + 1])

    served = threading.Thread(target=serve)
    served.start()
    told = wire.ask("kvs-get;key=k", "kvs-get-response")
    served.join()
    assert (told["rc"], told["found"], told["value"]) == ("0", "TRUE", "a b=c")


@pytest.mark.parametrize(
    "words", [b"cmd=kvs", b"-00001", b"999999" + b"x" * 999998, b"     0", b"    10cmd=other;", b"\xff" * 9]
)
def test_words_that_are_no_pmi_2_are_an_error(second: tuple[SecondWire, socket.socket], words: bytes) -> None:
    wire, server = second

    def serve() -> None:
        server.sendall(words)
        server.shutdown(socket.SHUT_WR)

    served = threading.Thread(target=serve)
    served.start()
    with pytest.raises(MPIError, match=r"PMI server|launcher has gone"):
        wire.ask("kvs-fence", "kvs-fence-response")
    served.join()


@pytest.mark.parametrize("length", [999_999 - 5, 1_000_000 - 5])
def test_a_command_longer_than_its_length_can_say_is_an_error(second: tuple[SecondWire, socket.socket], length: int) -> None:
    wire, _ = second
    if length == 999_999 - 5:
        assert wire.framed("x" * length).startswith("999999cmd=")
    else:
        with pytest.raises(MPIError, match="less than 1000000 bytes"):
            wire.framed("x" * length)


def serve_pmi_2(server: socket.socket) -> list[dict[str, str]]:
    """Be the PMI-2 server of the first rank of two; what it was told, until the end."""
    kept: dict[str, str] = {}
    told = []
    with server.makefile("rb") as stream:
        assert stream.readline() == b"cmd=init pmi_version=2 pmi_subversion=0\n"
        server.sendall(b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
        while length := stream.read(6):
            fields = dict(field.partition("=")[::2] for field in stream.read(int(length)).decode().split(";") if field)
            told.append(fields)
            if fields["cmd"] == "kvs-put":
                kept[fields["key"]] = fields["value"]
            answer = {
                "fullinit": "size=2;rank=0;appnum=0",
                "job-getid": "jobid=seven",
                "kvs-get": f"found=TRUE;value={kept.get(fields.get('key', ''), '')}",
            }.get(fields["cmd"], "")
            words = f"cmd={fields['cmd']}-response;rc=0;{answer};".encode()
            if fields["cmd"] != "abort":
                server.sendall(f"{len(words):6d}".encode() + words)
    return told


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("comm.Abort(259)", 3, ""),
        ("raise ValueError('a;b=c and all the rest')", 1, "a b c and all the rest"),
        ("raise ValueError('x' * 10000)", 1, "x" * 100),
    ],
)
def test_the_last_words_of_a_rank_are_a_command_of_pmi_2(program: str, status: int, words: str) -> None:
    server, client = socket.socketpair()
    variables = {"PMI_FD": str(client.fileno()), "PMI_RANK": "0", "PMI_SIZE": "2", "OMPY_MCA_rte_pmi_version": "2"}
    rank = subprocess.Popen(
        mpi(program), env=os.environ | variables, pass_fds=[client.fileno()], stderr=subprocess.PIPE, text=True
    )
    client.close()
    with server:
        server.settimeout(DEADLINE)
        told = serve_pmi_2(server)
    _, errors = rank.communicate(timeout=DEADLINE)
    assert rank.returncode == status, errors
    assert set(told[-1]) == {"cmd", "isworld", "exitcode", "msg"}
    assert (told[-1]["cmd"], told[-1]["isworld"], int(told[-1]["exitcode"]) & 0xFF) == ("abort", "TRUE", status)
    assert words in told[-1]["msg"]
    assert len(told[-1]["msg"]) <= 500


def test_program_alone_is_a_job_of_one() -> None:
    job = subprocess.run([*mpi("print(rank, comm.Get_size())")], capture_output=True, text=True, timeout=DEADLINE)
    assert (job.returncode, job.stdout, job.stderr) == (0, "0 1\n", "")


def test_process_that_a_rank_starts_is_a_job_of_one() -> None:
    child = "from ompy import MPI; print(MPI.COMM_WORLD.Get_size())"
    source = f"import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', {child!r}], text=True).strip())"
    job = launch("-n", "2", *mpi(source))
    assert (job.process.returncode, job.stdout, job.stderr) == (0, "1\n1\n", "")


def test_launcher_that_cannot_be_joined_is_noticed() -> None:
    environment = os.environ | {"OMPI_COMM_WORLD_SIZE": "4"}
    job = subprocess.run([*mpi("")], capture_output=True, text=True, timeout=DEADLINE, env=environment)
    assert job.returncode == 0
    assert "Open MPI's mpiexec started 4 tasks" in job.stderr
    assert "ompyrun" in job.stderr


def test_ranks_of_one_launcher_are_not_those_of_another() -> None:
    inner = f"{sys.executable} -m ompy.cli.ompyrun -n 2 {sys.executable} -c 'import os; print(os.environ[\"PMI_SIZE\"])'"
    job = launch("-n", "3", "sh", "-c", inner)
    assert job.stdout.splitlines() == ["2"] * 6


@pytest.mark.parametrize("version", ["1", "2"])
def test_ranks_under_hydra_spawn_others_which_it_starts(tmp_path: Path, version: str) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "from ompy import MPI\nparent = MPI.Comm.Get_parent()\nassert parent.remote_size == 2\n"
        "import sys\nsys.stdout.write(f'sum {parent.allreduce(MPI.COMM_WORLD.rank)}\\n')\nparent.Disconnect()\n"
    )
    source = (
        f"import sys\nworkers = comm.Spawn(sys.executable, [{str(child)!r}], 3)\nassert workers.allreduce(10) == 3\n"
        "workers.Disconnect()"
    )
    command = [hydra(), "-genv", "OMPY_MCA_rte_pmi_version", version, "-n", "2", *mpi(source)]
    job = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert job.returncode == 0, job.stderr
    # Hydra mixes what ranks write.
    assert "".join(sorted(job.stdout)) == "".join(sorted("sum 20\n" * 3))
