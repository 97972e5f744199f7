"""What a component of which one module serves a process answers when it is asked."""

from __future__ import annotations

from typing import TypeVar

from ompy.mca import discovery, loading
from ompy.mca.component import Context, Offer, Refusal
from ompy.mca.hook import hooks
from ompy.testing.conformance.check import Breach

Module = TypeVar("Module")


def answered(framework: str, name: str, kind: type[Module], clause: str) -> tuple[Module | None, str]:
    """The module that the component makes here, or the reason why not.

    Errors: Breach of `clause` for any other answer.
    """
    found = discovery.installed()[framework][name]
    loaded = loading.load(found)
    if mismatch := loading.interface_mismatch(found, loaded.component):
        raise Breach(clause, mismatch)
    answer = hooks.query(loaded.plugin, Context(loaded.component))
    if isinstance(answer, Refusal):
        if not answer.reason:
            raise Breach(clause, "its refusal has no reason")
        return None, answer.reason
    if not isinstance(answer, Offer) or len(answer.modules) != 1 or not isinstance(answer.modules[0], kind):
        raise Breach(clause, f"its query answers {answer!r}, no offer of one {kind.__name__}")
    return answer.modules[0], ""
