"""`ompy new btl` writes a transport that installs, carries MPI, and is treated as those of the tree are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_strangers_are_ignored, assert_typed

from ompy.scaffold.distribution import installation

DEATH = """
import os, signal
from ompy import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
peer = 1 - comm.rank
comm.sendrecv(comm.rank, peer, source=peer)
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
comm.recv(source=peer)
"""

ONE_LONG = """
import sys
from ompy import MPI
comm, size = MPI.COMM_WORLD, int(sys.argv[1])
data = bytearray(b"x" * size if comm.rank == 0 else size)
comm.Send(data, 1) if comm.rank == 0 else comm.Recv(data, 0)
assert data == b"x" * size
"""


@pytest.fixture(scope="module")
def mynet(workshop: Workshop) -> Path:
    return workshop.new("btl", "mynet")


def test_its_own_tests_pass(workshop: Workshop, mynet: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(mynet))
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_the_transport_has_at_most_80_lines(mynet: Path) -> None:
    lines = (mynet / "src" / "ompy_btl_mynet" / "module.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 80


def test_a_peer_that_dies_is_reported_and_the_job_ends(workshop: Workshop, mynet: Path) -> None:
    done = workshop.ranks(2, "mynet", sys.executable, "-c", DEATH)
    assert done.returncode == 137, done.stderr
    assert "rank 1" in done.stderr


def test_datagrams_of_strangers_are_ignored(workshop: Workshop, mynet: Path) -> None:
    assert_strangers_are_ignored(workshop, "--mca", "btl", "mynet,self")


def test_messages_as_long_as_a_socket_takes_arrive_and_longer_ones_are_not_offered(workshop: Workshop, mynet: Path) -> None:
    def limited(size: int) -> list[str]:
        return ["--mca", "btl_mynet_max_send_size", str(size), "--mca", "btl_mynet_eager_limit", str(size)]

    # More than a socket's buffer has at first.
    done = workshop.ranks(2, "mynet", *limited(300_000), sys.executable, "-c", ONE_LONG, "290000")
    assert done.returncode == 0 or "a socket takes no message of 300000 bytes" in done.stderr
    refused = workshop.ranks(2, "mynet", *limited(1 << 28), sys.executable, "-c", ONE_LONG, "10")
    assert refused.returncode != 0
    assert "a socket takes no message of 268435456 bytes (" in refused.stderr
    assert "set btl_mynet_max_send_size to less" in refused.stderr


def test_it_is_shown_as_those_of_the_tree_are(workshop: Workshop, mynet: Path) -> None:
    listed = workshop.run("-c", "from ompy.cli.ompy_info import main; main()").stdout
    assert "ompy-btl-mynet 0.1.0" in listed
    parameters = workshop.run(
        "-c", "from ompy.cli.ompy_info import main; main()", "--param", "btl", "mynet", "--level", "9"
    ).stdout
    assert "btl_mynet_max_send_size" in parameters
    explained = workshop.ompy("explain", "--peer", "1", "--mca", "btl", "mynet,self").stdout
    assert [line.split()[:2] for line in explained.splitlines() if "mynet" in line] == [["mynet", "chosen"]]
    told = workshop.ranks(2, "mynet", "--mca", "btl_base_verbose", "1", sys.executable, "-c", "from ompy import MPI").stderr
    assert "[ompy rank 1] btl: mynet chosen, priority 0: asked for by name" in told
    shown = workshop.ranks(
        2, "mynet", "--mca", "hook_comm_method_display", "1", sys.executable, "-c", "from ompy import MPI"
    ).stderr
    assert [line.split()[1:3] for line in shown.splitlines()[2:4]] == [["self", "mynet"], ["mynet", "self"]]


def test_an_error_in_it_is_shown_first_with_its_own_line(workshop: Workshop, mynet: Path) -> None:
    module = workshop.site / "ompy_btl_mynet" / "module.py"
    before = module.read_text()
    head, call, tail = before.partition("    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:\n")
    module.write_text(f"{head}{call}        raise KeyError(tag)\n{tail}")
    line = (head + call).count("\n") + 1
    try:
        done = workshop.ranks(2, "mynet", sys.executable, "-c", "from ompy import MPI; MPI.COMM_WORLD.bcast(1)")
    finally:
        module.write_text(before)
    told = done.stderr.splitlines()
    assert told[0] == "ompy: rank 0: btl component mynet of ompy-btl-mynet 0.1.0 raised KeyError: 1"
    assert told[1] == f'  File "{module}", line {line}, in send'
    assert told[2:4] == ["    raise KeyError(tag)", "Traceback (most recent call last):"]
    assert f"<string>:1: btl component mynet, {module}:{line}: KeyError: 1" in told[-1]


def test_an_error_of_the_program_s_below_a_component_is_the_program_s(workshop: Workshop, mynet: Path) -> None:
    program = "from ompy import MPI; MPI.COMM_WORLD.reduce(1, MPI.Op.Create(lambda a, b, t: {}[1]))"  # on rank 0 alone
    done = workshop.ranks(2, "mynet", sys.executable, "-c", program)
    assert done.returncode != 0
    assert "component" not in done.stderr
    assert "<string>:1: KeyError: 1" in done.stderr


def test_ranks_that_did_not_open_it_say_so(workshop: Workshop, mynet: Path) -> None:
    program = "import os; os.environ['OMPY_MCA_btl'] = ('mynet,self', 'self,zmq')[int(os.environ['PMI_RANK'])]\n"
    done = workshop.run(
        "-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "60",
        sys.executable, "-c", program + "from ompy import MPI; MPI.COMM_WORLD.barrier()",
    )  # fmt: skip
    assert done.returncode != 0
    assert "rank 1 did not open mynet" in done.stderr


def test_what_is_written_is_in_style_and_typed(mynet: Path) -> None:
    assert_in_style(mynet)
    assert_typed(mynet, "ompy_btl_mynet")


def test_a_misspelt_or_taken_name_is_refused(workshop: Workshop) -> None:
    taken = "ompy already has a btl component sm"
    for name, words in (("My-Net", "lower-case letters"), ("net_", "no underscore"), ("sm", taken), ("class", "class")):
        done = workshop.ompy("new", "btl", name)
        assert done.returncode == 2
        assert words in done.stderr


def test_nothing_is_overwritten(workshop: Workshop) -> None:
    assert workshop.ompy("new", "btl", "twice").returncode == 0
    mark = workshop.folder / "ompy-btl-twice" / "mine"
    mark.touch()
    done = workshop.ompy("new", "btl", "twice")
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert mark.exists()


def test_a_compiled_one_is_installed_against_the_ompy_that_it_will_run_with(workshop: Workshop) -> None:
    done = workshop.ompy("new", "btl", "told", "--cython")
    command = "pip install --no-build-isolation ./ompy-btl-told"
    assert command in done.stdout
    assert command in (workshop.folder / "ompy-btl-told" / "README.md").read_text()
    assert "--no-build-isolation" not in workshop.ompy("new", "btl", "plain").stdout


@pytest.mark.parametrize("cython", [False, True])
def test_the_command_that_installs_it_is_one_for_a_shell(cython: bool) -> None:
    command = installation("my folder; reboot", cython)[-1]
    assert shlex.split(command)[-1] == "my folder; reboot"
