"""What a watcher does around queries of components of the kit's."""

from __future__ import annotations

import gc
import weakref

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.mca.btl import Btl
from ompy.mca.coll import CollModule
from ompy.mca.component import Context, Offer, Refusal
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.hook.rank import Asked, HookRank

check = Collection()

TURNS = 200


class Transport(Btl):
    """One that carries nothing."""


class Collectives(CollModule):
    """Some that do nothing."""

    def __init__(self) -> None:
        super().__init__("kit")


KINDS = {"btl": Transport, "coll": Collectives}


def judge(framework: str, answer: object) -> None:
    if not isinstance(answer, Offer | Refusal):
        raise Breach("answers", f"around the query of a component of {framework} it answers {answer!r}")
    if isinstance(answer, Offer):
        kind = KINDS[framework].__mro__[1]
        others = [module for module in answer.modules if not isinstance(module, kind)]
        if others:
            raise Breach("answers", f"an offer of {framework} comes out with {others}, no {kind.__name__}")
    elif not answer.reason:
        raise Breach("answers", "a refusal comes out without a reason")


@check("answers")
def an_answer_comes_out(rank: HookRank) -> None:
    """Offers and refusals, of two frameworks."""
    for framework, kind in KINDS.items():
        for name, given in (("willing", Offer([kind()], 3)), ("unwilling", Refusal("the kit says no"))):
            judge(framework, Asked(framework, name, lambda context, given=given: given).ask(rank.rte))  # type: ignore[misc]


@check("errors")
def an_error_comes_out_as_it_is(rank: HookRank) -> None:
    """Of a component of the project's, of Python's, and of a person who has had enough."""
    for error in (MPIError(ERR_OTHER, "the kit's own"), ZeroDivisionError("the kit's own"), KeyboardInterrupt()):

        def raises(context: Context, error: BaseException = error) -> Offer:
            raise error

        try:
            answer = Asked("btl", "broken", raises).ask(rank.rte)
        except BaseException as found:
            if found is not error:
                raise Breach("errors", f"a query raised {error!r}, and {found!r} came out") from found
        else:
            raise Breach("errors", f"a query raised {error!r}, and {answer!r} came out")


@check("nested")
def a_query_may_ask_for_others(rank: HookRank) -> None:
    """Of the same framework and of another one, three deep."""
    told = []

    def inner(context: Context) -> Offer:
        told.append(context.component.name)
        return Offer([Transport()])

    def middle(context: Context) -> Refusal:
        judge("btl", Asked("btl", "inner", inner).ask(rank.rte))
        told.append(context.component.name)
        return Refusal("the kit says no")

    def outer(context: Context) -> Offer:
        judge("coll", Asked("coll", "middle", middle).ask(rank.rte))
        told.append(context.component.name)
        return Offer([Transport()])

    try:
        judge("btl", Asked("btl", "outer", outer).ask(rank.rte))
    except Breach:
        raise
    except Exception as error:
        raise Breach("nested", f"where queries asked for others, {error!r} came out") from error
    if told != ["inner", "middle", "outer"]:
        raise Breach("nested", f"of inner, middle and outer, which ask for one another, {told} were asked")


@check("lifetime")
def nothing_of_an_answer_is_kept(rank: HookRank) -> None:
    """As if each were of a communicator that is freed soon."""
    lives = []
    for _ in range(TURNS):
        module = Collectives()
        lives.append(weakref.ref(module))
        offer = Offer([module])
        judge("coll", Asked("coll", "short", lambda context, offer=offer: offer).ask(rank.rte))  # type: ignore[misc]
        del module, offer
    gc.collect()
    kept = sum(life() is not None for life in lives)
    # The last one may still stand in a frame, or as the latest.
    if kept > 1:
        raise Breach("lifetime", f"of {TURNS} modules that were offered and given up, {kept} are still held")
