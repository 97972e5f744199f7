"""A rank of a job whose communicators, of 1 to all ranks, a collective component is asked to serve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ompy.core.communicator import Communicator
from ompy.core.request import Request
from ompy.mca import discovery, loading, selection
from ompy.mca.component import Context, Offer
from ompy.mca.frameworks import FUNCTIONS
from ompy.mca.hook import hooks
from ompy.mca.params import registry
from ompy.mca.verdicts import record
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.coll.calls import NUMBERS, Case
from ompy.testing.conformance.mpi.rank import MpiRank
from ompy.testing.conformance.wire import Wire

if TYPE_CHECKING:
    from ompy.mca.coll import CollectiveCall, CollModule

AUTO = "auto"
UNDEFINED = -32766
# How many times the data of a persistent request's first start its further ones have.
FACTORS = (2, 3)


def await_end(request: Request) -> None:
    """Raises what went wrong."""
    from ompy.core.progress import wait_request

    wait_request(request)
    if request.error is not None:
        raise request.error


class CollRank(MpiRank):
    """One rank.

    Attributes:
        groups: a communicator of the first 1, 2, ... ranks, those that this rank is in, by size.
        algorithms: of each function, as the component declares them.
        functions: those that it declares algorithms of, or all; without those of neighbours.
        forms: `run`, `start`, `init`: those that the component declares.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        from ompy.mpi.environment import instance
        from ompy.runtime.communicators import split

        self.world: Communicator = instance().world
        found = discovery.installed()["coll"][wire.setting.component]
        self.loaded = loading.load(found)
        declared = self.loaded.component.capabilities
        algorithms = declared.get("algorithms", {})
        self.algorithms: dict[str, tuple[str, ...]] = dict(algorithms) if isinstance(algorithms, dict) else {}
        self.functions = [it for it in FUNCTIONS if not it.startswith("neighbor_") and it in (self.algorithms or FUNCTIONS)]
        names = declared.get("forms", ("blocking", "non-blocking", "persistent"))
        methods = (("blocking", "run"), ("non-blocking", "start"), ("persistent", "init"))
        self.forms = [method for name, method in methods if isinstance(names, tuple | list) and name in names]
        self.groups: dict[int, Communicator] = {}
        for size in range(1, self.size + 1):
            made = split(self.world, 0 if self.rank < size else UNDEFINED, self.rank)
            if made is not None:
                self.groups[size] = made

    def offer(self, communicator: Communicator) -> Offer | None:
        """What the component offers to a communicator; None when it refuses."""
        context = Context(self.loaded.component, record.rte, communicator, selection.chosen_modules)
        answer = hooks.query(self.loaded.plugin, context)
        if not isinstance(answer, Offer):
            return None
        if len(answer.modules) != 1:
            raise Breach("offer", f"the query returned {len(answer.modules)} modules")
        return answer

    @contextmanager
    def module(self, communicator: Communicator, function: str, algorithm: str = AUTO) -> Iterator[CollModule | None]:
        """The component's module for a communicator, with an algorithm forced; None when it does not serve the function.

        What the module does not serve itself goes to the one that serves the communicator already.
        """
        name = f"coll_{function}_algorithm"
        registry.set(name, algorithm)
        try:
            offer = self.offer(communicator)
        finally:
            registry.set(name, AUTO)
        if offer is None or (offer.functions is not None and function not in offer.functions):
            yield None
            return
        module: CollModule = offer.modules[0]
        for number in NUMBERS.values():
            module.stand_before(number, communicator.coll.module(number))
        yield module
        module.free()

    def forms_of(self, algorithm: str) -> list[str]:
        """The forms to try: all with the component's own choice of algorithm; one, always the same, with one that is forced."""
        if algorithm == AUTO:
            return self.forms
        return [self.common_random(algorithm).choice(self.forms)]

    def serving(self, communicator: Communicator, function: str) -> Iterator[tuple[str, CollModule]]:
        """The component's modules for a communicator, with its own choice of algorithm and with each of them forced."""
        for algorithm in (AUTO, *self.algorithms.get(function, ())):
            with self.module(communicator, function, algorithm) as module:
                if module is not None:
                    yield algorithm, module

    @staticmethod
    def complete(module: CollModule, form: str, number: int, call: CollectiveCall, comm: Communicator) -> Request | None:
        """One call, until this rank's part is done; its request, where the form has one."""
        if form == "run":
            module.run(number, call, comm)
            return None
        request: Request = getattr(module, form)(number, call, comm)
        if form == "init":
            request.start()
        await_end(request)
        return request

    def carry_out(self, module: CollModule, form: str, function: str, case: Case, comm: Communicator, words: str) -> None:
        """One call in one form, and a look at what it did; a persistent one is started again, each time with other data."""
        request = self.complete(module, form, NUMBERS[function], case.call, comm)
        case.check(words)
        for factor in FACTORS if form == "init" else ():
            assert request is not None
            case.again(factor)
            request.start()
            await_end(request)
            try:
                case.check(words)
            except Breach as breach:
                raise Breach("restart", f"{breach.words}, when it is started again with {factor} times the data") from None

    def two_groups(self, here: int) -> tuple[Communicator, Communicator]:
        """An inter-communicator between the first ranks and the others, and this rank's group."""
        from ompy.runtime.communicators import split
        from ompy.runtime.intercommunicators import connect

        mine = split(self.world, int(self.rank >= here), self.rank)
        assert mine is not None
        return connect(mine, 0, self.world, here if self.rank < here else 0, 77), mine
