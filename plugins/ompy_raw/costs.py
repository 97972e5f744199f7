"""What the work of a tile costs, in cycles: one table for every program and experiment on the chip.

A program charges its own work from here.  The network's time is not in the table: it comes out of the simulation.  The
figures of the prototype are quoted from memory of the paper named, which was not at hand: check them before a conclusion
hangs on one.  What no paper gives is an assumption of the model, and says so.
"""

from __future__ import annotations

TAYLOR_2004 = "Taylor et al., Evaluation of the Raw Microprocessor (ISCA 2004)"
MODEL = "model's assumption"


class Cost:
    """One row: a name, cycles, and where the number is from."""

    __slots__ = ("cycles", "name", "source")

    def __init__(self, name: str, cycles: int, source: str) -> None:
        self.name = name
        self.cycles = cycles
        self.source = source


TABLE = (
    Cost("issue", 1, f"single-issue in-order pipeline (thesis, 2.1); {TAYLOR_2004}, functional units: ALU, 1 a cycle"),
    Cost("load", 1, f"{TAYLOR_2004}, functional units: a hit, 1 a cycle (3 until used, which compilers hide)"),
    Cost("store", 1, f"{TAYLOR_2004}, functional units: a hit, 1 a cycle"),
    Cost("branch", 1, f"{TAYLOR_2004}, memory and branches: static prediction, right"),
    Cost("mispredict", 3, f"{TAYLOR_2004}, memory and branches: static prediction, wrong: 3 more"),
    Cost("cache_miss", 54, f"{TAYLOR_2004}, memory and branches: data cache miss to off-chip memory; lines of 8 words"),
    Cost("interrupt_entry", 30, f"{MODEL}: 8-stage pipeline emptied, 22 caller-saved registers stored"),
    Cost("interrupt_exit", 25, f"{MODEL}: 22 registers loaded, return from interrupt"),
    Cost("integer_multiply", 2, f"{TAYLOR_2004}, functional units"),
    Cost("integer_divide", 42, f"{TAYLOR_2004}, functional units"),
    Cost("float_add", 4, f"{TAYLOR_2004}, functional units: until used; single precision (thesis, 2.1: 4-stage FPU)"),
    Cost("float_multiply", 4, f"{TAYLOR_2004}, functional units: until used"),
    Cost("float_divide", 10, f"{TAYLOR_2004}, functional units"),
)
COSTS = {cost.name: cost.cycles for cost in TABLE}
