"""One rank under test: `python -m ompy.testing.conformance.rank` does what the kit says over the wire."""

from __future__ import annotations

import faulthandler
import re
import signal
import sys
import traceback
from typing import Protocol

from ompy.testing.conformance.check import FAILED, PASSED, SKIPPED, Breach, Check, Outcome, Unsuitable, checks
from ompy.testing.conformance.wire import OUTCOME, Wire, connect


class Subject(Protocol):
    """What checks are called with.

    Attributes:
        clause: name of the clause that is being examined.
        sole: name of the clause that is broken by whatever goes wrong; empty where there is no such.
    """

    clause: str
    sole: str

    def begin(self, check: Check) -> None: ...

    def step(self) -> None: ...


# Frameworks whose components match messages.
MATCHING = ("pml", "mtl", "rpi")
# Frameworks whose components serve files.
FILES = ("io", "fs", "fbtl", "fcoll", "sharedfp")


def subject_of(wire: Wire) -> Subject:
    """What a level's checks are called with; made before their modules are imported, which may bring MPI up."""
    if wire.setting.framework == "coll":
        from ompy.testing.conformance.coll.rank import CollRank

        return CollRank(wire)
    if wire.setting.framework == "osc":
        from ompy.testing.conformance.osc.rank import OscRank

        return OscRank(wire)
    if wire.setting.framework in MATCHING:
        from ompy.testing.conformance.pml.rank import PmlRank

        return PmlRank(wire)
    if wire.setting.framework == "bml":
        from ompy.testing.conformance.bml.rank import BmlRank

        return BmlRank(wire)
    if wire.setting.framework == "rte":
        from ompy.testing.conformance.rte.rank import RteProgram, RteRank

        return RteProgram(wire) if wire.setting.level == "mpi" else RteRank(wire)
    if wire.setting.framework == "plm":
        from ompy.testing.conformance.plm.rank import PlmRank

        return PlmRank(wire)
    if wire.setting.framework == "hook":
        from ompy.testing.conformance.hook.rank import HookRank

        return HookRank(wire)
    if wire.setting.framework in FILES:
        from ompy.testing.conformance.files.rank import FileRank

        return FileRank(wire)
    if wire.setting.level == "contract":
        from ompy.testing.conformance.btl.rank import BtlRank

        return BtlRank(wire)
    from ompy.testing.conformance.mpi.rank import MpiRank

    return MpiRank(wire)


# How an error names the clause that it is about.
NAMED = re.compile(r"clause \d+ of ompy/mca/\w+\.\w+, ([a-z -]+)")


def failure(error: Exception, subject: Subject, rank: int) -> Outcome:
    """What an exception says is broken: the clause that it names, or else the one that was being examined."""
    if isinstance(error, Breach):
        return Outcome(FAILED, subject.sole or error.clause, error.words, rank, error.symptom)
    named = NAMED.search(str(error))
    return Outcome(
        FAILED, subject.sole or (named[1] if named else subject.clause), "".join(traceback.format_exception(error)), rank
    )


def run(check: Check, subject: Subject, rank: int) -> Outcome:
    """Run a check and say how it went."""
    try:
        subject.begin(check)
        check.body(subject)
    except Unsuitable as reason:
        return Outcome(SKIPPED, "", str(reason), rank)
    except Exception as error:
        return failure(error, subject, rank)
    return Outcome(PASSED, rank=rank)


def wait(wire: Wire, subject: Subject) -> Exception | None:
    """Until the kit speaks; what goes wrong in the transport meanwhile, which must go on for its peers' sake."""
    while not wire.connection.poll():
        try:
            subject.step()
        except Exception as error:
            wire.connection.poll(None)
            return error
    return None


def main() -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    wire = connect()
    try:
        subject = subject_of(wire)
        known = {check.name: check for check in checks(wire.setting.framework, wire.setting.level)}
    except Breach as breach:
        wire.say(OUTCOME, Outcome(FAILED, breach.clause, breach.words, wire.rank))
        sys.exit(1)
    except Exception:
        wire.say(OUTCOME, Outcome(FAILED, "open", traceback.format_exc(), wire.rank))
        sys.exit(1)
    wire.say(OUTCOME, Outcome(PASSED, rank=wire.rank))
    while True:
        problem = wait(wire, subject)
        try:
            name = wire.connection.recv()
        except EOFError:
            break  # the kit wants no more
        outcome = failure(problem, subject, wire.rank) if problem else run(known[name], subject, wire.rank)
        sys.stdout.flush()
        sys.stderr.flush()
        wire.say(OUTCOME, outcome)


if __name__ == "__main__":
    main()
