"""Every algorithm that writes schedules against plain Python, on 1 to 17 ranks in one process, its messages in random order."""

from __future__ import annotations

import pytest
from in_memory import InMemoryPml, finish, inter, intra
from ompy_coll_basic.algorithms import INTER, INTRA
from ompy_coll_basic.module import BasicModule
from ompy_coll_tuned.algorithms import ALGORITHMS as TUNED
from ompy_coll_tuned.algorithms import CATALOGUE
from ompy_coll_tuned.module import TunedModule
from ompy_coll_tuned.settings import TunedSettings

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.progress import progress_once
from ompy.mca import pml
from ompy.mpi.topology import Cartesian
from ompy.testing.conformance.coll.calls import (
    FIRST,
    IN_PLACE,
    LAST,
    NUMBERS,
    PAIR_WITH_GAP,
    PLAIN,
    REDUCTIONS,
    ROOTED,
    SHAPES,
    SHIFTED,
    SUM,
    inter_case,
    intra_case,
    neighbor_case,
)  # fmt: skip


class Way:
    """An algorithm of a component, and whether it keeps the order of ranks."""

    def __init__(self, component, function, name, ordered=True):
        self.component = component
        self.function = function
        self.name = name
        self.ordered = ordered

    def module(self, comm, crossover=4, **numbers):
        if self.component == "basic":
            return BasicModule(comm, crossover, {self.function: self.name})
        return TunedModule(TunedSettings({self.function: self.name}, {self.function: numbers}))

    def __str__(self):
        return f"{self.component}-{self.function}-{self.name}"


WAYS = [Way("basic", function, it.name) for function in INTRA if function[:9] != "neighbor_" for it in INTRA[function]]
WAYS += [Way("tuned", function, it.name, it.ordered) for function in TUNED for it in TUNED[function]]
EVERY = pytest.mark.parametrize("way", WAYS, ids=str)


@pytest.fixture
def messages(rng):
    chosen = pml.chosen()
    layer = InMemoryPml(rng, eager=True)
    pml.choose(layer)
    yield layer
    pml.choose(chosen)


def run(messages, way, ranks, cases, persistent=False, **numbers):
    """The collective on every rank at once, begun in random order; persistent ones twice."""
    function = NUMBERS[way.function]
    modules = [way.module(comm, **numbers) for comm in ranks]
    order = list(range(len(ranks)))
    messages.random.shuffle(order)
    requests = [None] * len(ranks)
    form = "init" if persistent else "start"
    for rank in order:
        requests[rank] = getattr(modules[rank], form)(function, cases[rank].call, ranks[rank])
    for _ in range(2 if persistent else 1):
        for rank in order:
            if persistent:
                cases[rank].again()
                requests[rank].start()
        finish(messages, requests)
        for rank, case in enumerate(cases):
            case.check(f"{way} {numbers} rank {rank} of {len(ranks)}")


def operations_for(way):
    if way.function not in REDUCTIONS:
        return [None]
    return [SUM, FIRST, LAST]


def cases_of(way, size, count, shape, root, in_place, operation):
    return [intra_case(way.function, rank, size, count, shape, root, in_place, operation) for rank in range(size)]


@EVERY
def test_gives_every_rank_its_data_on_1_to_17_ranks(messages, way):
    for size in range(1, 18):
        for operation in operations_for(way):
            root = messages.random.randrange(size)
            run(messages, way, intra(size), cases_of(way, size, 3, PLAIN, root, False, operation))


@EVERY
def test_handles_gaps_in_datatypes_and_no_data_at_all(messages, way):
    for size in (2, 3, 5, 8):
        for shape in SHAPES:
            for count in (0, 1, 7):
                root = messages.random.randrange(size)
                run(messages, way, intra(size), cases_of(way, size, count, shape, root, False, operations_for(way)[0]))


@pytest.mark.parametrize("way", [way for way in WAYS if way.function in IN_PLACE], ids=str)
def test_works_in_place(messages, way):
    for size in (1, 2, 3, 4, 6, 9):
        for operation in operations_for(way):
            for shape in (PLAIN, PAIR_WITH_GAP):
                root = messages.random.randrange(size)
                run(messages, way, intra(size), cases_of(way, size, 4, shape, root, True, operation))


@EVERY
def test_a_persistent_one_runs_again(messages, way):
    for size in (1, 4, 5):
        root = messages.random.randrange(size)
        cases = cases_of(way, size, 2, SHIFTED, root, False, operations_for(way)[0])
        run(messages, way, intra(size), cases, persistent=True)


@pytest.mark.parametrize("way", [way for way in WAYS if way.function in ROOTED], ids=str)
def test_any_rank_can_be_the_root(messages, way):
    for size in (2, 5, 7, 8):
        for root in range(size):
            run(messages, way, intra(size), cases_of(way, size, 2, PLAIN, root, False, FIRST))


@pytest.mark.parametrize("way", [way for way in WAYS if way.component == "tuned" and CATALOGUE.tunings(way.function)], ids=str)
def test_long_messages_travel_in_pieces_along_trees_of_any_fanout(messages, way):
    """Pieces of 1, 4 (one element), 12 bytes and more than the message, of elements with and without gaps."""
    fanouts = ({}, {"tree_fanout": 3, "chain_fanout": 1}, {"tree_fanout": 7, "chain_fanout": 3})
    for size in (2, 3, 6, 9, 13):
        for segment in (1, 4, 12, 1000):
            numbers = {"segmentsize": segment, **messages.random.choice(fanouts)}
            shape = messages.random.choice(SHAPES)
            in_place = way.function in IN_PLACE and messages.random.random() < 0.5
            operation = messages.random.choice(operations_for(way))
            root = messages.random.randrange(size)
            run(messages, way, intra(size), cases_of(way, size, 11, shape, root, in_place, operation), **numbers)


@pytest.mark.parametrize("name", [it.name for it in TUNED["bcast"] if it.segmented])
def test_who_passes_nothing_on_expects_every_piece_of_a_broadcast_from_the_start(messages, name):
    """20 pieces; between two ranks it is one message, as nobody would pass pieces on meanwhile."""
    way = Way("tuned", "bcast", name)
    for size, most in ((2, 1), (3, 20), (9, 20)):
        messages.wanted.clear()
        messages.messages = 0
        cases = cases_of(way, size, 20, PLAIN, 0, False, None)
        modules = [way.module(comm, segmentsize=cases[0].call.send_type.size) for comm in intra(size)]
        number = NUMBERS["bcast"]
        requests = [
            module.start(number, case.call, comm) for module, case, comm in zip(modules, cases, intra(size), strict=True)
        ]
        expected = [0] * size
        for (_, _, _, receiver), envelopes in messages.wanted.items():
            expected[receiver] += len(envelopes)
        assert expected[-1] == most
        finish(messages, requests)
        assert messages.messages == most * (size - 1)


@pytest.mark.parametrize("function", INTER)
def test_between_groups_of_different_sizes(messages, function):
    for size, remote in ((1, 1), (1, 3), (2, 3), (4, 2), (3, 5)):
        for operation in (SUM, FIRST, LAST) if function in REDUCTIONS else (None,):
            for root in range(size + remote) if function in ROOTED else (0,):
                for shape, count in ((PLAIN, 2), (PAIR_WITH_GAP, 1), (PLAIN, 0)):
                    ranks = inter(size, remote)
                    cases = [
                        inter_case(function, process, size, remote, count, shape, root, operation)
                        for process in range(size + remote)
                    ]
                    run(messages, Way("basic", function, "auto"), ranks, cases)


class Neighbors:
    is_cartesian = False

    def __init__(self, sources, destinations):
        self.in_neighbors = sources
        self.out_neighbors = destinations


NEIGHBORHOODS = [function for function in INTRA if function.startswith("neighbor_")]


@pytest.mark.parametrize("function", NEIGHBORHOODS)
@pytest.mark.parametrize(
    ("dims", "periods"),
    [
        ((1,), (True,)),
        ((1,), (False,)),
        ((2,), (True,)),
        ((5,), (True,)),
        ((2, 3), (True, False)),
        ((2, 1, 2), (True, True, True)),
    ],
)
def test_grid_neighbors_swap_with_the_opposite_direction(messages, function, dims, periods):
    ranks = intra(Cartesian(dims, periods, 0).size)
    for rank, comm in enumerate(ranks):
        comm.attributes["topology"] = Cartesian(list(dims), list(periods), rank)

    def arrives(rank, slot):
        """(rank, slot) that a block comes from: what the neighbour below sent above, and the other way round."""
        source = ranks[rank].attributes["topology"].in_neighbors[slot]
        return None if source < 0 else (source, slot ^ 1)

    for count, shape in ((3, PLAIN), (1, PAIR_WITH_GAP), (0, PLAIN)):
        cases = [neighbor_case(function, comm, rank, count, shape, arrives) for rank, comm in enumerate(ranks)]
        run(messages, Way("basic", function, "auto"), ranks, cases)


@pytest.mark.parametrize("function", NEIGHBORHOODS)
def test_graph_neighbors_may_be_repeated_oneself_or_nobody(messages, function):
    """Edges (from, to) in the order in which both ends list them: the k-th between two ranks is the k-th on either side."""
    for size in (1, 2, 5):
        edges = [(messages.random.randrange(size), messages.random.randrange(size)) for _ in range(4 * size)]
        ranks = intra(size)
        incoming = [[edge for edge in range(len(edges)) if edges[edge][1] == rank] for rank in range(size)]
        outgoing = [[edge for edge in range(len(edges)) if edges[edge][0] == rank] for rank in range(size)]
        for rank, comm in enumerate(ranks):
            sources = [edges[edge][0] for edge in incoming[rank]]
            comm.attributes["topology"] = Neighbors(sources, [edges[edge][1] for edge in outgoing[rank]])

        def arrives(rank, slot, incoming=incoming, outgoing=outgoing, edges=edges):
            edge = incoming[rank][slot]
            source = edges[edge][0]
            return source, outgoing[source].index(edge)

        cases = [neighbor_case(function, comm, rank, 2, PLAIN, arrives) for rank, comm in enumerate(ranks)]
        run(messages, Way("basic", function, "auto"), ranks, cases, persistent=True)


def test_an_error_in_one_message_fails_the_request_and_names_the_peer(messages):
    ranks = intra(3)
    cases = [intra_case("gather", rank, 3, 4, PLAIN, 0, False, None) for rank in range(3)]
    request = BasicModule(ranks[0], 4, {}).start(NUMBERS["gather"], cases[0].call, ranks[0])
    assert not request.complete
    assert request.peer == 1
    (lost,) = [queue[0] for key, queue in messages.wanted.items() if key[2] == 2]
    lost.request.fail(MPIError(ERR_PROC_FAILED, "killed"))
    progress_once()
    assert request.complete
    assert request.error.code == ERR_PROC_FAILED
    assert "killed" in str(request.error)
    assert "rank 2" in str(request.error)


def test_a_waiting_request_names_the_first_rank_that_is_missing(messages):
    ranks = intra(4)
    messages.eager = False
    modules = [BasicModule(comm, 4, {}) for comm in ranks]
    cases = [intra_case("gather", rank, 4, 4, PLAIN, 0, False, None) for rank in range(4)]
    request = modules[0].start(NUMBERS["gather"], cases[0].call, ranks[0])
    for rank, then in ((2, 1), (1, 3), (3, None)):
        other = modules[rank].start(NUMBERS["gather"], cases[rank].call, ranks[rank])
        assert messages.deliver()
        progress_once()
        assert other.complete
        assert request.complete == (then is None)
        assert then is None or request.peer == then


def test_calls_that_overlap_on_one_communicator_keep_their_messages_apart(messages):
    size = 5
    ranks = intra(size)
    modules = [BasicModule(comm, 4, {}) for comm in ranks]
    calls = []
    for function in ("bcast", "allgather", "allreduce", "alltoall", "bcast"):
        cases = [intra_case(function, rank, size, 3, PLAIN, 1, False, SUM) for rank in range(size)]
        calls.append((function, cases))
    requests = []
    for rank in range(size):
        for function, cases in calls:
            requests.append(modules[rank].start(NUMBERS[function], cases[rank].call, ranks[rank]))
    finish(messages, requests)
    for function, cases in calls:
        for rank, case in enumerate(cases):
            case.check(f"{function} rank {rank}")


@pytest.mark.parametrize("way", [way for way in WAYS if way.function in ("reduce", "allreduce")], ids=str)
def test_long_contributions_that_come_one_after_the_other_are_reduced_in_order(messages, way):
    for size in (2, 5, 8):
        for operation in operations_for(way):
            root, in_place = messages.random.randrange(size), messages.random.random() < 0.5
            run(messages, way, intra(size), cases_of(way, size, 4500, PLAIN, root, in_place, operation))


TREES = [way for way in WAYS if way.function == "bcast" and not way.name.startswith("scatter")]


@pytest.mark.parametrize("way", TREES, ids=str)
def test_no_message_is_sent_twice_by_a_tree(messages, way):
    """n - 1 messages carry a broadcast to n ranks, in any form of tree."""
    for size in range(1, 18):
        messages.messages = 0
        run(messages, way, intra(size), cases_of(way, size, 1, PLAIN, 0, False, None))
        assert messages.messages == size - 1


def test_the_crossover_separates_linear_from_logarithmic():
    for size, crossover, expected in ((4, 4, "linear"), (5, 4, "logarithmic"), (5, 8, "linear"), (2, 1, "logarithmic")):
        comm = intra(size)[0]
        module = BasicModule(comm, crossover, {})
        for function in ("barrier", "bcast", "reduce", "allreduce", "allgather", "scan"):
            chosen = [algorithm.name for algorithm, suits, _ in module.explain(NUMBERS[function], comm, 8) if suits]
            assert chosen == [expected], (function, size, crossover)
