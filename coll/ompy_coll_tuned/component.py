"""coll/tuned: collectives over point-to-point messages, by the algorithm that was fastest where it was measured."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca import discovery
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy.mca.lists import named
from ompy.mca.loading import load, load_quietly
from ompy.mca.params import registry
from ompy_coll_tuned.algorithms import ALGORITHMS, TUNINGS, tunings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy_coll_tuned.module import TunedModule

AUTO = "auto"

HELP = {
    "segmentsize": "bytes of a piece of a long message, where {function}_algorithm names one that takes it; 0: in one piece",
    "tree_fanout": "radix of a k-nomial tree, where {function}_algorithm names one, {least} to {most}",
    "chain_fanout": "chains from the root, where {function}_algorithm names them, {least} to {most}",
}


def parameters_of(function: str) -> list[Parameter]:
    words = "; ".join(f"{it.name}: {it.summary}" for it in ALGORITHMS[function])
    names = [it.name for it in ALGORITHMS[function]]
    found = [
        Parameter(
            f"{function}_algorithm",
            str,
            AUTO,
            level=5,
            scope="all",
            choices=(AUTO, *names),
            help=f"algorithm of {function}, wherever it can serve, whatever the rules say. {words}",
        )
    ]
    for tuning in tunings(function):
        default, least, most = TUNINGS[tuning]
        unit = "bytes" if tuning == "segmentsize" else "branches"
        words = HELP[tuning].format(function=function, least=least, most=most)
        found.append(
            Parameter(f"{function}_{tuning}", int, default, unit=unit, range=(least, most), level=5, help=words, scope="all")
        )
    return found


COMPONENT = Component(
    framework="coll",
    name="tuned",
    version="0.1.0",
    interface="ompy_coll_tuned.module",
    summary="collectives over point-to-point messages, by the algorithm that was fastest where it was measured",
    parameters=(
        Parameter(
            "priority",
            int,
            30,
            unit="points",
            range=(0, 1000000),
            level=6,
            scope="all",
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "use_dynamic_rules",
            bool,
            True,
            level=6,
            scope="all",
            help="heed the file of rules that dynamic_rules_filename names",
        ),
        Parameter(
            "dynamic_rules_filename",
            str,
            "",
            level=6,
            scope="all",
            help="file of rules, the same on every rank, that go before the component's; `ompy tune` writes one",
        ),
        *(parameter for function in ALGORITHMS for parameter in parameters_of(function)),
    ),
    capabilities={
        "algorithms": {function: tuple(it.name for it in its) for function, its in ALGORITHMS.items()},
        "tunings": {function: {it.name: it.tunings for it in its} for function, its in ALGORITHMS.items()},
        "sizes": {function: {it.name: it.sizes for it in its} for function, its in ALGORITHMS.items()},
        "forms": ("blocking", "non-blocking", "persistent"),
        "switch_points": (12 << 10, 1 << 20),
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def forced_algorithms(context: Context) -> dict[str, str]:
    """What this component's own parameters name, or those that all components heed."""
    forced = {}
    for function, known in ALGORITHMS.items():
        own: str = context.value(f"{function}_algorithm")
        of_all: str = registry.value(f"coll_{function}_algorithm")
        if own != AUTO:
            forced[function] = own
        elif any(it.name == of_all for it in known):
            forced[function] = of_all
    return forced


def within_host(context: Context) -> bool:
    """Whether the rules are those for one host: its ranks are the job's, and parameter btl leaves them a transport for it.

    Which transports a rank could open is not asked, since another rank may have had other luck.
    """
    rte = context.rte
    if rte is None or context.communicator is None or not context.communicator.shares_host(rte.local_size == rte.size):
        return False
    names, excluding = named("btl")
    for name, found in discovery.installed().get("btl", {}).items():
        if (name not in names and not found.by_name if excluding or not names else name in names) and load_quietly(found):
            declared = load(found).component.capabilities
            if declared.get("reach") == "host":
                return True
    return False


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    communicator = context.communicator
    if communicator is None:
        return Refusal("collectives are offered to a communicator, and none was named")
    if communicator.is_inter:
        return Refusal("it does not serve inter-communicators", lasting=True)
    if communicator.size < 2:
        return Refusal("there is nothing to choose for one process", lasting=True)
    if is_simulated():
        return Refusal("time is simulated: its rules were measured on real machines", lasting=True)
    from ompy_coll_tuned.module import TunedModule
    from ompy_coll_tuned.settings import Settings, read_once

    forced = forced_algorithms(context)
    tuned = {function: {name: context.value(f"{function}_{name}") for name in tunings(function)} for function in forced}
    path = context.value("dynamic_rules_filename") if context.value("use_dynamic_rules") else ""
    settings = Settings(forced, tuned, read_once(path) if path else None, within_host(context))

    def module(communicator: Communicator) -> TunedModule:
        return TunedModule(settings)

    return Offer([module(communicator)], context.value("priority"), functions=tuple(ALGORITHMS), again=module)
