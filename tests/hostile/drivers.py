"""The drivers, by name."""

from __future__ import annotations

from arguments import Arguments
from entry_points import EntryPoints
from harness import Driver
from parameters import Parameters

DRIVERS: dict[str, Driver] = {driver.name: driver for driver in (Arguments(), EntryPoints(), Parameters())}
