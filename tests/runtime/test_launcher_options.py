"""What can be said to `ompyrun`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

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


def test_options_of_others_without_a_meaning_here_are_taken() -> None:
    words = ("--allow-run-as-root", "--map-by", "core", "--rank-by", "slot", "--oversubscribe", "-q", "-genvall")
    job = launch(*words, "-n", "1", *python("print('ran')"))
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
        (["--host", "localhost:x", "true"], "expected a number of slots"),
        (["--host", "localhost:²", "true"], "expected a number of slots"),
        (["-n", "3", "--host", "localhost:2", "true"], "3 ranks do not fit into the 2 slots"),
        (["--hostfile", "/nonexistent/hosts", "true"], "/nonexistent/hosts"),
        (["--bind-to", "moon", "true"], "--bind-to takes share, none, package, numa"),
        (["--outfile-pattern", "", "true"], "--outfile-pattern: the name of a file is expected"),
        (["--wdir", "/nonexistent", "true"], "--wdir /nonexistent: no such folder"),
        (["-x", "OMPY_NO_SUCH_VARIABLE", "true"], "no such variable"),
        (["--tune", "/nonexistent/tune", "true"], "/nonexistent/tune"),
        (["--stdin", "5", "-n", "2", "true"], "the job has ranks 0 to 1"),
        (["--timeout", "soon", "true"], "--timeout takes a number"),
        (["--timeout", "nan", "true"], "--timeout takes a number"),
        (["--timeout", "inf", "true"], "--timeout takes a number"),
        (["-x", "=v", "true"], "a variable's name is missing"),
        (["-x", "PATH,,B", "true"], "a variable's name is missing"),
        (["-x", "OMPY_NO_SUCH,PATH", "true"], "OMPY_NO_SUCH: there is no such variable"),
        ([""], "the program's name is empty"),
        (["-n", "1", "--"], "a program is missing after `--`"),
        (["-n", "1000000000", "true"], "ranks need"),
        (["-H", "elsewhere", "-N", "9" * 30, "true"], "a job has at most 1048576"),
        (["-H", f"elsewhere:{'9' * 30}", "true"], "a job has at most 1048576"),
        (["--output", "file=", "true"], "dir=FOLDER or file=NAME"),
        (["--output", "colour", "true"], "--output takes tag"),
        (["--map-by", "moon", "true"], "--map-by takes slot"),
        (["--map-by", "core:PE=x", "true"], "PE=N takes a whole number"),
        (["--rank-by", "moon", "true"], "--rank-by takes slot"),
        (["--npernode", "2", "-n", "3", "true"], "3 ranks do not fit"),
        (["--cpus-per-rank", "9999", "-n", "1", "true"], "do not fit"),
        (["--rankfile", "/nonexistent/ranks", "true"], "/nonexistent/ranks"),
        (["--app", "/nonexistent/app"], "/nonexistent/app"),
        (["--display", "stars", "true"], "--display takes map, bind"),
        (["--report-pid", "/nonexistent/pid", "true"], "/nonexistent/pid"),
        (["--preload-files", "a", "true"], "every host is to have the files already"),
        (["--xterm", "1", "true"], "--stdin RANK"),
        (["--npernod", "1", "true"], "Did you mean --npernode"),
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
    ranks = len(os.sched_getaffinity(0)) + crowded
    source = "import os; print(os.getsid(0) == os.getsid(os.getppid()), os.getpgrp() == os.getpid())"
    job = launch("-n", str(ranks), *python(source))
    assert job.stdout.splitlines() == [f"{crowded} True"] * ranks


def test_ranks_that_outnumber_the_processors_that_the_launcher_may_use_share_a_session() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        job = launch("-n", "2", "--oversubscribe", *python("import os; print(os.getsid(0) == os.getsid(os.getppid()))"))
    finally:
        os.sched_setaffinity(0, allowed)
    assert job.stdout == "True\n" * 2


def test_variables_in_lists_and_patterns() -> None:
    source = "import os; print(os.environ['OMPY_T_A'], os.environ['OMPY_T_B'], os.environ['X_Y'])"
    names = {"OMPY_T_A": "a", "OMPY_T_B": "b"}
    job = launch("-x", "OMPY_T_*,X_Y=1,2", "-n", "1", *python(source), environment=names)
    assert job.stdout == "a b 1,2\n"


def test_variables_as_hydra_has_them() -> None:
    source = "import os; print(os.environ['OWN'], os.environ['ALL'])"
    words = ("-genv", "ALL", "g", "-n", "1", "-env", "OWN", "0", *python(source))
    job = launch(*words, ":", "-n", "1", "-env", "OWN", "1", *python(source))
    assert sorted(job.stdout.splitlines()) == ["0 g", "1 g"]


WRITE = "import os, sys; rank = os.environ['PMI_RANK']; os.write(1, b'out ' + rank.encode()); os.write(2, b'err\\n')"


def test_output_goes_to_files_of_each_rank(tmp_path: Path) -> None:
    job = launch("-n", "2", "--output-filename", f"{tmp_path}/o", *python(WRITE))
    assert sorted(job.stderr.splitlines()) == ["err", "err"]
    for rank in (0, 1):
        assert (tmp_path / f"o/1/rank.{rank}/stdout").read_bytes() == f"out {rank}".encode()
        assert (tmp_path / f"o/1/rank.{rank}/stderr").read_bytes() == b"err\n"
    job = launch("-n", "2", "--output", f"file={tmp_path}/f:nocopy,merge", *python(WRITE))
    assert (job.stdout, job.stderr) == ("", "")
    assert (tmp_path / "f.1").read_bytes() == b"out 1err\n"


def test_output_goes_to_files_by_patterns(tmp_path: Path) -> None:
    job = launch("-n", "2", "-outfile-pattern", f"{tmp_path}/%r-%h-100%%", *python(WRITE))
    assert (job.stdout, job.stderr) == ("", "err\nerr\n")
    assert (tmp_path / f"1-{os.uname().nodename}-100%").read_bytes() == b"out 1"


def test_output_file_that_cannot_be_made_is_named() -> None:
    job = launch("-n", "2", "--output-filename", "/proc/none", *python(WRITE))
    assert job.process.returncode == 1
    assert "/proc/none" in job.stderr
    assert "Traceback" not in job.stderr


def test_output_goes_to_a_pipe_that_is_read_and_one_that_nobody_reads_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    job = launch("-n", "1", "--outfile-pattern", str(path), "echo", "x")
    assert job.process.returncode == 1
    assert f"{path}, for the output of rank 0, can't be written: nobody reads" in job.stderr
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert launch("-n", "1", "--outfile-pattern", str(path), "echo", "x").process.returncode == 0
    assert os.read(reader, 100) == b"x\n"
    os.close(reader)


def test_words_that_are_not_utf_8_reach_the_program_and_are_shown(tmp_path: Path) -> None:
    show = "import sys; print(ascii(sys.argv[1]))"
    job = launch("--verbose", "-n", "1", *python(show), "caf\udce9")
    assert (job.process.returncode, job.stdout) == (0, "'caf\\udce9'\n")
    assert "caf\\udce9" in job.stderr
    path = tmp_path / "app"
    path.write_bytes(f"-n 1 {sys.executable} -c '{show}' ".encode() + b"caf\xe9\n")
    assert launch("--app", str(path)).stdout == "'caf\\udce9'\n"


def test_streams_merge_in_order_and_lines_carry_time_or_rank() -> None:
    source = "import os\nfor i in range(50): os.write(1 + i % 2, f'{i}\\n'.encode())"
    job = launch("-n", "1", "--merge-stderr-to-stdout", *python(source))
    assert (job.stdout.split(), job.stderr) == ([str(i) for i in range(50)], "")
    job = launch("-n", "2", "-l", *python(PRINT_RANK))
    assert sorted(job.stdout.splitlines()) == ["[0] 0 2", "[1] 1 2"]
    job = launch("-n", "1", "--timestamp-output", "--tag-output", *python("print('x')"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6} \[1,0\]<stdout>: x\n", job.stdout)


@pytest.mark.parametrize("size", [0, 3, 1_000_000])
def test_every_rank_gets_all_input(size: int) -> None:
    source = "import os, sys; data = sys.stdin.read(); print(os.environ['PMI_RANK'], len(data), data == 'x' * len(data))"
    job = launch("-n", "3", "--stdin", "all", *python(source), stdin="x" * size)
    assert sorted(job.stdout.splitlines()) == [f"{rank} {size} True" for rank in range(3)]


def test_input_for_every_rank_passes_those_that_read_nothing() -> None:
    source = "import os, sys\nif os.environ['PMI_RANK'] == '0': print(len(sys.stdin.read()))\nelse: os.close(0)"
    assert launch("-n", "2", "--stdin", "all", *python(source), stdin="x" * 1_000_000).stdout == "1000000\n"


def test_rank_file_places_each_rank(tmp_path: Path) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    source = "import os; print(os.environ['PMI_RANK'], sorted(os.sched_getaffinity(0)))"
    ranks = tmp_path / "ranks"
    ranks.write_text(f"# both\nrank 1=localhost slot={allowed[0]}\nrank 0 = localhost slots={allowed[0]}-{allowed[-1]}\n")
    job = launch("-n", "2", "--rankfile", str(ranks), *python(source))
    assert sorted(job.stdout.splitlines()) == [f"0 {allowed}", f"1 {allowed[:1]}"]
    for text, words in (
        ("rank 0=localhost slot=0", "no line for rank 1"),
        ("rank 5=localhost slot=0", "rank 5 is none of the job's"),
        ("rank 0=elsewhere slot=0", "is not this machine"),
        ("rank 0=localhost slot=99999\nrank 1=localhost slot=0", "not all among what this job may use"),
        ("rank 0=localhost slot=0\nrank 1=localhost slot=77:*", "not all among what this job may use"),
        ("rank 0=localhost slot=0\nrank 1=localhost slot=0:999999999", "not all among what this job may use"),
        ("rank 0=localhost slot=0:1:2", "expected processors as 0,2-5, or cores of a package"),
        ("rank zero", "expected rank N=HOST"),
    ):
        ranks.write_text(text)
        job = launch("-n", "2", "--rankfile", str(ranks), "true")
        assert (job.process.returncode, words in job.stderr) == (2, True), job.stderr


def test_processors_for_each_rank() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    source = "import os; print(sorted(os.sched_getaffinity(0)))"
    for words in (("--cpus-per-rank", "1"), ("--map-by", "slot:PE=1")):
        assert launch("-n", "1", *words, *python(source)).stdout == f"{allowed[:1]}\n"
    assert launch("--map-by", "ppr:2:node", "echo", "x").stdout == "x\nx\n"
    assert launch("-ppn", "3", "echo", "x").stdout == "x\n" * 3


def test_map_is_shown() -> None:
    job = launch("-n", "2", "--display-map", "true")
    assert re.search(rf"rank 1: host {os.uname().nodename}, processors [\d,-]+: true", job.stderr)


def test_process_number_of_the_launcher_is_reported(tmp_path: Path) -> None:
    job = launch("--report-pid", str(tmp_path / "pid"), "-n", "1", "true")
    assert (tmp_path / "pid").read_text() == f"{job.process.pid}\n"
    assert launch("--report-pid", "-", "-n", "1", "true").stdout.strip().isdigit()


def test_options_of_the_job_count_wherever_they_stand(tmp_path: Path) -> None:
    job = launch("true", ":", "--report-pid", str(tmp_path / "pid"), "true")
    assert (tmp_path / "pid").read_text() == f"{job.process.pid}\n"
    path = tmp_path / "app"
    path.write_text(f"true\n--report-pid {tmp_path}/other true\n")
    job = launch("--app", str(path))
    assert (tmp_path / "other").read_text() == f"{job.process.pid}\n"
    assert "usage: ompyrun" in launch("true", ":", "--help").stdout
    assert launch("true", ":", "--version").stdout.startswith("ompyrun (ompy)")
    assert "--report-state takes a whole number" in launch("true", ":", "--report-state", "x").stderr


def test_programs_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "app"
    path.write_text(f"# two\n-n 2 echo 'one word'\n\n-n 1 -x A=b {sys.executable} -c 'import os; print(os.environ[\"A\"])'\n")
    assert sorted(launch("--tag-output", "--app", str(path)).stdout.splitlines()) == [
        "[1,0]<stdout>: one word",
        "[1,1]<stdout>: one word",
        "[1,2]<stdout>: b",
    ]
    for text, words in (
        ("-n 1 echo 'x", f"{path}:1"),
        ("--moon x", "no option --moon"),
        ("", "no program in it"),
        ("true\n\0 x", f"{path}:2: there is a NUL byte"),
        (f"true\ntrue : --app {path}", f"{path}:2: --app in such a file"),
    ):
        path.write_text(text)
        job = launch("--app", str(path))
        assert (job.process.returncode, words in job.stderr) == (2, True), job.stderr
    assert "does so too" in launch("--app", str(path), "true").stderr
    assert "does so too" in launch("true", ":", "--app", str(path)).stderr


def test_a_failing_rank_ends_the_others_unless_told_otherwise() -> None:
    job = launch("--disable-auto-cleanup", "-n", "1", "sh", "-c", "exit 3", ":", "-n", "1", "sh", "-c", "sleep 1; echo done")
    assert (job.process.returncode, job.stdout) == (3, "done\n")
    assert "exited with code 3" in job.stderr


@pytest.mark.parametrize(
    ("options", "errors", "handler"),
    [
        ((), "default", "ERRORS_ARE_FATAL"),
        (("-initial-errhandler", "mpi_errors_return"), "default", "ERRORS_RETURN"),
        (("--initial-errhandler", "mpi_errors_abort"), "default", "ERRORS_ABORT"),
        (("--initial-errhandler", "mpi_errors_are_fatal"), "exception", "ERRORS_RETURN"),
        (("--initial-errhandler", "mpi_errors_return"), "fatal", "ERRORS_ARE_FATAL"),
    ],
)
def test_the_error_handler_at_the_start_is_an_option(options: tuple[str, ...], errors: str, handler: str) -> None:
    """MPI-4.1, 11.5.  What the program chooses by `rc.errors` counts more."""
    source = f"assert all(it.Get_errhandler() == MPI.{handler} for it in (MPI.COMM_WORLD, MPI.COMM_SELF))"
    job = launch("-n", "2", *options, *mpi(source), environment={**os.environ, "MPI4PY_RC_ERRORS": errors})
    assert (job.process.returncode, job.stderr) == (0, "")


def test_a_wrong_error_handler_is_named_with_those_that_there_are() -> None:
    job = launch("-n", "2", "-initial-errhandler", "mpi_errors_ignore", "true")
    assert job.process.returncode != 0
    assert "mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return" in job.stderr
    assert job.stderr.count("mpi_errors_ignore") == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [((), "mpi,system"), (("-memory-alloc-kinds", "cuda,mpi:alloc_mem,system"), "mpi:alloc_mem,system,mpi")],
)
def test_kinds_of_memory_are_asked_for_by_an_option(options: tuple[str, ...], told: str) -> None:
    """MPI-4.1, 11.4.3; what a session is opened with counts more."""
    source = "asked = MPI.Info.Create({'mpi_memory_alloc_kinds': 'system'})\n"
    source += "for some in (MPI.COMM_WORLD, MPI.Session.Init(), MPI.Session.Init(asked)):\n"
    source += "    if rank == 0: print(some.Get_info()['mpi_memory_alloc_kinds'])"
    assert launch("-n", "2", *options, *mpi(source)).stdout.split() == [told, told, "system,mpi"]
