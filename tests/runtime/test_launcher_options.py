"""What can be said to `ompyrun`."""

from __future__ import annotations

import os

import pytest
from launching import launch, mpi, python

PRINT_RANK = "import os; print(os.environ['PMI_RANK'], os.environ['PMI_SIZE'])"


@pytest.mark.parametrize("option", ["-n", "-np", "--np", "-c", "--n"])
def test_number_of_ranks_in_every_spelling(option: str) -> None:
    job = launch(option, "3", *python(PRINT_RANK))
    assert job.process.returncode == 0
    assert sorted(job.stdout.split("\n")) == ["", "0 3", "1 3", "2 3"]


def test_value_joined_with_an_equals_sign() -> None:
    assert sorted(launch("--np=2", *python(PRINT_RANK)).stdout.split("\n")) == ["", "0 2", "1 2"]


def test_program_that_is_not_python() -> None:
    job = launch("-n", "2", "hostname")
    assert job.stdout == (os.uname().nodename + "\n") * 2


def test_several_programs_share_one_world(tmp_path: object) -> None:
    job = launch(
        "-n", "2", "-x", "COLOUR=red", *python("import os; print(os.environ['PMI_RANK'], os.environ['COLOUR'])"),
        ":", "-n", "1", "--wdir", str(tmp_path), *python("import os; print(os.environ['PMI_RANK'], os.getcwd())"),
    )  # fmt: skip
    assert sorted(job.stdout.splitlines()) == ["0 red", "1 red", f"2 {tmp_path}"]


def test_variable_without_a_value_is_the_launchers() -> None:
    job = launch("-n", "1", "-x", "COLOUR", *python("import os; print(os.environ['COLOUR'])"), environment={"COLOUR": "blue"})
    assert job.stdout == "blue\n"


def test_parameter_reaches_every_rank() -> None:
    source = "from ompy.mca.frameworks import declare; from ompy.mca.params import registry; declare()\n"
    source += "entry = registry.lookup('btl'); print(entry.value, entry.source)"
    job = launch("-n", "2", "--mca", "btl", "self,sm", *python(source))
    assert job.stdout.splitlines() == ["self,sm --mca btl"] * 2


def test_output_lines_carry_their_rank_when_asked() -> None:
    source = "import sys; print('one'); print('two'); sys.stdout.flush(); print('three', file=sys.stderr)"
    job = launch("-n", "2", "--tag-output", *python(source))
    assert sorted(job.stdout.splitlines()) == [f"[1,{r}]<stdout>: {w}" for r in (0, 1) for w in ("one", "two")]
    assert sorted(job.stderr.splitlines()) == [f"[1,{r}]<stderr>: three" for r in (0, 1)]


def test_equal_shares_of_the_processors() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    source = "import os; print(sorted(os.sched_getaffinity(0)))"
    width = len(allowed) // 2
    job = launch("-n", "2", *python(source))
    assert sorted(job.stdout.splitlines()) == sorted(str(allowed[r * width : (r + 1) * width]) for r in (0, 1))
    assert launch("-n", "2", "--bind-to", "none", *python(source)).stdout.splitlines() == [str(allowed)] * 2
    assert launch("-n", str(len(allowed) + 1), *python(source)).stdout.splitlines() == [str(allowed)] * (len(allowed) + 1)


def test_slots_of_a_host_file_are_the_number_of_ranks(tmp_path: object) -> None:
    path = f"{tmp_path}/hosts"
    with open(path, "w") as stream:
        stream.write("# two lines\nlocalhost slots=2\n127.0.0.1\n")
    assert len(launch("--hostfile", path, "hostname").stdout.splitlines()) == 3


def test_time_is_over() -> None:
    job = launch("-n", "2", "--timeout", "0.5", *python("import time; time.sleep(60)"))
    assert job.process.returncode == 124
    assert "time is over after 0.5 s" in job.stderr


def test_options_of_open_mpi_without_a_meaning_here_are_taken() -> None:
    job = launch("--allow-run-as-root", "--map-by", "core", "--oversubscribe", "-q", "-n", "1", *python("print('ran')"))
    assert (job.process.returncode, job.stdout) == (0, "ran\n")


def test_bindings_are_reported_when_asked() -> None:
    job = launch("-n", "1", "--report-bindings", "--bind-to", "core", "true")
    assert f"rank 0: processors {min(os.sched_getaffinity(0))}" in job.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mca", "btl_sm_eager_limt", "1", "true"], "no parameter is called btl_sm_eager_limt. Did you mean btl_sm_eager"),
        (["--mca", "btl_sm_eager_limit", "many", "true"], "'many' is not an integer"),
        (["--tag-ouput", "true"], "Did you mean --tag-output"),
        (["-n", "0", "true"], "-n takes a whole number of at least 1, found '0'"),
        (["-n", "two", "true"], "-n takes a whole number of at least 1, found 'two'"),
        (["-n"], "-n needs N"),
        ([], "a program is missing"),
        (["-n", "1", "true", ":"], "a program is missing"),
        (["--host", "elsewhere:2", "true"], "host 'elsewhere' is not this machine"),
        (["--host", "localhost:x", "true"], "expected a number of slots"),
        (["-n", "3", "--host", "localhost:2", "true"], "3 ranks do not fit into the 2 slots"),
        (["--hostfile", "/nonexistent/hosts", "true"], "/nonexistent/hosts"),
        (["--bind-to", "moon", "true"], "--bind-to takes share, core, none, found 'moon'"),
        (["--wdir", "/nonexistent", "true"], "--wdir /nonexistent: no such folder"),
        (["-x", "OMPY_NO_SUCH_VARIABLE", "true"], "no such variable"),
        (["--tune", "/nonexistent/tune", "true"], "/nonexistent/tune"),
        (["--stdin", "5", "-n", "2", "true"], "the job has ranks 0 to 1"),
        (["--timeout", "soon", "true"], "--timeout takes a number"),
    ],
)
def test_bad_command_line_is_explained_before_anything_starts(arguments: list[str], words: str) -> None:
    job = launch(*arguments)
    assert job.process.returncode == 2
    assert words in job.stderr
    assert "Traceback" not in job.stderr


def test_missing_program_is_named() -> None:
    job = launch("-n", "2", "no-such-program-here")
    assert job.process.returncode == 127
    assert "can't start 'no-such-program-here': No such file or directory" in job.stderr


def test_help_names_every_option() -> None:
    job = launch("--help")
    assert job.process.returncode == 0
    assert all(word in job.stdout for word in ("--mca", "--report-state-on-timeout", "--hostfile", "--mpi4py", "Exit status"))


def test_program_knows_its_number_on_the_command_line() -> None:
    source = "print(comm.Get_attr(MPI.APPNUM), comm.Get_attr(MPI.UNIVERSE_SIZE))"
    assert sorted(launch("-n", "1", *mpi(source), ":", "-n", "2", *mpi(source)).stdout.splitlines()) == ["0 3", "1 3", "1 3"]


@pytest.mark.parametrize("crowded", [False, True])
def test_ranks_that_outnumber_the_processors_share_a_session_and_lead_groups_of_their_own(crowded: bool) -> None:
    ranks = (os.cpu_count() or 1) + crowded
    source = "import os; print(os.getsid(0) == os.getsid(os.getppid()), os.getpgrp() == os.getpid())"
    job = launch("-n", str(ranks), *python(source))
    assert job.stdout.splitlines() == [f"{crowded} True"] * ranks
