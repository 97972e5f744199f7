"""All experiments, in the order of the thesis."""

from __future__ import annotations

from ompy_raw_experiments.catalogue import applications, collectives, crossing, latency, tables
from ompy_raw_experiments.experiment import Experiment


def experiments(full: bool) -> dict[str, Experiment]:
    """By name.  `full`: to the largest sizes of the thesis, which takes an hour or more."""
    found = [
        *tables.experiments(),
        *crossing.experiments(full),
        *latency.experiments(),
        *collectives.experiments(full),
        *applications.experiments(),
    ]
    return {experiment.name: experiment for experiment in found}
