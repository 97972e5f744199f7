"""coll/basic: every collective over point-to-point messages, in LAM/MPI's linear and logarithmic forms and a few more."""

from __future__ import annotations

from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy.mca.params import registry
from ompy_coll_basic.algorithms import INTRA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator


def algorithm_parameter(function: str) -> Parameter:
    names = [algorithm.name for algorithm in INTRA[function]]
    words = "; ".join(f"{algorithm.name}: {algorithm.summary}" for algorithm in INTRA[function])
    return Parameter(
        f"{function}_algorithm",
        str,
        "auto",
        level=5,
        choices=("auto", *names),
        help=f"algorithm of {function} on intra-communicators, wherever it can serve. {words}",
    )


COMPONENT = Component(
    framework="coll",
    name="basic",
    version="0.1.0",
    interface="ompy_coll_basic.module",
    summary="every collective over point-to-point messages, linear and logarithmic",
    parameters=(
        Parameter(
            "priority",
            int,
            10,
            unit="points",
            range=(0, 1000000),
            level=6,
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "crossover",
            int,
            4,
            unit="processes",
            range=(0, 1 << 30),
            level=4,
            help="linear algorithms up to this many processes, logarithmic ones above",
        ),
        *(algorithm_parameter(function) for function in INTRA),
    ),
    capabilities={
        "algorithms": {function: tuple(it.name for it in INTRA[function]) for function in INTRA},
        "forms": ("blocking", "non-blocking", "persistent"),
        "inter": True,
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def forced_algorithm(context: Context, function: str) -> str:
    """What this component's own parameter names, or the one that all components heed."""
    own: str = context.value(f"{function}_algorithm")
    of_all: str = registry.value(f"coll_{function}_algorithm")
    has_it = any(it.name == of_all for it in INTRA[function])
    return of_all if own == "auto" and has_it else own


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    from ompy_coll_basic.module import BasicModule

    if context.communicator is None:
        return Refusal("collectives are offered to a communicator, and none was named")
    crossover, forced = context.value("crossover"), {function: forced_algorithm(context, function) for function in INTRA}

    def module(communicator: Communicator) -> BasicModule:
        return BasicModule(communicator, crossover, forced)

    return Offer(modules=[module(context.communicator)], priority=context.value("priority"), again=module)
