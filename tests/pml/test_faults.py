"""Every fault of btl/chaos under both PMLs: ob1 reports what it breaks and never waits for ever, dr loses nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HARMLESS = ("delay", "reorder", "stall")
HARMFUL = ("drop", "duplicate", "corrupt")
FIRED = {"drop": "dropped", "duplicate": "duplicated", "corrupt": "corrupted", "delay": "delayed", "reorder": "reordered",
         "stall": "stalls"}  # fmt: skip
# The ways of a long message: in fragments, read by the receiver, written by the sender.
FRAGMENTS = {"btl_chaos_wraps": "zmq", "btl_zmq_eager_limit": 4096, "btl_zmq_max_send_size": 16384}
READ = {"btl_chaos_wraps": "sm", "btl_sm_single_copy": "cma", "pml_ob1_use_put": 0}
WRITTEN = {"btl_chaos_wraps": "sm", "btl_sm_single_copy": "cma", "pml_ob1_use_get": 0, "btl_sm_eager_limit": 4096}
SIZES = (0, 8, 200, 5000, 300_000)
SEED = {"btl": "chaos,self", "btl_chaos_seed": 11, "btl_chaos_stall_time": 5}


def some(fault: str, rate: float = 0.05) -> dict[str, float]:
    return {f"btl_chaos_{fault}": rate}


def counters() -> dict[str, int]:
    """Of this rank's btl/chaos."""
    from ompy.mca import selection

    (chaos,) = [btl for btl in selection.chosen_modules["btl"] if btl.name == "chaos"]
    return chaos.counters


def exchange(comm: Any, rounds: int = 8) -> None:
    """Messages of every size between all ranks, several under way; asserts that they arrive as they were sent."""
    from ompy import MPI

    peers = [peer for peer in range(comm.size) if peer != comm.rank]
    for number in range(rounds):
        sent = {size: bytes([number + comm.rank]) * size for size in SIZES}
        received = {(peer, size): bytearray(size) for peer in peers for size in SIZES}
        requests = [comm.Irecv(buffer, peer, size) for (peer, size), buffer in received.items()]
        requests += [comm.Isend(data, peer, size) for size, data in sent.items() for peer in peers]
        MPI.Request.Waitall(requests)
        for (peer, size), buffer in received.items():
            assert buffer == bytes([number + peer]) * size, f"round {number}: {size} bytes from rank {peer} are wrong"


def all_arrives_and_it_fired(comm: Any, *faults: str) -> None:
    exchange(comm)
    for fault in faults:
        assert comm.allreduce(counters()[FIRED[fault]]), f"{fault} did not fire"


def ends_with_an_error_that_names_the_peer(comm: Any, fault: str) -> None:
    from ompy import MPI

    problem = None
    try:
        exchange(comm, 100)
    except MPI.Exception as error:
        problem = error
    assert problem is not None, f"{fault} was not noticed: {counters()}"
    text = str(problem)
    # Of several requests that are waited for together the error says which ones, and then the same.
    assert problem.Get_error_class() in (MPI.ERR_OTHER, MPI.ERR_IN_STATUS)
    assert MPI.Get_error_string(MPI.ERR_OTHER) in text
    assert re.search(rf"\brank {1 - comm.rank}\b", text)
    if "found messages from here" in text or "could not read" in text:
        assert counters()[FIRED[fault]], f"{fault} did not fire"


# -- ob1


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, **some("delay"), **some("stall")}, timeout=40)
def test_ob1_waits_out_delays_and_stalls(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "delay", "stall")


@pytest.mark.ompy(2, mca={**SEED, **READ, **some("delay", 0.2), **some("stall"), **some("reorder", 0.2)}, timeout=40)
def test_ob1_waits_out_late_reads(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "delay", "stall", "reorder")


@pytest.mark.ompy(2, mca={**SEED, **WRITTEN, **some("delay", 0.2), **some("reorder", 0.2)}, timeout=40)
def test_ob1_waits_out_late_writes(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "delay", "reorder")


@pytest.mark.ompy(3, mca={**SEED, **FRAGMENTS, **some("reorder", 0.2), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_puts_in_order_what_overtakes(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "reorder")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, **some("corrupt"), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_reports_corrupted_fragments(comm: Any) -> None:
    ends_with_an_error_that_names_the_peer(comm, "corrupt")


@pytest.mark.ompy(2, mca={**SEED, **READ, **some("corrupt"), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_reports_corrupted_reads(comm: Any) -> None:
    ends_with_an_error_that_names_the_peer(comm, "corrupt")


@pytest.mark.ompy(2, mca={**SEED, **WRITTEN, **some("corrupt"), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_reports_corrupted_writes(comm: Any) -> None:
    ends_with_an_error_that_names_the_peer(comm, "corrupt")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, **some("drop"), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_reports_lost_messages(comm: Any) -> None:
    ends_with_an_error_that_names_the_peer(comm, "drop")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, **some("duplicate"), "pml_ob1_checksum": 1}, timeout=40)
def test_ob1_reports_repeated_messages(comm: Any) -> None:
    ends_with_an_error_that_names_the_peer(comm, "duplicate")


@pytest.mark.ompy(1, mca={"btl": "chaos", "btl_chaos_wraps": "self", "btl_chaos_seed": 1, **some("delay", 0.5)}, timeout=40)
def test_a_process_can_be_unreliable_towards_itself(comm: Any) -> None:
    for number in range(50):
        assert comm.sendrecv(number, 0, source=0) == number
    assert counters()["delayed"]


# -- dr


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, "pml": "dr", **some("drop")}, timeout=40)
def test_dr_loses_nothing_that_is_dropped(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "drop")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, "pml": "dr", **some("duplicate")}, timeout=40)
def test_dr_receives_once_what_is_duplicated(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "duplicate")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, "pml": "dr", **some("corrupt")}, timeout=40)
def test_dr_has_what_is_corrupted_sent_again(comm: Any) -> None:
    all_arrives_and_it_fired(comm, "corrupt")


@pytest.mark.ompy(2, mca={**SEED, **FRAGMENTS, "pml": "dr", **some("delay"), **some("stall"), **some("reorder")}, timeout=40)
def test_dr_puts_up_with_lateness(comm: Any) -> None:
    all_arrives_and_it_fired(comm, *HARMLESS)


@pytest.mark.ompy(
    3, mca={**SEED, "btl_chaos_wraps": "sm", "pml": "dr", **{k: v for f in HARMFUL + HARMLESS for k, v in some(f).items()}}
)
def test_dr_puts_up_with_everything_at_once(comm: Any) -> None:
    all_arrives_and_it_fired(comm, *HARMFUL, *HARMLESS)


@pytest.mark.ompy(1, mca={"btl": "chaos", "btl_chaos_wraps": "self", "pml": "dr", "btl_chaos_seed": 1, **some("drop", 0.2)})
def test_dr_reaches_a_process_itself(comm: Any) -> None:
    for number in range(50):
        assert comm.sendrecv(number, 0, source=0) == number
    assert counters()["dropped"]


@pytest.mark.ompy(2, mca={**SEED, "btl_chaos_wraps": "zmq", "pml": "dr", **some("drop", 0.3)}, timeout=40)
def test_dr_sends_again_while_the_program_computes(comm: Any, tmp_path: Path) -> None:
    arrived = tmp_path / "arrived"
    if comm.rank == 0:
        for number in range(30):
            comm.Send(bytes([number]), 1)
        while not arrived.exists():  # no call of MPI from here on
            pass
        assert counters()["dropped"]
    else:
        buffer = bytearray(1)
        for number in range(30):
            comm.Recv(buffer, 0)
            assert buffer[0] == number
        arrived.touch()


# -- whole jobs


def job(
    ranks: int, mca: dict[str, object], *program: str, limit: int = 40, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    parameters = [word for name, value in mca.items() for word in ("--mca", name, str(value))]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(ranks), "--timeout", str(limit), *options, *parameters]
    return subprocess.run([*command, sys.executable, *program], capture_output=True, text=True, timeout=limit + 20)


RING = """
from ompy import MPI
comm = MPI.COMM_WORLD
for number in range(200):
    comm.sendrecv(number, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
"""


@pytest.mark.parametrize("pml", ["ob1", "dr"])
def test_a_rank_that_is_killed_is_named_and_ends_the_job(pml: str) -> None:
    kill = {"btl_chaos_kill_rank": 1, "btl_chaos_kill_at": 20}
    done = job(3, {**SEED, "btl_chaos_wraps": "zmq", "pml": pml, **kill}, "-c", RING)
    assert done.returncode == 128 + 9, done.stderr
    assert re.search(r"rank 1 \(\S+, \d+\) killed by SIGKILL", done.stderr), done.stderr


def test_what_a_time_out_alone_can_find_is_told_with_who_waits_for_whom() -> None:
    program = "from ompy import MPI; c = MPI.COMM_WORLD; c.Send(bytes(8), 1) if c.rank == 0 else c.Recv(bytearray(8), 0)"
    mca = {**SEED, "btl_chaos_wraps": "zmq", **some("drop", 1.0)}
    done = job(2, mca, "-c", program, limit=3, options=("--report-state-on-timeout",))
    assert done.returncode == 124
    assert "rank 1 waits in Recv for rank 0" in done.stderr, done.stderr


def test_dr_gives_up_a_peer_that_never_answers_and_names_it() -> None:
    program = "from ompy import MPI; MPI.COMM_WORLD.sendrecv(0, 1 - MPI.COMM_WORLD.rank)"
    patience = {"pml_dr_retry_limit": 3, "pml_dr_timeout": 5, "pml_dr_timeout_max": 20}
    done = job(2, {**SEED, "btl_chaos_wraps": "zmq", "pml": "dr", **patience, **some("drop", 1.0)}, "-c", program)
    assert done.returncode == 1
    assert "has not acknowledged a packet that was sent 4 times" in done.stderr, done.stderr


def test_dr_leaves_no_thread_behind() -> None:
    program = (
        "import os; from ompy import MPI; c = MPI.COMM_WORLD; c.sendrecv(0, 1 - c.rank); MPI.Finalize(); "
        "print(len(os.listdir('/proc/self/task')))"
    )
    done = job(2, {"pml": "dr", "btl": "sm,self"}, "-c", program)
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_a_component_that_is_wrapped_is_not_to_be_named_as_well() -> None:
    done = job(1, {"btl": "chaos,self,zmq", "btl_chaos_wraps": "zmq"}, "-c", "from ompy import MPI")
    assert "zmq is to serve through chaos: leave it out of parameter btl" in done.stderr


def test_dr_and_ob1_are_not_to_be_named_together() -> None:
    done = job(1, {"pml": "dr,ob1"}, "-c", "from ompy import MPI")
    assert "ob1 is to serve through dr: leave it out of parameter pml" in done.stderr


MILLION = os.environ.get("OMPY_TEST_MILLION") == "1"


def test_of_a_million_messages_none_is_lost_repeated_or_out_of_order(seed: int) -> None:
    """Of 10,000, unless the environment variable OMPY_TEST_MILLION is 1: a million takes minutes."""
    rates = {**some("drop", 0.01), **some("duplicate", 0.01), **some("delay"), **some("corrupt", 0.001)}
    mca = {"btl": "chaos,self", "btl_chaos_wraps": "zmq", "btl_chaos_seed": seed, "pml": "dr", **rates}
    count = 1_000_000 if MILLION else 10_000
    done = job(3, mca, str(Path(__file__).with_name("million.py")), str(count), limit=1800 if MILLION else 100)
    print(done.stderr)
    assert done.returncode == 0, done.stderr
    (received,) = re.findall(r"^(\d+) messages, none lost, repeated, changed or out of order$", done.stdout, re.MULTILINE)
    assert int(received) >= count
    for name in ("dropped", "duplicated", "corrupted", "delayed"):
        assert sum(map(int, re.findall(rf"(\d+) {name}", done.stderr))), f"nothing was {name}"
