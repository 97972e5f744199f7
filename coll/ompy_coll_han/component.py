"""coll/han: collectives by two levels, within each host and between hosts."""

from __future__ import annotations

from ompy.core.clock import is_simulated
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy.mca.errors import ParameterError
from ompy_coll_han.algorithms import CATALOGUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy_coll_han.module import HanModule

COMPONENT = Component(
    framework="coll",
    name="han",
    version="0.1.0",
    interface="ompy_coll_han.module",
    summary="blocking collectives by two levels: within each host by its own means, between hosts by one rank of each",
    parameters=(
        Parameter(
            "priority",
            int,
            35,
            unit="points",
            range=(0, 1000000),
            level=6,
            scope="all",
            help="how much this component wants to serve; the highest does",
        ),
        Parameter(
            "pretended_hosts",
            str,
            "",
            level=8,
            scope="all",
            help="numbers of hosts on which the ranks of the job pretend to be, in turn from the first again, to try it "
            "on one host: 0,0,1 puts ranks 2, 5, 8 on a host of their own",
        ),
        Parameter(
            "first_calls",
            int,
            4,
            unit="calls",
            range=(0, 1 << 30),
            level=6,
            scope="all",
            help="calls on a communicator that would have gone by two levels before it is divided: one that is used but a few "
            "times isn't worth two more",
        ),
        *CATALOGUE.parameters(),
    ),
    capabilities={
        **CATALOGUE.capabilities(),
        "forms": ("blocking",),
        "trial": {"pretended_hosts": "0,0,1,0,1", "first_calls": "0"},
    },
)


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


def pretended(context: Context) -> list[int]:
    """The hosts that a person has the ranks pretend to be on; none mostly."""
    text: str = context.value("pretended_hosts")
    words = text.split(",") if text else []
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise ParameterError(f"coll_han_pretended_hosts is {text!r}; expected numbers of hosts, such as 0,0,1")
    return [int(word) for word in words]


@hookimpl
def ompy_query(context: Context) -> Offer | Refusal:
    communicator, rte = context.communicator, context.rte
    if communicator is None or rte is None:
        return Refusal("collectives are offered to a communicator, and none was named")
    if communicator.is_inter:
        return Refusal("it does not serve inter-communicators", lasting=True)
    if is_simulated():
        return Refusal("time is simulated: hosts are none of the simulated network's", lasting=True)
    hosts = pretended(context)
    if rte.local_size == rte.size and not hosts:
        return Refusal("all ranks of the job are on one host", lasting=True)
    if communicator.size < 3:
        return Refusal("there are no two levels of fewer than 3 ranks", lasting=True)
    if communicator.spans_jobs:
        return Refusal("its ranks are of several jobs")
    if communicator.placement:
        words = "", "all its ranks are on one host", "each of its ranks is on a host of its own"
        return Refusal(words[communicator.placement], lasting=True)
    from ompy_coll_han.module import HanModule
    from ompy_coll_han.settings import HanSettings

    forced = CATALOGUE.forced(context)
    settings = HanSettings(CATALOGUE, forced, CATALOGUE.numbers(context, forced), CATALOGUE.file(context))

    first_calls = context.value("first_calls")

    def module(communicator: Communicator) -> HanModule:
        return HanModule(settings, hosts, first_calls)

    return Offer([module(communicator)], context.value("priority"), functions=tuple(CATALOGUE.algorithms), again=module)
