"""Who may be done when: one rank begins late, and clocks tell who did not wait for it.

    rank 0   begun ........... looked ........ done      those before it enter, and look whether their part is done
    rank 1   begun ........... looked ........ done
    rank 2                             begun . done      late: begins once they have looked

Whoever is done writes over its memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ompy.core.communicator import Communicator
from ompy.mca.coll import CollModule
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.calls import NUMBERS, PLAIN, REDUCTIONS, ROOTED, SUM, Case, intra_case, uneven
from ompy.testing.conformance.coll.clocks import BEGUN, DONE, LOOKED, Clocks
from ompy.testing.conformance.coll.rank import CollRank

check = Collection()

# Elements of a block: sent at once, and beyond what transports send at once.
SHORT, LONG = 3, 20_000
LOOKS = 50  # after the start of a call that does not block
MOST_LATE = 4  # ranks of a large communicator that are late in turn


def waited_for(function: str, rank: int, size: int, root: int, count: int) -> set[int]:
    """The ranks without whose beginning a rank's part can't be done: those whose data it gets, or in a barrier all."""
    everybody = set(range(size))
    if function in ("bcast", "scatter"):
        return {root}
    if function == "scatterv":
        return {root} if uneven(0, rank, count) else set()
    if function in ("gather", "reduce"):
        return everybody if rank == root else set()
    if function == "gatherv":
        return {source for source in everybody if uneven(source, 0, count)} if rank == root else set()
    if function == "allgatherv":
        return {source for source in everybody if uneven(source, 0, count)}
    if function in ("alltoallv", "alltoallw"):
        return {source for source in everybody if uneven(source, rank, count)}
    if function == "reduce_scatter":
        return everybody if uneven(rank, 1, count) else set()
    if function in ("scan", "exscan"):
        return set(range(rank + (function == "scan")))
    return everybody


def late_ranks(rank: CollRank) -> list[int]:
    """Each in turn; of many the first, the last and others."""
    if rank.size <= MOST_LATE:
        return list(range(rank.size))
    return [0, rank.size - 1, *rank.common_random("late").sample(range(1, rank.size - 1), MOST_LATE - 2)]


class Call:
    """One call in which one rank is late.

    Parameters:
        rank, clocks: of this process.
        late: the rank that is.
        waited: those that this rank's part needs.
        words: which call this is, for people.
    """

    def __init__(self, rank: CollRank, clocks: Clocks, late: int, waited: set[int], words: str) -> None:
        self.rank = rank
        self.clocks = clocks
        self.late = late
        self.waited = waited
        self.words = words
        clocks.next()

    def carry_out(self, module: CollModule, form: str, function: str, case: Case, comm: Communicator) -> None:
        """The call, until this rank's part is done."""
        from ompy.core.progress import progress_once, wait_request

        number = NUMBERS[function]
        if self.rank.rank == self.late:
            self.hold_off(form)
        self.clocks.strike(BEGUN)
        if form == "run":
            module.run(number, case.call, comm)
        else:
            request = getattr(module, form)(number, case.call, comm)
            if form == "init":
                request.start()
            for _ in range(LOOKS):
                progress_once()
                if request.complete:
                    self.judge()
            self.clocks.strike(LOOKED)
            wait_request(request)
            if request.error is not None:
                raise request.error
        self.judge()
        case.collect()
        self.clocks.strike(DONE)

    def judge(self) -> None:
        """This rank's part is done: who must have begun?"""
        if early := self.waited & self.clocks.missing(BEGUN):
            words = f"{self.words}: its part was done before rank {min(early)} had begun"
            raise Breach("synchronization", words)

    def hold_off(self, form: str) -> None:
        """Begin once the others have had every opportunity to be done too early."""
        blocking = form == "run"
        hand = BEGUN if blocking else LOOKED
        if not self.rank.linger(self.rank.wire.setting.patience, lambda: self.clocks.all_but(self.late, hand)):
            others = sorted(self.clocks.missing(hand) - {self.late})
            raise Breach("forms", f"{self.words}: rank {others[0]} does not come back from `{form}` before this one has begun")
        if blocking:
            self.rank.linger(enough=lambda: self.clocks.all_but(self.late, DONE))


def in_turn(rank: CollRank, function: str) -> Iterator[tuple[int, int, int]]:
    """(late rank, root, elements of a block) of the calls of a function: with each rank late, and once with long blocks."""
    if function == "barrier":
        yield from ((late, 0, 0) for late in late_ranks(rank))
        return
    for late in late_ranks(rank):
        # First where the late one is not the root, who would have everything before it begins.
        for root in ((late + 1) % rank.size, late) if function in ROOTED else (0,):
            yield late, root, SHORT
    yield rank.size - 1, 0, LONG // rank.size


@check("synchronization", "buffers", "forms", ranks=2)
def nobody_is_done_before_those_whom_it_waits_for(rank: CollRank) -> None:
    comm, clocks = rank.groups[rank.size], Clocks(rank)
    for function in rank.functions:
        operation = SUM if function in REDUCTIONS else None
        for algorithm, module in rank.serving(comm, function):
            for form in rank.forms_of(algorithm):
                rank.alive()
                for late, root, count in in_turn(rank, function):
                    words = f"{function} ({algorithm}, {form}) of {count} elements, root {root}, rank {rank.rank}"
                    case = intra_case(function, rank.rank, rank.size, count, PLAIN, root, False, operation)
                    call = Call(rank, clocks, late, waited_for(function, rank.rank, rank.size, root, count), words)
                    call.carry_out(module, form, function, case, comm)
                    breach = breach_of(case, f"{words}, when each rank writes over its memory as soon as it is done")
                    if any(rank.meet(breach is not None)):
                        # The data may be wrong though nobody writes until all are done.
                        case.again()
                        rank.complete(module, form, NUMBERS[function], case.call, comm)
                        rank.meet()
                        case.check(words)
                        if breach is not None:
                            raise Breach("buffers", breach.words)


def breach_of(case: Case, words: str) -> Breach | None:
    try:
        case.check(words)
    except Breach as breach:
        return breach
    return None


@check("synchronization", needs="inter", ranks=2)
def a_barrier_of_two_groups_waits_for_the_other_one(rank: CollRank) -> None:
    from ompy.runtime.communicator_lifecycle import free_communicator

    clocks = Clocks(rank)
    for here in sorted({1, rank.size // 2}):
        inter, mine = rank.two_groups(here)
        others = set(range(here, rank.size)) if rank.rank < here else set(range(here))
        with rank.module(inter, "barrier") as module:
            for form in rank.forms if module is not None else ():
                for late in late_ranks(rank):
                    assert module is not None
                    words = f"barrier ({form}) between groups of {here} and {rank.size - here}, rank {rank.rank}"
                    case = Case().ready(None, None)
                    Call(rank, clocks, late, others, words).carry_out(module, form, "barrier", case, inter)
                    rank.meet()
        free_communicator(inter)
        free_communicator(mine)
        rank.alive()
