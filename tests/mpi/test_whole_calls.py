"""Calls of several steps, on which the other ranks count: what a signal handler raises in one comes at its end, and nobody is
left waiting, or takes one call's messages for another's.
"""

import signal

import numpy as np
import pytest
from late_signals import Late, raise_late

GO = 1
LONG = 400_000
PER_RANK = {
    "Barrier": lambda comm: comm.Barrier(),
    "Allreduce": lambda comm: comm.Allreduce(np.ones(4), np.zeros(4)),
    "long Allreduce": lambda comm: comm.Allreduce(np.ones(LONG), np.zeros(LONG)),
    "long Bcast": lambda comm: comm.Bcast(np.ones(LONG)),
    "Reduce_scatter": lambda comm: comm.Reduce_scatter(np.ones(comm.size), np.zeros(1), [1] * comm.size),
    "Allgatherv": lambda comm: comm.Allgatherv(np.ones(1), [np.zeros(comm.size), [1] * comm.size]),
    "Alltoallv": lambda comm: comm.Alltoallv([np.ones(comm.size), [1] * comm.size], [np.ones(comm.size), [1] * comm.size]),
    "bcast": lambda comm: comm.bcast(list(range(9)), 0),
    "gather": lambda comm: comm.gather(comm.rank),
    "scatter": lambda comm: comm.scatter(list(range(comm.size))),
    "allgather": lambda comm: comm.allgather("x" * 50 * comm.rank),
    "alltoall": lambda comm: comm.alltoall([comm.rank] * comm.size),
    "reduce": lambda comm: comm.reduce([comm.rank]),
    "allreduce": lambda comm: comm.allreduce([comm.rank]),
    "exscan": lambda comm: comm.exscan((comm.rank,)),
    "Split": lambda comm: comm.Split(0, -comm.rank),
    "Create_dist_graph": lambda comm: comm.Create_dist_graph([comm.rank], [1], [0]),
}


def make_late(call, tell):
    """`call`, in which a handler tells the others to come, and raises; a call that waits for nobody is over before."""
    told = []

    def handle(*_):
        told.append(1)
        tell()
        raise Late

    signal.signal(signal.SIGALRM, handle)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        pass
    if not told:
        tell()


def check_what_follows(comm):
    for turn in range(3):
        total = np.zeros(4)
        comm.Allreduce(np.full(4, float(comm.rank + turn)), total)
        assert (total == sum(range(comm.size)) + turn * comm.size).all()
        assert comm.bcast(("root", comm.rank, turn), root=turn % comm.size) == ("root", turn % comm.size, turn)
        assert comm.allgather(comm.rank) == list(range(comm.size))


def interrupt(who, call, used):
    from ompy import MPI

    world = MPI.COMM_WORLD
    comm = world.Dup()
    if used:
        check_what_follows(comm)
    if world.rank == who:
        make_late(lambda: call(comm), lambda: [world.send(None, rank, GO) for rank in range(world.size) if rank != who])
    else:
        world.recv(source=who, tag=GO)
        call(comm)
    check_what_follows(comm)
    comm.Free()


@pytest.mark.ompy(3)
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("name", PER_RANK)
def test_a_collective_that_is_interrupted_is_made_with_the_others(name, who, used):
    interrupt(who, PER_RANK[name], used)


@pytest.mark.ompy(3, mca={"coll": "tuned,basic"})
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("name", ["Barrier", "long Allreduce", "Reduce_scatter", "allgather", "Split"])
def test_a_collective_by_messages_that_is_interrupted_is_made_with_the_others(name, who):
    interrupt(who, PER_RANK[name], False)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("who", [0, 1])
def test_a_merge_that_is_interrupted_is_made_with_the_others(who):
    from ompy import MPI

    world = MPI.COMM_WORLD
    between = MPI.COMM_SELF.Create_intercomm(0, world, 1 - world.rank)
    if world.rank == who:
        make_late(lambda: between.Merge(), lambda: world.send(None, 1 - who, GO))
    else:
        world.recv(source=who, tag=GO)
        between.Merge()
    assert between.allgather(world.rank) == [1 - world.rank]
    assert between.Merge().allgather(world.rank) in ([0, 1], [1, 0])


@pytest.mark.ompy(2)
@pytest.mark.parametrize("begin", ["Ibarrier", "Iallreduce"])
def test_a_collective_that_an_exception_keeps_from_beginning_can_be_begun_again(begin, monkeypatch):
    from ompy import MPI
    from ompy.mca.coll_rules import Settings

    comm = MPI.COMM_WORLD.Dup()
    total = np.zeros(1)
    call = {"Ibarrier": comm.Ibarrier, "Iallreduce": lambda: comm.Iallreduce(np.ones(1), total)}[begin]
    if comm.rank == 0:

        def fail(*_):
            raise Late

        # Python runs where an algorithm is chosen, and a handler may raise at any line of it.
        with monkeypatch.context() as patch:
            patch.setattr(Settings, "rules", fail)
            with pytest.raises(Late):
                call()
    call().Wait()
    check_what_follows(comm)


class InstallsHandler:
    """What it is unpickled by sets a signal's handler, as a module may that is imported then."""

    def __reduce__(self):
        return signal.signal, (signal.SIGUSR2, signal.SIG_DFL)


@pytest.mark.ompy(2)
def test_what_the_programs_functions_do_in_a_collective_is_as_anywhere(comm):
    comm.bcast(InstallsHandler() if comm.rank == 0 else None)
    comm.allgather(InstallsHandler())
    ran = []

    def wait_for_handler(left, right):
        signal.signal(signal.SIGALRM, lambda *_: ran.append(left))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while not ran:
            pass
        return left + right

    assert comm.allreduce(1, wait_for_handler) == 2


@pytest.mark.ompy(2)
@pytest.mark.parametrize("call", ["allgather", "Split", "long Bcast"])
def test_who_waits_for_one_that_never_comes_is_let_out_after_a_while(call):
    from ompy import MPI

    world = MPI.COMM_WORLD
    comm = world.Dup()
    comm.Barrier()
    if world.rank == 1:
        signal.signal(signal.SIGALRM, raise_late)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        late = False
        try:
            PER_RANK[call](comm)
        except Late:
            late = True
        assert late
        world.send(None, 0, GO)
    else:
        world.recv(source=1, tag=GO)
    assert world.allgather(world.rank) == [0, 1]


@pytest.mark.ompy(2)
@pytest.mark.parametrize("kind", ["Bcast", "Gatherv"])
def test_a_part_in_a_collective_that_waits_for_room_is_done_though_a_handler_raises(comm, kind):
    """The sender is as far ahead as it may be; the receiver comes when the handler says so."""
    comm.Barrier()
    count, sender = 200, 0 if kind == "Bcast" else 1
    found = []

    def call(number):
        data = np.full(1, float(number))
        if kind == "Bcast":
            comm.Bcast(data)
            found.append(data[0])
        else:
            into = np.zeros(2)
            comm.Gatherv(data, [into, [1, 1]] if comm.rank == 0 else None)
            found.append(into[1])

    if comm.rank == sender:
        late, told = [], []

        def handle(*_):
            told.append(comm.isend(None, 1 - sender, GO))
            raise Late

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        for number in range(count):
            try:
                call(number)
            except Late:
                late.append(number)
        assert len(late) == 1
        told[0].wait()
    else:
        comm.recv(source=sender, tag=GO)
        for number in range(count):
            call(number)
        assert found == list(range(count))
    assert comm.allgather(comm.rank) == [0, 1]
