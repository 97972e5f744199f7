"""Which components serve, and why: every query's outcome is a verdict that can be shown.

A component takes part when the framework's list (`--mca btl a,b` or `^c`) lets it; only then is its `component.py`
imported, its interface number compared, its parameters registered, and its `ompy_query` called.
"""

from __future__ import annotations

import sys
from importlib import import_module

from ompy.mca import discovery
from ompy.mca.component import Component, Context, Offer, Refusal
from ompy.mca.errors import ComponentError, ParameterError, suggestion
from ompy.mca.frameworks import FRAMEWORKS, declare
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    from ompy.core.communicator import Communicator
    from ompy.mca.coll import CollTable
    from ompy.mca.discovery import Found
    from ompy.mca.rte import Rte


class Verdict:
    """What became of one component.

    Attributes:
        framework, component: their names.
        chosen: whether it serves.
        priority: what it offered; None when it made no offer.
        reason: why, in words.
    """

    __slots__ = ("chosen", "component", "framework", "priority", "reason")

    def __init__(self, framework: str, component: str, chosen: bool, priority: int | None, reason: str) -> None:
        self.framework = framework
        self.component = component
        self.chosen = chosen
        self.priority = priority
        self.reason = reason

    def __repr__(self) -> str:
        word = "chosen" if self.chosen else "not chosen"
        return f"<{self.framework}/{self.component} {word}: {self.reason}>"


class Loaded:
    """An imported component: its plugin module and its declaration."""

    __slots__ = ("component", "plugin")

    def __init__(self, plugin: ModuleType, component: Component) -> None:
        self.plugin = plugin
        self.component = component


class Candidate:
    """A component that has made an offer."""

    __slots__ = ("component", "offer")

    def __init__(self, component: Component, offer: Offer) -> None:
        self.component = component
        self.offer = offer


# Of this process: what was imported, what serves, and what became of each component.
loaded_components: dict[tuple[str, str], Loaded] = {}
chosen_modules: dict[str, list[Any]] = {}
recorded_verdicts: dict[str, dict[str, Verdict]] = {}
context_rte: Rte | None = None


def verdicts(framework: str = "") -> list[Verdict]:
    """The verdicts so far, of one framework or of all."""
    names = [framework] if framework else list(recorded_verdicts)
    return [verdict for name in names for verdict in recorded_verdicts.get(name, {}).values()]


def say(framework: str, level: int, line: str) -> None:
    """A line for people when `<framework>_base_verbose` is at least `level`."""
    if registry.value(f"{framework}_base_verbose") >= level:
        rank = "?" if context_rte is None else context_rte.rank
        print(f"[ompy rank {rank}] {framework}: {line}", file=sys.stderr, flush=True)


def record(framework: str, component: str, chosen: bool, priority: int | None, reason: str) -> None:
    recorded_verdicts.setdefault(framework, {})[component] = Verdict(framework, component, chosen, priority, reason)
    words = "chosen" if chosen else "not chosen"
    if priority is not None:
        words += f", priority {priority}"
    say(framework, 1, f"{component} {words}: {reason}")


def named(framework: str) -> tuple[list[str], bool]:
    """The framework's list, and whether it excludes; an empty one includes all."""
    entry = registry.lookup(framework)
    names = [name.strip() for name in entry.value.split(",") if name.strip()]
    excluding = bool(names) and names[0].startswith("^")
    if excluding:
        names[0] = names[0][1:]
    where = f"parameter {framework} ({entry.source}): {entry.value!r}"
    if any(name.startswith("^") for name in names):
        raise ComponentError(f"{where} mixes including and excluding; one ^, at the front, excludes the whole list")
    known = discovery.installed().get(framework, {})
    for name in names:
        if name not in known:
            listing = ", ".join(sorted(known)) or "none is installed"
            raise ComponentError(
                f"{where}: no {framework} component is called {name}; known: {listing}.{suggestion(name, list(known))}"
            )
    return names, excluding


def candidates(framework: str) -> tuple[list[Found], bool]:
    """The components that the framework's list lets take part, and whether they were asked for by name."""
    names, excluding = named(framework)
    known = discovery.installed().get(framework, {})
    if names and not excluding:
        for name in known:
            if name not in names:
                record(framework, name, False, None, f"not in the list of parameter {framework}")
        return [known[name] for name in names], True
    for name in names:
        record(framework, name, False, None, f"excluded by parameter {framework}")
    return [found for name, found in known.items() if name not in names], False


def interface_of(framework: str) -> int:
    """The interface number of the framework's contract in this ompy."""
    return int(import_module(f"ompy.mca.{framework}").interface)


def load(found: Found) -> Loaded:
    """Import a component's plugin module, and register its parameters.  Raises whatever the module raises."""
    key = found.framework, found.name
    loaded = loaded_components.get(key)
    if loaded is None:
        plugin = import_module(found.module)
        component = plugin.ompy_component()
        loaded = loaded_components[key] = Loaded(plugin, component)
        for parameter in component.parameters:
            registry.register(found.framework, found.name, parameter)
    return loaded


def refuse_interface(found: Found, component: Component) -> str:
    """Why the component's interface number rules it out; empty when it does not."""
    ours = interface_of(found.framework)
    theirs = component.interface
    if isinstance(theirs, str):
        theirs = int(import_module(theirs).interface)
    if theirs == ours:
        return ""
    remedy = f"rebuild or upgrade {found.distribution}" if theirs < ours else "upgrade ompy"
    return (
        f"{found.framework} component {found.name} of {found.distribution} {found.version} was built for interface "
        f"{theirs} of the {found.framework} framework, this ompy has interface {ours}: {remedy}"
    )


def ask(found: Found, by_name: bool, communicator: Communicator | None = None) -> Candidate | None:
    """Query one component; None, with a verdict, when it does not offer."""
    framework, name = found.framework, found.name
    try:
        loaded = load(found)
        mismatch = refuse_interface(found, loaded.component)
    except ParameterError:
        raise
    except Exception as error:
        reason = f"importing {found.module} of {found.distribution} {found.version} failed: {type(error).__name__}: {error}"
        record(framework, name, False, None, reason)
        if by_name:
            raise ComponentError(f"{framework} component {name}, asked for by parameter {framework}: {reason}") from error
        return None
    if mismatch:
        record(framework, name, False, None, mismatch)
        if by_name:
            raise ComponentError(mismatch)
        return None
    context = Context(loaded.component, context_rte, communicator, chosen_modules)
    try:
        answer = loaded.plugin.ompy_query(context)
    except ParameterError:
        raise
    except Exception as error:
        answer = Refusal(f"its query failed: {type(error).__name__}: {error}")
        if by_name:
            raise ComponentError(f"{framework} component {name}, asked for by parameter {framework}: {answer.reason}") from error
    if isinstance(answer, Refusal):
        record(framework, name, False, None, answer.reason)
        return None
    return Candidate(loaded.component, answer)


def table(framework: str) -> str:
    """The verdicts of a framework, a line each, for the error that says that none serves."""
    return "".join(f"\n  {verdict.component}: {verdict.reason}" for verdict in verdicts(framework))


def select(framework: str, rte: Rte | None = None) -> list[Any]:
    """Choose the framework's components; returns their modules, the highest priority first.

    Raises ComponentError when none can serve, with every component's reason.
    """
    global context_rte
    declare()
    if rte is not None:
        context_rte = rte
    found, by_name = candidates(framework)
    offers = [candidate for it in found if (candidate := ask(it, by_name))]
    offers.sort(key=lambda candidate: -candidate.offer.priority)
    if not offers:
        raise ComponentError(f"no {framework} component can serve:{table(framework) or ' none is installed'}")
    serving = offers[:1] if FRAMEWORKS[framework].takes == "one" else offers
    for candidate in serving:
        reason = "asked for by name" if by_name else "highest priority" if len(serving) < len(offers) else "can run"
        record(framework, candidate.component.name, True, candidate.offer.priority, reason)
    for candidate in offers[len(serving) :]:
        winner = serving[0]
        reason = f"{winner.component.name} has priority {winner.offer.priority}"
        record(framework, candidate.component.name, False, candidate.offer.priority, reason)
    chosen_modules[framework] = [module for candidate in serving for module in candidate.offer.modules]
    if framework == "rte":
        context_rte = chosen_modules[framework][0]
    return chosen_modules[framework]


def fill(communicator: Communicator) -> CollTable:
    """Choose the collectives of one communicator: for each function, in each of its forms, the highest priority.

    A component that offers `bcast` serves `Bcast`, `Ibcast` and `Bcast_init`; `ibcast` or `bcast_init` stands for that
    form alone.  Raises ComponentError when a function is left without a module.
    """
    from ompy.mca.coll import FUNCTIONS, CollTable

    declare()
    found, by_name = candidates("coll")
    offers = [candidate for it in found if (candidate := ask(it, by_name, communicator))]
    offers.sort(key=lambda candidate: candidate.offer.priority)
    forms = [dict.fromkeys(names) for names in (FUNCTIONS, [f"i{n}" for n in FUNCTIONS], [f"{n}_init" for n in FUNCTIONS])]
    outcomes = []
    served = dict.fromkeys(FUNCTIONS, "")
    for candidate in offers:
        name, offer = candidate.component.name, candidate.offer
        module = offer.modules[0]
        for function in FUNCTIONS if offer.functions is None else offer.functions:
            spellings = (function, f"i{function}", f"{function}_init") if function in served else (function,)
            matched = False
            for form in forms:
                for spelling in spellings:
                    if spelling in form:
                        form[spelling] = module
                        matched = True
            if not matched:
                raise ComponentError(
                    f"coll component {name} offers {function!r}, which is no collective."
                    + suggestion(function, list(FUNCTIONS))
                )
            outcomes.append((function, name, offer.priority))
        record("coll", name, True, offer.priority, "can run")
    for form in forms:
        missing = [function for function, module in form.items() if module is None]
        if missing:
            raise ComponentError(f"no coll component serves {', '.join(missing)}:{table('coll') or ' none is installed'}")
    for function, name, _ in outcomes:
        served[function] = name
    told = []
    for function, name, priority in outcomes:
        winner = served[function]
        reason = "highest priority" if winner == name else f"{winner} has a higher priority"
        told.append((function, name, priority, winner == name, reason))
    return CollTable(*(list(form.values()) for form in forms), told)


def forget() -> None:
    """Before another bring-up in the same process: nothing is chosen."""
    global context_rte
    chosen_modules.clear()
    recorded_verdicts.clear()
    context_rte = None
