"""How a component serves communicators: what it offers, several calls at once, other kinds of communicator, the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.mca.coll import FUNCTIONS, CollModule
from ompy.mca.pml import chosen
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.calls import (
    FIRST,
    NUMBERS,
    PAIR_WITH_GAP,
    PLAIN,
    REDUCTIONS,
    ROOTED,
    SUM,
    inter_case,
    intra_case,
    neighbor_case,
)  # fmt: skip
from ompy.testing.conformance.coll.rank import UNDEFINED, CollRank, await_end
from ompy.testing.conformance.coll.synchronization import waited_for
from ompy.testing.conformance.held import held

check = Collection()

COMMUNICATORS = 12
# Calls one after the other, and seconds by which a rank falls behind.
ROW, BEHIND = 120, 0.002
# Of two ranks, the one with which contact ends.
LOST, WORDS = 1, "the kit says so"


@contextmanager
def breaking(clause: str) -> Iterator[None]:
    """What goes wrong with the data breaks this clause."""
    try:
        yield
    except Breach as breach:
        raise Breach(clause, breach.words) from None


def some(rank: CollRank, comm: Communicator) -> list[str]:
    """Functions that the component serves."""
    offer = rank.offer(comm)
    served = () if offer is None else offer.functions or FUNCTIONS
    return [name for name in ("bcast", "allgather", "allreduce", "alltoall", "scan") if name in served]


@check("overlap")
def calls_under_way_at_once_get_their_own_data(rank: CollRank) -> None:
    """On one communicator where calls can be started; else on several, one call after the other."""
    from ompy.core.progress import wait_request
    from ompy.runtime.communicator_lifecycle import free_communicator
    from ompy.runtime.communicators import duplicate

    comm = rank.groups[rank.size]
    names = some(rank, comm)
    others = [made for made in (duplicate(comm), duplicate(comm)) if made is not None]
    for turn in range(10):
        for function in names:
            cases = [intra_case(function, rank.rank, rank.size, 3 + index, PLAIN, 0, False, SUM) for index in range(3)]
            with rank.module(comm, function) as module:
                assert module is not None
                if "start" in rank.forms:
                    requests = [module.start(NUMBERS[function], case.call, comm) for case in cases]
                    for request in reversed(requests) if turn % 2 else requests:
                        wait_request(request)
                else:
                    for case, other in zip(cases, (comm, *others), strict=True):
                        with rank.module(other, function) as serving:
                            assert serving is not None
                            serving.run(NUMBERS[function], case.call, other)
                with breaking("overlap"):
                    for index, case in enumerate(cases):
                        case.check(f"{function}, number {index} of three under way, rank {rank.rank}")
        rank.alive()
    for other in others:
        free_communicator(other)


@check("overlap", ranks=2)
def calls_that_follow_each_other_get_their_own_data(rank: CollRank) -> None:
    """A long row of calls of all functions, with all roots, in which now one rank falls behind, now another."""
    comm = rank.groups[rank.size]
    shared = rank.common_random("row")
    with ExitStack() as stack:
        modules = {name: stack.enter_context(rank.module(comm, name)) for name in rank.functions}
        served = {name: module for name, module in modules.items() if module is not None}
        for number in range(ROW if served else 0):
            function = shared.choice(list(served))
            count, root, behind = shared.choice((1, 3, 50, 2000)), shared.randrange(rank.size), shared.randrange(4 * rank.size)
            form = shared.choice(rank.forms)
            operation = shared.choice((SUM, FIRST)) if function in REDUCTIONS else None
            if behind == rank.rank:
                rank.linger(BEHIND)
            case = intra_case(function, rank.rank, rank.size, count, PLAIN, root, False, operation)
            words = f"{function} ({form}), number {number} of a row of calls, rank {rank.rank}"
            with breaking("overlap"):
                rank.carry_out(served[function], form, function, case, comm, words)
            if number % 20 == 0:
                rank.alive()


@check("messages", ranks=2)
def a_receive_from_any_source_with_any_tag_gets_nothing_of_a_collective(rank: CollRank) -> None:
    """Posted before it on the same communicator, and ended by a message of the program's afterwards."""
    MPI, comm = rank.MPI, rank.comm
    before, after = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    for function in rank.functions:
        got = bytearray(4096)
        with rank.module(rank.world, function) as module:
            if module is None:
                continue
            for form in rank.forms:
                rank.alive()
                request = comm.Irecv(got, MPI.ANY_SOURCE, MPI.ANY_TAG)
                for count in (2, 300):
                    case = intra_case(
                        function, rank.rank, rank.size, count, PLAIN, 0, False, SUM if function in REDUCTIONS else None
                    )
                    rank.carry_out(module, form, function, case, rank.world, f"{function} ({form}) beside a receive")
                status = MPI.Status()
                if request.Test(status):
                    words = f"{function} ({form}): {status.Get_count(MPI.BYTE)} bytes of tag {status.tag} went to the program"
                    raise Breach("messages", words)
                rank.meet()
                comm.Send(bytes([rank.rank]), after, 5)
                request.Wait(status)
                if (status.source, status.tag, got[0]) != (before, 5, before):
                    raise Breach("messages", f"{function} ({form}): rank {rank.rank} received what rank {before} did not send")
                rank.meet()


@check("inter", needs="inter", ranks=2)
def groups_exchange_over_an_inter_communicator(rank: CollRank) -> None:
    """Every function that is offered for one, with every root."""
    from ompy.runtime.communicator_lifecycle import free_communicator

    served = 0
    for here in sorted({1, rank.size // 2}):
        inter, mine = rank.two_groups(here)
        for function in FUNCTIONS:
            if function in ("scan", "exscan") or function.startswith("neighbor_"):
                continue
            with rank.module(inter, function) as module:
                if module is None:
                    continue
                served += 1
                for root in range(rank.size) if function in ROOTED else (0,):
                    for shape, count in ((PLAIN, 2), (PAIR_WITH_GAP, 1), (PLAIN, 0)):
                        operation = FIRST if function in REDUCTIONS else None
                        case = inter_case(function, rank.rank, here, rank.size - here, count, shape, root, operation)
                        words = f"{function} between groups of {here} and {rank.size - here}, rank {rank.rank}, root {root}"
                        with breaking("inter"):
                            rank.carry_out(module, rank.forms[0], function, case, inter, words)
        free_communicator(inter)
        free_communicator(mine)
        rank.alive()
    if not served:
        raise Breach("offer", "the component declares inter, and offers no function for inter-communicators")


@check("result", function="neighbor_alltoall")
def neighbours_on_a_grid_exchange(rank: CollRank) -> None:
    """A periodic row of all ranks, and one with ends."""
    from ompy.mpi.topology import Cartesian
    from ompy.runtime.communicator_lifecycle import free_communicator
    from ompy.runtime.communicators import duplicate

    for periodic in (True, False):
        grid = Cartesian([rank.size], [periodic], rank.rank)
        comm = duplicate(rank.groups[rank.size], {"topology": grid})
        assert comm is not None

        def arrives(own: int, slot: int, periodic: bool = periodic) -> tuple[int, int] | None:
            """What the neighbour below sent above, and the other way round."""
            source = Cartesian([rank.size], [periodic], own).in_neighbors[slot]
            return None if source < 0 else (source, slot ^ 1)

        for function in FUNCTIONS:
            if function.startswith("neighbor_"):
                with rank.module(comm, function) as module:
                    for form in rank.forms if module is not None else ():
                        for count, shape in ((3, PLAIN), (1, PAIR_WITH_GAP), (0, PLAIN)):
                            assert module is not None
                            case = neighbor_case(function, comm, rank.rank, count, shape, arrives)
                            rank.carry_out(module, form, function, case, comm, f"{function} on rank {rank.rank}")
        free_communicator(comm)
        rank.alive()


@check("failure", ranks=2, last=True)
def a_call_that_needs_a_rank_which_has_failed_ends_with_its_failure(rank: CollRank) -> None:
    """On two ranks, of which the other one never begins; nothing but the loss of it ends the calls."""
    from ompy.runtime.communicators import split

    comm = split(rank.world, 0 if rank.rank < 2 else UNDEFINED, rank.rank)
    calls = [] if comm is None else [it for function in rank.functions for it in calls_of_both(rank, comm, function)]
    rank.exchange(None)
    if rank.rank == 0 and comm is not None:
        pml, cases = chosen(), [intra_case(function, 0, 2, 3, PLAIN, root, False, SUM) for function, _, root, _ in calls]
        assert pml is not None
        begun = [
            (f"{function}, started before the loss,", module.start(NUMBERS[function], case.call, comm))
            for (function, form, _, module), case in zip(calls, cases, strict=True)
            if form == "start"
        ]
        pml.peer_lost(comm.group.member(LOST), WORDS)
        for words, request in begun:
            ends_with_the_loss(words, partial(await_end, request))
        for (function, form, _, module), case in zip(calls, cases, strict=True):
            finish = partial(rank.complete, module, form, NUMBERS[function], case.call, comm)
            ends_with_the_loss(f"{function} ({form})", finish)
            rank.alive()
    rank.exchange(None)


def calls_of_both(rank: CollRank, comm: Communicator, function: str) -> Iterator[tuple[str, str, int, CollModule]]:
    """Function, form, root and module of the calls in which the first of two ranks needs the other one."""
    root = LOST if function in ("bcast", "scatter", "scatterv") else 0
    # Not freed: that is for communicators that are gone.
    module = rank.module(comm, function).__enter__()
    if module is not None and LOST in waited_for(function, 0, 2, root, 3):
        for form in rank.forms:
            yield function, form, root, module


def ends_with_the_loss(words: str, finish: Callable[[], object]) -> None:
    try:
        finish()
    except MPIError as error:
        if error.code != ERR_PROC_FAILED or WORDS not in str(error):
            raise Breach("failure", f"{words} ends with {error!r}, not with the `failure` of the rank that it needs") from None
    else:
        raise Breach("failure", f"{words} is done as if the rank that it needs had not failed")


@check("free")
def nothing_is_left_of_communicators_that_are_gone(rank: CollRank) -> None:
    from ompy.runtime.communicator_lifecycle import free_communicator
    from ompy.runtime.communicators import duplicate

    comm = rank.groups[rank.size]
    names = some(rank, comm)

    def use() -> None:
        made = duplicate(comm)
        assert made is not None
        for function in names:
            with rank.module(made, function) as module:
                assert module is not None
                case = intra_case(function, rank.rank, rank.size, 3, PLAIN, 0, False, SUM)
                rank.carry_out(module, rank.forms[0], function, case, made, function)
        free_communicator(made)

    for _ in range(2):
        use()
    before = held()
    for _ in range(COMMUNICATORS):
        use()
    rank.exchange(None)
    after = held()
    for name, first, last in zip(("open files", "mappings of shared memory"), before, after, strict=True):
        if last - first >= COMMUNICATORS:
            raise Breach("free", f"{COMMUNICATORS} communicators have come and gone, and left {last - first} more {name}")
