"""Which transport and which collective, and why: `ompy explain`, the Python calls, and the table of transports."""

from __future__ import annotations

import sys

import pytest

import ompy
from ompy.core.errors import MPIError


@pytest.fixture
def explain(run):
    return lambda *arguments: run("-c", "from ompy.cli.ompy import main; main()", "explain", *arguments)


@pytest.fixture
def launch(run):
    return lambda *arguments: run("-m", "ompy.cli.ompyrun", *arguments)


def row(output: str, component: str) -> str:
    (line,) = [line for line in output.splitlines() if line.split()[:1] == [component]]
    return line


def test_a_peer_has_a_verdict_and_a_reason_for_every_component(explain) -> None:
    result = explain("--peer", "1", "-n", "3", "--mca", "btl", "self,sm,zmq")
    assert result.returncode == 0, result.stderr
    assert "from rank 0 to rank 1 of 3" in result.stdout
    assert " chosen " in row(result.stdout, "sm")
    assert "another process" in row(result.stdout, "self")
    assert "exclusivity" in row(result.stdout, "zmq")


@pytest.mark.parametrize(
    ("component", "security", "words"), [("tcp", "tls", "encrypted by TLS"), ("zmq", "curve", "encrypted by CURVE")]
)
def test_it_is_said_where_a_transport_encrypts(explain, component: str, security: str, words: str) -> None:
    arguments = ("--peer", "1", "-n", "2", "--mca", "btl", f"self,{component}")
    assert words in row(explain(*arguments, "--mca", f"btl_{component}_security", security).stdout, component)
    assert "encrypted" not in row(explain(*arguments).stdout, component)


def test_a_component_that_was_left_out_says_by_what(explain) -> None:
    output = explain("--peer", "1", "--mca", "btl", "^zmq").stdout
    assert "excluded by parameter btl" in row(output, "zmq")


def test_a_network_transport_that_no_peer_needs_says_so(explain) -> None:
    assert "no peer needs it" in row(explain("--peer", "1").stdout, "zmq")


def test_a_peer_that_nothing_reaches_still_gets_its_table_and_status_1(explain) -> None:
    result = explain("--peer", "1", "--mca", "btl", "self")
    assert result.returncode == 1
    assert "another process" in row(result.stdout, "self")
    assert "not in the list" in row(result.stdout, "sm")


def test_a_collective_has_its_component_and_algorithms(explain) -> None:
    output = explain("bcast", "--bytes", "8", "-n", "3", "--mca", "coll_bcast_algorithm", "logarithmic").stdout
    assert "chosen" in row(output, "basic")
    first = next(line for line in output.splitlines() if line.strip().startswith("basic: "))
    assert first.split()[:3] == ["basic:", "logarithmic", "chosen"]


@pytest.mark.parametrize(
    ("algorithm", "component"), [("ring", "tuned"), ("logarithmic", "basic"), ("shared_memory", "sm"), ("auto", "sm")]
)
def test_an_algorithm_is_served_by_the_component_that_has_it(explain, algorithm: str, component: str) -> None:
    output = explain("allreduce", "--bytes", "64", "-n", "3", "--mca", "coll_allreduce_algorithm", algorithm).stdout
    assert "chosen" in row(output, component)
    first = next(line for line in output.splitlines() if line.strip().startswith(f"{component}: "))
    assert algorithm in (first.split()[1], "auto")


def test_an_algorithm_that_no_component_has_is_an_error_with_the_known_ones(explain) -> None:
    result = explain("allreduce", "-n", "2", "--mca", "coll_allreduce_algorithm", "rink")
    assert result.returncode != 0
    for word in ("coll_allreduce_algorithm", "rink", "shared_memory", "logarithmic", "Did you mean ring?"):
        assert word in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --peer K, --file PATH or the name of a collective"),
        (["--peer", "2", "-n", "2"], "has peers 0 to 1"),
        (["--peer", "-1"], "-1"),
        (["--pear", "1"], "--peer"),
    ],
)
def test_a_wrong_question_is_status_2(explain, arguments: list[str], words: str) -> None:
    result = explain(*arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_an_unknown_collective_is_an_error_with_the_nearest(explain) -> None:
    result = explain("allrduce", "-n", "1")
    assert result.returncode == 1
    assert "Did you mean allreduce?" in result.stderr


@pytest.mark.ompy(2)
def test_the_python_call_agrees_on_each_rank(comm) -> None:
    chosen = [[it.component for it in ompy.explain_peer(peer) if it.chosen] for peer in range(2)]
    assert chosen == ([["self"], ["sm"]] if comm.rank == 0 else [["sm"], ["self"]])
    with pytest.raises(MPIError, match=r"peer 2 is not in 0\.\.1"):
        ompy.explain_peer(2)
    assert ompy.explain_collective("barrier", 0)[0].component == "sm"


def test_importing_ompy_alone_starts_nothing(run) -> None:
    program = "import sys, ompy; print([name for name in sys.modules if name.startswith('ompy.')])"
    assert run("-c", program).stdout == "[]\n"


PASS = "from ompy import MPI"


def test_the_table_of_transports_is_printed_rank_by_rank(launch) -> None:
    result = launch("-n", "3", "--mca", "hook_comm_method_display", "1", sys.executable, "-c", PASS)
    lines = [line.split() for line in result.stderr.splitlines()]
    assert lines[0][:5] == ["ompy:", "transports", "of", "3", "ranks,"]
    assert lines[1] == ["rank", "0", "1", "2", "host"]
    assert [" ".join(line[:4]) for line in lines[2:5]] == ["0 self sm sm", "1 sm self sm", "2 sm sm self"]


def test_the_table_of_a_larger_job_is_a_summary(launch) -> None:
    mca = ("--mca", "hook_comm_method_display", "1", "--mca", "hook_comm_method_max", "2")
    result = launch("-n", "3", *mca, sys.executable, "-c", PASS)
    assert "to itself: self for 3 pairs" in result.stderr
    assert "within a host: sm for 6 pairs" in result.stderr


def test_a_job_that_just_fits_has_the_table(launch) -> None:
    mca = ("--mca", "hook_comm_method_display", "1", "--mca", "hook_comm_method_max", "2")
    assert "0 self sm" in " ".join(launch("-n", "2", *mca, sys.executable, "-c", PASS).stderr.split())


@pytest.mark.parametrize("mca", [(), ("--mca", "hook", "comm_method")], ids=["not named", "named"])
def test_without_the_parameter_nothing_is_printed(launch, mca: tuple[str, ...]) -> None:
    result = launch("-n", "2", *mca, sys.executable, "-c", PASS)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("mca", "words"),
    [
        (("btl", "self,ssm"), "self, sm, tcp, zmq. Did you mean sm?"),
        (("btl", "self,^sm"), "mixes including and excluding"),
        (("btl_sm_backing", "memfdd"), "Did you mean memfd?"),
        (("btl_sm_eager_limt", "8k"), "Did you mean btl_sm_eager_limit?"),
        (("bttl", "self"), "no parameter is called bttl. Did you mean btl?"),
    ],
)
def test_the_launcher_finds_a_wrong_setting_before_any_rank_starts(launch, mca: tuple[str, str], words: str) -> None:
    result = launch("-n", "2", "--mca", *mca, sys.executable, "-c", "print('started')")
    assert result.returncode == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_wrong_name_in_the_users_file_is_found_by_the_launcher_too(launch, tmp_path) -> None:
    settings = tmp_path / ".ompy" / "mca-params.conf"
    settings.parent.mkdir()
    settings.write_text("btl_sm_eager_limt = 8k\n")
    result = launch("-n", "2", sys.executable, "-c", "print('started')")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{settings}:1: no parameter is called btl_sm_eager_limt." in result.stderr


def test_verbosity_tells_each_peers_transports_at_first_contact(launch) -> None:
    program = "from ompy import MPI; MPI.COMM_WORLD.Barrier()"
    errors = launch("-n", "2", "--mca", "bml_base_verbose", "1", sys.executable, "-c", program).stderr
    assert "[ompy rank 0] bml: to rank 1: sm chosen: " in errors
    assert "[ompy rank 1] bml: to rank 0: self not chosen: " in errors


def test_the_components_that_serve_a_file_are_told(explain, tmp_path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"data")
    lines = [line.split() for line in explain("--file", str(path), "-n", "2").stdout.splitlines()]
    chosen = [words[0] for words in lines if words[1:2] == ["chosen"]]
    assert chosen == ["io/ompio", "fs/ufs", "fbtl/posix", "fcoll/two_phase", "sharedfp/sm"]
    missing = explain("--file", str(tmp_path / "missing"))
    assert missing.returncode == 1
    assert "missing: open: No such file" in missing.stderr
