"""Which components serve, and why: every query's outcome is a verdict that can be shown.

A component takes part when the framework's list (`--mca btl a,b` or `^c`) lets it, and, of those that are found by name
alone, when the list names it; only then is its `component.py`
imported, its interface number compared, its parameters registered, and its `ompy_query` called.
"""

from __future__ import annotations

from ompy.mca import discovery
from ompy.mca.component import Component, Context, Offer, Refusal
from ompy.mca.errors import ComponentError, ParameterError, suggestion
from ompy.mca.frameworks import FRAMEWORKS, declare
from ompy.mca.hook import hooks
from ompy.mca.lists import named
from ompy.mca.loading import check_parameters, interface_mismatch, limited, load, load_quietly, offer_problem
from ompy.mca.params import registry
from ompy.mca.verdicts import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ompy.core.communicator import Communicator
    from ompy.core.file import File
    from ompy.core.window import Window
    from ompy.mca.discovery import Found


class Candidate:
    """A component that has made an offer."""

    __slots__ = ("component", "offer")

    def __init__(self, component: Component, offer: Offer) -> None:
        self.component = component
        self.offer = offer


# How far a component's peers may be, as its capability `reach` says; "network" includes the nearer ones.
REACHES = ("process", "host", "network")

# What serves in this process, by framework.
chosen_modules: dict[str, list[Any]] = {}

verdicts = record.of


def candidates(framework: str) -> tuple[list[Found], bool]:
    """The components that the framework's list lets take part, and whether they were asked for by name."""
    names, excluding = named(framework)
    known = discovery.installed().get(framework, {})
    if names and not excluding:
        for name in known:
            if name not in names:
                record.add(framework, name, False, None, f"not in the list of parameter {framework}")
        return [known[name] for name in names], True
    for name in names:
        record.add(framework, name, False, None, f"excluded by parameter {framework}")
    return [found for name, found in known.items() if name not in names], False


class Broken(Refusal):
    """A component that went wrong: for one that was asked for by name, an error."""

    __slots__ = ("cause",)

    def __init__(self, reason: str, cause: BaseException | None = None) -> None:
        super().__init__(f"{reason}: {type(cause).__name__}: {' '.join(str(cause).split())}" if cause else reason)
        self.cause = cause


def answer_of(
    found: Found,
    by_name: bool,
    communicator: Communicator | None,
    window: Window | None,
    opener: str = "",
    file: File | None = None,
) -> tuple[Component | None, Offer | Refusal]:
    """Load a component, compare its interface number, and ask it."""
    if found.by_name and not by_name:
        where = f"as in `--mca {found.framework} {found.name}`"
        return None, Refusal(f"serves only where it is named, {where}", lasting=True)
    try:
        component = load(found).component
        mismatch = interface_mismatch(found, component)
    except (ParameterError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return None, Broken(f"importing {found.module} of {found.distribution} {found.version} failed", error)
    if mismatch:
        return component, Broken(mismatch)
    context = Context(component, record.rte, communicator, chosen_modules, window, select, opener, file, by_name)
    try:
        answer = limited(hooks.query, load(found).plugin, context)
    except (ParameterError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return component, Broken("its query failed", error)
    if isinstance(answer, Offer) and (problem := offer_problem(found.framework, answer)):
        return component, Broken(problem)
    return component, answer


def query(
    found: Found,
    by_name: bool,
    communicator: Communicator | None = None,
    window: Window | None = None,
    file: File | None = None,
) -> tuple[Component | None, Offer | Refusal]:
    """Query one component; a refusal leaves a verdict."""
    framework, name = found.framework, found.name
    component, answer = answer_of(found, by_name, communicator, window, file=file)
    if isinstance(answer, Refusal):
        record.add(framework, name, False, None, answer.reason)
    if by_name and isinstance(answer, Broken):
        problem = f"{framework} component {name}, asked for by parameter {framework}: {answer.reason}"
        raise ComponentError(problem) from answer.cause
    if isinstance(answer, Broken):
        record.tell_once(framework, f"{name} is left out: {answer.reason}")
    return component, answer


def ask(found: Found, by_name: bool, window: Window | None = None, file: File | None = None) -> Candidate | None:
    """Query one component; None, with a verdict, when it does not offer."""
    component, answer = query(found, by_name, window=window, file=file)
    return Candidate(component, answer) if component is not None and isinstance(answer, Offer) else None


def open_under(opener: Component, name: str) -> list[Any]:
    """Have a component serve through another one of its framework; see `Context.open`."""
    framework = opener.framework
    known = discovery.installed().get(framework, {})
    others = [other for other in known if other != opener.name]
    if name not in others:
        listing = ", ".join(others)
        hint = suggestion(name, others)
        raise ComponentError(f"{opener.name} can't open {framework} component {name!r}; known: {listing}.{hint}")
    names, excluding = named(framework)
    if name in names and not excluding:
        raise ComponentError(f"{name} is to serve through {opener.name}: leave it out of parameter {framework}")
    _, answer = answer_of(known[name], True, None, None, opener.name)
    if isinstance(answer, Refusal):
        record.add(framework, name, False, None, answer.reason)
        raise ComponentError(f"{framework} component {name}, which {opener.name} opens, can't serve: {answer.reason}")
    record.add(framework, name, True, answer.priority, f"serves through {opener.name}")
    return answer.modules


def by_reach(found: list[Found]) -> list[Found]:
    """The components that stay nearest first, as their declarations say; those that say nothing last."""
    places = dict.fromkeys(found, len(REACHES))
    for it in found:
        if not it.by_name and load_quietly(it):
            reach = load(it).component.capabilities.get("reach")
            places[it] = REACHES.index(reach) if reach in REACHES else len(REACHES)
    return sorted(found, key=places.__getitem__)


def admits(framework: str, reach: str) -> bool:
    """Whether the framework's parameter lets a component serve that declares this `reach`; see `Context.admits`."""
    if framework not in chosen_modules:
        return True
    names, excluding = named(framework)
    known = discovery.installed().get(framework, {})
    if names and not excluding:
        admitted = [known[name] for name in names]
    else:
        admitted = [it for name, it in known.items() if name not in names and not it.by_name]
    serving = {it.component for it in verdicts(framework) if it.chosen}
    # Those that serve first: the others need not even be imported.
    admitted.sort(key=lambda it: it.name not in serving)
    return any(load_quietly(it) and load(it).component.capabilities.get("reach") == reach for it in admitted)


def needless(found: Found, offers: list[Candidate]) -> str:
    """Why no peer needs the component, which is then not asked: its hot modules are not even imported."""
    rte = record.rte
    if found.by_name or rte is None or not rte.is_on_one_host or not load_quietly(found):
        return ""
    if load(found).component.capabilities.get("reach") != "network":
        return ""
    enough = ("host",) if rte.size > 1 else ("process", "host")
    certain = [it for it in offers if it.offer.certain and it.component.capabilities.get("reach") in enough]
    if not certain:
        return ""
    # Of several BTLs the one with the highest exclusivity has the peers.
    nearer = max(certain, key=lambda it: max(getattr(module, "exclusivity", 0) for module in it.offer.modules)).component.name
    return f"no peer needs it: every rank is on this host, where {nearer} serves; `--mca {found.framework}` can name it"


def select(framework: str) -> list[Any]:
    """Choose the framework's components; returns their modules, the highest priority first.

    Raises ComponentError when none can serve, with every component's reason.
    """
    if not chosen_modules:
        check_parameters()
        load_watchers()
    found, by_name = candidates(framework)
    offers: list[Candidate] = []
    for it in found if by_name else by_reach(found):
        reason = "" if by_name else needless(it, offers)
        if reason:
            record.add(framework, it.name, False, None, reason)
        elif candidate := ask(it, by_name):
            offers.append(candidate)
    offers.sort(key=lambda candidate: -candidate.offer.priority)
    if not offers:
        raise ComponentError(f"no {framework} component can serve:{record.table(framework)}")
    serving = offers[:1] if FRAMEWORKS[framework].takes == "one" else offers
    for candidate in serving:
        reason = "asked for by name" if by_name else "highest priority" if len(serving) < len(offers) else "can run"
        record.add(framework, candidate.component.name, True, candidate.offer.priority, reason)
    for candidate in offers[len(serving) :]:
        winner = serving[0]
        reason = f"{winner.component.name} has priority {winner.offer.priority}"
        record.add(framework, candidate.component.name, False, candidate.offer.priority, reason)
    chosen_modules[framework] = [module for candidate in serving for module in candidate.offer.modules]
    if framework == "rte":
        record.rte = chosen_modules[framework][0]
    return chosen_modules[framework]


def load_watchers() -> None:
    """Load the components of the `hook` framework that a person's settings speak of; others are not imported."""
    names, excluding = named("hook")
    for name, found in discovery.installed().get("hook", {}).items():
        if excluding and name in names:
            continue
        if name in names or any(setting.startswith(f"hook_{name}_") for setting in registry.read()):
            loaded = load(found)
            mismatch = interface_mismatch(found, loaded.component)
            if mismatch:
                raise ComponentError(mismatch)
            hooks.register(loaded.plugin)


def highest(framework: str, offers: list[Candidate]) -> Candidate:
    """The one with the highest priority; a verdict on each."""
    winner = max(offers, key=lambda candidate: candidate.offer.priority)
    for candidate in offers:
        chosen = candidate is winner
        reason = "highest priority" if chosen else f"{winner.component.name} has priority {winner.offer.priority}"
        record.add(framework, candidate.component.name, chosen, candidate.offer.priority, reason)
    return winner


def select_for_file(framework: str, file: File) -> Any:
    """Choose who serves one file in a framework, the highest priority, and add what became of each to `file.verdicts`.

    Raises ComponentError when nobody can, with every component's reason.
    """
    declare()
    found, by_name = candidates(framework)
    offers = [candidate for it in found if (candidate := ask(it, by_name, file=file))]
    if not offers:
        raise ComponentError(f"{file.path}: no {framework} component can serve the file:{record.table(framework)}")
    module = highest(framework, offers).offer.modules[0]
    file.verdicts += [(framework, it.component, it.priority, it.chosen, it.reason) for it in verdicts(framework)]
    return module


def forget() -> None:
    """Before another bring-up in the same process: nothing is chosen."""
    chosen_modules.clear()
    record.clear()
