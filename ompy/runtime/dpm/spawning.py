"""Spawn: a job is started, and its world meets the group that has asked for it.

group a, collectively              launcher              world of the new job
root: opens a port
      spawn, the port's string ->  starts it        ->   begins MPI
      accepts                 <-------------------------- root connects to `Rte.parent_port`
                    the meeting of both
"""

from __future__ import annotations

from ompy.core.board import show_call, show_running
from ompy.core.errors import ERR_ARG, ERR_SPAWN, SUCCESS, MPIError
from ompy.core.signals import KeptExceptions
from ompy.runtime import internal_messages
from ompy.runtime.dpm import acquaintances
from ompy.runtime.dpm import port as ports
from ompy.runtime.dpm.meeting import meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.core.communicator import Communicator
    from ompy.mca.rte import Order
    from ompy.runtime.dpm.channel import Channel
    from ompy.runtime.instance import Instance

# Between the news that all new processes have begun MPI (or, of launchers that do not tell, that they were started) and the
# call of their root, in seconds.
LIMIT = 120.0


def spawn(
    instance: Instance, comm: Communicator, root: int, orders: Callable[[], list[Order]]
) -> tuple[Communicator, list[list[int]]]:
    """The inter-communicator to the new processes, and an error class for each of them, by program.

    Parameters:
        orders: asked on the root alone.
    """
    codes: list[list[int]] = []
    port: ports.Port | None = None
    is_asked = False

    def opened() -> Channel:
        nonlocal port, is_asked
        wanted = orders()
        if not wanted:
            raise MPIError(ERR_ARG, "command: at least one program to start expected, not an empty list")
        show_call("Comm_spawn", wanted[0].command)
        port = ports.Port(everywhere=not instance.rte.is_on_one_host)
        instance.modex.ask_ahead()
        with instance.launcher_lock:
            is_asked = True
            started = instance.rte.spawn(wanted, port.name)
        found = iter(started.codes)
        codes.extend([next(found, SUCCESS) for _ in range(order.count)] for order in wanted)

        def look() -> None:
            if how := acquaintances.failure_in(started.job):
                raise MPIError(ERR_SPAWN, f"{wanted[0].command}: {how} before it met those who have spawned it")

        return port.accept(LIMIT, look)

    def cancel() -> None:
        """Nobody waits for the processes any more, because a signal handler has raised: they are to end."""
        nonlocal is_asked
        if port is not None and is_asked:
            is_asked = False
            instance.rte.cancel_spawn(port.name)

    made: Communicator | None = None
    try:
        with KeptExceptions():
            made = meet(instance, comm, root, opened, cancel)
            return made, internal_messages.share_value(comm, codes, root)
    except MPIError:
        raise
    except BaseException:
        if made is None:
            cancel()
        raise
    finally:
        if port is not None:
            port.close()
            show_running()


def meet_parent(instance: Instance) -> Communicator | None:
    """The inter-communicator to those that have spawned this job; None where a person has started it."""
    name = instance.rte.parent_port
    if not name:
        return None
    return meet(instance, instance.world, 0, lambda: ports.connect(name, LIMIT))
