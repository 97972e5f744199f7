"""coll/tuned: collectives over point-to-point messages, by the algorithm that was fastest where it was measured."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca import discovery
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy.mca.lists import named
from ompy.mca.loading import load, load_quietly
from ompy_coll_tuned.algorithms import CATALOGUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy_coll_tuned.module import TunedModule

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
        *CATALOGUE.parameters(),
    ),
    capabilities={
        **CATALOGUE.capabilities(),
        "forms": ("blocking", "non-blocking", "persistent"),
        "switch_points": (12 << 10, 1 << 20),
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


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
    if is_simulated():
        return Refusal("time is simulated: its rules were measured on real machines", lasting=True)
    from ompy_coll_tuned.module import TunedModule
    from ompy_coll_tuned.settings import TunedSettings

    forced = CATALOGUE.forced(context)
    settings = TunedSettings(forced, CATALOGUE.numbers(context, forced), CATALOGUE.file(context), within_host(context))

    def module(communicator: Communicator) -> TunedModule:
        return TunedModule(settings)

    return Offer([module(communicator)], context.value("priority"), functions=tuple(CATALOGUE.algorithms), again=module)
