"""The kit's process that stands for `ompyrun` where a launcher of processes is under test."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

from ompy.mca.plm import Plm
from ompy.runtime.hostfile import allocated
from ompy.runtime.orphans import adopt_orphans
from ompy.testing.conformance.answer import answered
from ompy.testing.conformance.belongings import belongings
from ompy.testing.conformance.check import Breach, Check
from ompy.testing.conformance.held import held
from ompy.testing.conformance.limits import declared
from ompy.testing.conformance.plm.processes import children
from ompy.testing.conformance.wire import ADDRESS, SIGN, Wire

# Of the silence that a check may keep: what was waited for in vain is said before the kit takes this process for a silent one.
PARTS = 3


class PlmRank:
    """A launcher.

    Attributes:
        module: what is under test.
        hosts: names of as many as the kit was told to try; those of an allocation where there is one.
        unreachable: name of a host that can't be reached; empty where the component declares none.
        patience: seconds in which what must happen does.
        folder: the kit's own, for the addresses of probes; what an agent leaves would be in `temporary`.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.clause = self.sole = ""
        setting = wire.setting
        self.patience = setting.patience / PARTS
        self.random = random.Random(setting.seed)
        self.folder = Path(os.environ[ADDRESS]).parent
        self.temporary = Path(tempfile.gettempdir())
        adopt_orphans()
        self.component = setting.component
        known = [host.name for host in allocated(os.environ)]
        names = known if len(known) >= setting.size else [f"kit-{number}" for number in range(setting.size)]
        self.hosts = names[: setting.size]
        self.unreachable = str(declared("plm", self.component).capabilities.get("unreachable", ""))
        self.module = self.asked()

    def asked(self) -> Plm:
        """A new module.

        Errors: Breach where the component makes none here.
        """
        module, reason = answered("plm", self.component, Plm, "query")
        if module is None:
            raise Breach("query", f"it does not serve here: {reason}")
        return module

    def begin(self, check: Check) -> None:
        self.clause = check.clauses[0]
        self.alive()

    def step(self) -> None:
        self.wire.connection.poll(0.1)

    def alive(self) -> None:
        """A sign of life."""
        self.wire.say(SIGN, self.clause)

    def belongings(self) -> dict[str, object]:
        """What of this process is not the component's to change."""
        return belongings() | {"its open files": held()[0], "its children": children()}
