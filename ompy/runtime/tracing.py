"""The recording of messages in one process: `--mca trace_output run.json`, or `ompy trace`.

Each rank records into a ring of its own, `run.json.<job>.<rank>.ring`.  At the end rank 0 makes `run.json` of them all, of
spawned jobs too, where those are over; where a job ended badly, or is over later, `ompy trace` does.
"""

from __future__ import annotations

from ompy.core import trace
from ompy.mca.errors import ParameterError
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.mca.rte import Rte


def configure(rte: Rte) -> None:
    """Begin to record, when that is wanted."""
    output = registry.value("trace_output")
    if output:
        import os

        from ompy.runtime.timeline import SPAWNED, refusal, rings

        if reason := refusal(output):
            raise ParameterError(f"parameter trace_output ({registry.lookup('trace_output').source}): {reason}")
        own = f"{output}.{SPAWNED * bool(rte.parent_port)}{rte.job.replace('/', '_')}."
        if rte.rank == 0 and not rte.parent_port:
            # Of ranks that were killed; those of its own job have just begun.
            for left_over in rings(output):
                if not left_over.startswith(own):
                    os.remove(left_over)
        trace.start(f"{own}{rte.rank}.ring", rte.rank, os.uname().nodename, registry.value("trace_events"))


def stop() -> None:
    """Record no more: what the runtime itself does to end is no message of the program's."""
    trace.stop()


def collect(rte: Rte) -> None:
    """After all ranks have stopped: make the one file of their rings."""
    output = registry.value("trace_output")
    if output and rte.rank == 0 and not rte.parent_port:
        from ompy.runtime.timeline import collect as write

        write(output)
