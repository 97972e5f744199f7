"""What can be set about the chip, whatever runs on it: `machine_raw_<name>`."""

from __future__ import annotations

from ompy.mca.params import Parameter, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARAMETERS = (
    Parameter("width", int, 4, unit="tiles", range=(1, 32), level=3, help="of the chip"),
    Parameter("height", int, 4, unit="tiles", range=(1, 32), level=3, help="of the chip; rank r runs on tile r"),
    Parameter(
        "clock_mhz",
        float,
        425.0,
        unit="MHz",
        range=(0.001, 1e6),
        level=5,
        help="what turns cycles into the seconds of MPI.Wtime; the prototype ran at 425 (Taylor et al., ISCA 2004)",
    ),
    Parameter(
        "watchdog",
        int,
        0,
        unit="cycles",
        range=(0, 1 << 60),
        level=4,
        help="stalled so long in a write, a tile drains its input into memory; 0: never, and what deadlocks ends",
    ),
    Parameter(
        "patience",
        int,
        0,
        unit="ms",
        range=(0, 10**9),
        level=6,
        help="real time for which the chip stands still while a rank computes; then it goes on without that rank, and cycles "
        "depend on the host; 0: without end",
    ),
    Parameter("trace", str, "", level=3, help="file for a record of the run, which `ompy raw view` draws"),
    Parameter(
        "trace_words",
        int,
        100_000,
        unit="words",
        range=(0, 1 << 28),
        level=6,
        help="words on wires that the record keeps, the first ones",
    ),
    Parameter(
        "trace_samples",
        int,
        512,
        unit="moments",
        range=(1, 1 << 20),
        level=6,
        help="moments at which it keeps links and buffers, spread over the run",
    ),
    Parameter(
        "staging",
        int,
        16384,
        unit="words",
        range=(1, 1 << 28),
        level=8,
        help="moved by one step of the simulation; costs no cycle",
    ),
)


def value(name: str) -> Any:
    """The value of `machine_raw_<name>`."""
    for parameter in PARAMETERS:
        registry.register("machine", "raw", parameter)
    return registry.value(f"machine_raw_{name}")
