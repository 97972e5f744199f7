"""Performance variables (MPI-4.1, 15.5): what the components that serve count, and how long the PML's queues are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ompy.core import progress
from ompy.core.errors import ERR_ARG, ERR_COMM, ERR_SESSION, MPIError
from ompy.mca.counters import PROGRESS, Counter
from ompy.mca.errors import suggestion
from ompy.mca.loading import loaded_components
from ompy.mca.selection import chosen_modules

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.mpi.comm import Comm

# The queues that every PML tells of, a communicator at a time.
QUEUES = {
    "posted": Counter("posted_receives", "receives that wait for their message", unit="requests", kind="level"),
    "unexpected": Counter("unexpected_messages", "messages that wait for their receive", unit="messages", kind="level"),
}


class PerformanceVariable:
    """Something that is counted.

    Attributes:
        name: `<framework>_<component>_<counter>`, or `progress_<counter>`.
        kind: "counter" (only grows) or "level" (what there is now); the classes of MPI-4.1, 15.5.1.
        unit, description: for people.
        bind: "none", or "communicator": a handle is about one.
        continuous: a level can't be stopped; a counter counts between start and stop.
    """

    def __init__(self, name: str, counter: Counter, value: Callable[..., int], bind: str = "none") -> None:
        self.name = name
        self.kind = counter.kind
        self.unit = counter.unit
        self.description = counter.help
        self.bind = bind
        self.continuous = counter.kind == "level"
        self.value = value

    def __repr__(self) -> str:
        return f"<performance variable {self.name}>"


def queue_length(pml: Any, queue: str) -> Callable[[Comm], int]:
    def length(comm: Comm) -> int:
        from ompy.mpi.comm import core_of

        return len(pml.dump(core_of(comm)).get(queue, ()))

    return length


def counted(framework: str, component: str, module: Any) -> list[PerformanceVariable]:
    """What one module counts, or a component's Python module for all of them, described as the component declares it."""
    loaded = loaded_components.get((framework, component))
    known = {counter.name: counter for counter in loaded.component.counters} if loaded else {}
    found = []
    for name, value in module.statistics().items():
        if isinstance(value, int):
            full_name = f"{framework}_{component}_{name.replace(' ', '_')}"
            counter = known.get(name) or Counter(name, name.replace("_", " "))
            found.append(PerformanceVariable(full_name, counter, lambda name=name: int(module.statistics()[name])))
    return found


def performance_variables() -> list[PerformanceVariable]:
    """What is counted in this process now; nothing before MPI is initialised."""
    if not chosen_modules:
        return []
    found = [
        PerformanceVariable(f"progress_{counter.name}", counter, lambda name=counter.name: progress.counters()[name])
        for counter in PROGRESS
    ]
    for framework, modules in chosen_modules.items():
        for module in modules:
            if hasattr(module, "statistics"):
                found += counted(framework, module.name, module)
    # Components that serve a file each have one count for all files of the process.
    for (framework, component), loaded in list(loaded_components.items()):
        python_module = sys.modules.get(str(loaded.component.interface))
        if framework not in chosen_modules and hasattr(python_module, "statistics"):
            found += counted(framework, component, python_module)
    for pml in chosen_modules.get("pml", ()):
        found += [
            PerformanceVariable(f"pml_{pml.name}_{counter.name}", counter, queue_length(pml, queue), "communicator")
            for queue, counter in QUEUES.items()
        ]
    return sorted(found, key=lambda variable: variable.name)


def performance_variable(name: str) -> PerformanceVariable:
    """The one of that name; ERR_ARG with the nearest known one."""
    known = {variable.name: variable for variable in performance_variables()}
    if name not in known:
        hint = suggestion(name, list(known))
        raise MPIError(ERR_ARG, f"no performance variable is called {name}.{hint}" if known else "MPI is not initialised")
    return known[name]


class Handle:
    """One variable in one session (MPI_T_pvar_handle_alloc): a counter counts from here on, between `start` and `stop`."""

    def __init__(self, session: Session, variable: PerformanceVariable, bound: tuple[Any, ...]) -> None:
        self.session = session
        self.variable = variable
        self.bound = bound
        self.counted = 0
        self.since: int | None = None

    def now(self) -> int:
        if self not in self.session.handles:
            raise MPIError(ERR_SESSION, f"the handle of {self.variable.name} was freed, or its session was")
        return self.variable.value(*self.bound)

    def start(self) -> None:
        """Count from now on; nothing to do for a level."""
        if self.since is None and not self.variable.continuous:
            self.since = self.now()

    def stop(self) -> None:
        """Keep what was counted."""
        if self.since is not None:
            self.counted += self.now() - self.since
            self.since = None

    def read(self) -> int:
        """What was counted between starts and stops; of a level, what there is now."""
        now = self.now()
        if self.variable.continuous:
            return now
        return self.counted + (0 if self.since is None else now - self.since)

    def reset(self) -> None:
        """Count from zero again.  Errors: ERR_ARG for a level, which is not the session's to set."""
        if self.variable.continuous:
            raise MPIError(ERR_ARG, f"{self.variable.name} is what there is now: it can't be reset")
        self.counted = 0
        if self.since is not None:
            self.since = self.now()

    def read_and_reset(self) -> int:
        """Both (MPI_T_pvar_readreset)."""
        value = self.read()
        self.reset()
        return value

    def free(self) -> None:
        """The handle is used no more."""
        self.session.handles.discard(self)


class Session:
    """Readings that do not disturb those of others (MPI_T_pvar_session_create)."""

    def __init__(self) -> None:
        self.handles: set[Handle] = set()

    def handle(self, name: str, comm: Comm | None = None) -> Handle:
        """A handle on the variable of that name, stopped.

        Errors: ERR_ARG for an unknown name; ERR_COMM when a communicator is missing, or given to a variable of none.
        """
        variable = performance_variable(name)
        if (comm is None) != (variable.bind == "none"):
            wanted = "needs a communicator" if comm is None else "is about no communicator"
            raise MPIError(ERR_COMM, f"performance variable {name} {wanted}")
        handle = Handle(self, variable, () if comm is None else (comm,))
        self.handles.add(handle)
        return handle

    def start(self) -> None:
        """Start all handles (MPI_T_PVAR_ALL_HANDLES)."""
        for handle in self.handles:
            handle.start()

    def stop(self) -> None:
        """Stop all handles."""
        for handle in self.handles:
            handle.stop()

    def free(self) -> None:
        """The session and its handles are used no more."""
        self.handles.clear()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
