"""How a component serves communicators: what it offers, several calls at once, other kinds of communicator, the end."""

from __future__ import annotations

import gc
import os

from ompy.core.communicator import Communicator
from ompy.mca.coll import FUNCTIONS, CollModule
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
from ompy.testing.conformance.coll.rank import CollRank

check = Collection()

COMMUNICATORS = 12


@check("offer")
def the_offer_is_the_same_on_every_rank(rank: CollRank) -> None:
    for size, comm in rank.groups.items():
        offer = rank.offer(comm)
        functions = None if offer is None else offer.functions or FUNCTIONS
        said = rank.exchange(functions) if size == rank.size else None
        if said and any(other != said[0] for other in said):
            raise Breach("offer", f"rank {rank.rank} offers {functions}, rank 0 {said[0]}")
        if offer is None:
            continue
        if unknown := set(functions or ()) - set(FUNCTIONS):
            raise Breach("offer", f"{sorted(unknown)} are no functions")
        module = offer.modules[0]
        for form in rank.forms:
            if getattr(type(module), form) is getattr(CollModule, form):
                raise Breach("offer", f"the component declares the form of `{form}`, which its module does not override")
        module.free()
    if rank.size > 1 and all(rank.offer(comm) is None for comm in rank.groups.values()):
        raise Breach("offer", f"the component serves no communicator of 1 to {rank.size} ranks")


def some(rank: CollRank, comm: Communicator) -> list[str]:
    """Functions that the component serves."""
    offer = rank.offer(comm)
    served = () if offer is None else offer.functions or FUNCTIONS
    return [name for name in ("bcast", "allgather", "allreduce", "alltoall", "scan") if name in served]


@check("overlap")
def calls_under_way_at_once_get_their_own_data(rank: CollRank) -> None:
    """On one communicator where calls can be started; else on several, one call after the other."""
    from ompy.core.progress import wait_request
    from ompy.runtime.communicators import duplicate, free_communicator

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
                for index, case in enumerate(cases):
                    case.check(f"{function}, number {index} of three under way, rank {rank.rank}")
        rank.alive()
    for other in others:
        free_communicator(other)


@check("inter", needs="inter", ranks=2)
def groups_exchange_over_an_inter_communicator(rank: CollRank) -> None:
    """Every function that is offered for one, with every root."""
    from ompy.runtime.communicators import connect, free_communicator, split

    served = 0
    for here in sorted({1, rank.size // 2}):
        mine = split(rank.world, int(rank.rank >= here), rank.rank)
        assert mine is not None
        inter = connect(mine, 0, rank.world, here if rank.rank < here else 0, 77)
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
    from ompy.runtime.communicators import duplicate, free_communicator

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


def held() -> tuple[int, int]:
    """Open files, and mappings of shared memory."""
    gc.collect()
    with open("/proc/self/maps") as lines:
        shared = sum("/dev/shm/" in line or "memfd:" in line for line in lines)
    return len(os.listdir("/proc/self/fd")), shared


@check("free")
def nothing_is_left_of_communicators_that_are_gone(rank: CollRank) -> None:
    from ompy.runtime.communicators import duplicate, free_communicator

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
