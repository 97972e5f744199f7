"""The level `limits`: the checks of the contract once more, with every limit on a message's length at an odd value."""

from __future__ import annotations

import random

from ompy.mca import discovery, loading
from ompy.mca.component import Component, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.testing.conformance.job import Order

LEVEL = "limits"
# Limits of transports, which what is above them must keep to (`ompy/mca/btl.pxd`), in the order of their values.
OF_TRANSPORTS = ("rndv_eager_limit", "eager_limit", "max_send_size")
ENDINGS = ("_limit", "_size")
# Bytes: small enough that messages of the checks are cut by them, large enough for a header.
LEAST, MOST = 300, 5000


def drawn(order: Order) -> tuple[tuple[str, str], ...]:
    """Parameters for the job: the limits of the transports, and of the component under test, where its ranges allow."""
    generator = random.Random(f"{order.seed} limits")
    values = sorted(generator.randrange(LEAST, MOST) | 1 for _ in OF_TRANSPORTS)
    pairs = []
    for name, found in sorted(discovery.installed().get("btl", {}).items()):
        if not loading.load_quietly(found):
            continue
        known = {parameter.name: parameter for parameter in declared("btl", name).parameters}
        for limit, value in zip(OF_TRANSPORTS, values, strict=True):
            if limit in known and allows(known[limit], value):
                pairs.append((f"btl_{name}_{limit}", str(value)))
    for parameter in declared(order.framework, order.component).parameters:
        value = generator.randrange(LEAST, MOST) | 1
        if parameter.unit == "bytes" and parameter.name.endswith(ENDINGS) and allows(parameter, value):
            pairs.append((f"{order.framework}_{order.component}_{parameter.name}", str(value)))
    given = {name for name, _ in order.mca}
    return tuple(pair for pair in pairs if pair[0] not in given)


def declared(framework: str, name: str) -> Component:
    return loading.load(discovery.installed()[framework][name]).component


def allows(parameter: Parameter, value: int) -> bool:
    """Whether the component promises to work with this value."""
    return parameter.range is None or parameter.range[0] <= value <= parameter.range[1]
