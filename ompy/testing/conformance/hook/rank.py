"""A rank of a job that the watcher under test looks at, and components of the kit's own for it to look at."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any

from ompy.mca.component import PROJECT, Component, Context, Offer, Refusal, hookimpl
from ompy.mca.hook import hooks
from ompy.testing.conformance.belongings import belongings
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.mpi.rank import MpiRank
from ompy.testing.conformance.wire import SIGN, Wire

OUTPUT = 1  # the standard output's descriptor


class Asked(ModuleType):
    """A component of the kit's: its query does what a check says."""

    def __init__(self, framework: str, name: str, answer: Callable[[Context], Offer | Refusal]) -> None:
        super().__init__(f"kit_{framework}_{name}")
        self.declaration = Component(framework=framework, name=name, version="1.0", interface=1, summary="asked")

        @hookimpl
        def ompy_component() -> Component:
            return self.declaration

        @hookimpl
        def ompy_query(context: Context) -> Offer | Refusal:
            return answer(context)

        self.ompy_component, self.ompy_query = ompy_component, ompy_query

    def ask(self, rte: Any) -> object:
        """The answer, by way of the watcher."""
        try:
            return hooks.query(self, Context(self.declaration, rte))
        finally:
            hooks.pluggy().unregister(self)


class Companion:
    """Stands around `ompy_initialized` of the watcher under test: how often it came, and what is no longer as it was."""

    wire: Wire
    came = 0
    changed: tuple[str, ...] = ()

    @staticmethod
    def ompy_initialized(instance: Any) -> Generator[None, Any, Any]:
        Companion.came += 1
        Companion.wire.say(SIGN, "initialized")
        before = belongings()
        answer = yield
        after = belongings()
        Companion.changed = tuple(name for name, value in before.items() if after[name] != value)
        return answer


class HookRank(MpiRank):
    """One rank.

    Attributes:
        printed: what was written to the standard output while MPI came up.
        changed: what of the process is otherwise since then.
        came: how many times bring-up was over.
    """

    def __init__(self, wire: Wire) -> None:
        import pluggy

        Companion.wire = wire
        pluggy.HookimplMarker(PROJECT)(wrapper=True, tryfirst=True)(Companion.ompy_initialized)
        hooks.pluggy().register(Companion)
        with tempfile.TemporaryFile() as output:
            sys.stdout.flush()
            kept = os.dup(OUTPUT)
            os.dup2(output.fileno(), OUTPUT)
            try:
                super().__init__(wire)
            except Exception as error:
                clause = "initialized" if Companion.came else "answers"
                raise Breach(clause, f"with the watcher MPI does not come up: {error}") from error
            finally:
                sys.stdout.flush()
                os.dup2(kept, OUTPUT)
                os.close(kept)
            output.seek(0)
            self.printed = output.read().decode(errors="replace")
        self.came, self.changed = Companion.came, Companion.changed
        from ompy.mpi.environment import instance

        self.rte = instance().rte
