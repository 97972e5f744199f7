"""Import components, know their parameters, and refuse those that were built for another contract."""

from __future__ import annotations

# The module without underscore costs an enum, which nothing else at start-up needs.
import _signal as signals  # type: ignore[import-not-found]
import sys

from ompy.mca import discovery
from ompy.mca.component import PROJECT, Component
from ompy.mca.errors import ComponentError, ParameterError, suggestion
from ompy.mca.frameworks import FRAMEWORKS, OFFERED, declare
from ompy.mca.hook import hooks
from ompy.mca.lists import named
from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import TypeVar

    from ompy.mca.component import Offer
    from ompy.mca.discovery import Found
    from ompy.mca.params import Setting

    Result = TypeVar("Result")


def import_module(name: str) -> ModuleType:
    """As importlib's, which costs a rank the import of two modules that it has no other use for."""
    __import__(name)
    return sys.modules[name]


class Overdue(BaseException):
    """A component's code took too long.  No `Exception`, so that the component does not take it for one of its own."""


def limited(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a component's code; Overdue when it has not returned after `mpi_component_timeout`.

    Only the main thread can be interrupted: in others it may take for ever.
    """
    declare()
    seconds: float = registry.value("mpi_component_timeout")

    def ring(number: int, frame: object) -> None:
        raise Overdue(f"it has not returned after {seconds:g} s (parameter mpi_component_timeout)")

    try:
        before = signals.signal(signals.SIGALRM, ring)
    except ValueError:
        return function(*arguments)
    remaining = signals.setitimer(signals.ITIMER_REAL, seconds, 1)
    try:
        return function(*arguments)
    finally:
        signals.setitimer(signals.ITIMER_REAL, *remaining)
        signals.signal(signals.SIGALRM, signals.SIG_DFL if before is None else before)


class Loaded:
    """An imported component: its plugin module and its declaration."""

    __slots__ = ("component", "plugin")

    def __init__(self, plugin: ModuleType, component: Component) -> None:
        self.plugin = plugin
        self.component = component


loaded_components: dict[tuple[str, str], Loaded] = {}

# Modules whose import was broken off, and the words: nobody waits for one twice.
overdue: dict[str, str] = {}


def load(found: Found) -> Loaded:
    """Import a component's plugin module and register its parameters, once.  Raises whatever the module raises."""
    key = found.framework, found.name
    loaded = loaded_components.get(key)
    if loaded is None:
        if found.module in overdue:
            raise Overdue(overdue[found.module])
        try:
            plugin = limited(import_module, found.module)
        except Overdue as error:
            overdue[found.module] = str(error)
            raise
        except (ImportError, ValueError) as error:
            if was_compiled_against_another(error):
                raise ComponentError(built_for_another(found, str(error))) from None
            raise
        component = hooks.component(plugin)
        if not isinstance(component, Component) or (component.framework, component.name) != key:
            raise ComponentError(
                f"{found.distribution} {found.version} names {found.module} as {found.framework} component {found.name}, "
                f"but its ompy_component() returned {component!r}"
            )
        for parameter in component.parameters:
            registry.register(found.framework, found.name, parameter)
        loaded = loaded_components[key] = Loaded(plugin, component)
    return loaded


def layout() -> int:
    """That of this ompy's classes (`ompy/mca/layout.pxd`)."""
    return int(import_module("ompy.mca.layout").layout)


def was_compiled_against_another(error: BaseException) -> bool:
    """Does Cython say so, at the import of a module that takes functions or classes from ours?"""
    words = str(error)
    return "does not export expected C" in words or "size changed, may indicate binary incompatibility" in words


def built_for_another(found: Found, reason: str) -> str:
    return (
        f"{found.framework} component {found.name} of {found.distribution} {found.version} was compiled against another ompy, "
        f"{reason}: build it again for this one, pip install --no-build-isolation"
    )


def interface_mismatch(found: Found, component: Component) -> str:
    """Why the component's interface number rules it out; empty when it does not.

    Nothing of the component's but its module's top level has run when this is asked.  What comes in one distribution with the
    contracts was built with them: where such a component refuses, its compiled modules are not even loaded.
    """
    if found.distribution == PROJECT:
        return ""
    ours = int(import_module(f"ompy.mca.{found.framework}").interface)
    theirs = component.interface
    if isinstance(theirs, str):
        try:
            compiled = import_module(theirs)
        except (ImportError, ValueError) as error:
            if was_compiled_against_another(error):
                return built_for_another(found, str(error))
            raise
        theirs = int(compiled.interface)
        # Of a class that has another layout than the component was built with, the first call ends the process.
        if theirs == ours and getattr(compiled, "layout", layout()) != layout():
            return built_for_another(found, "whose classes lie otherwise in memory")
    if theirs == ours:
        return ""
    remedy = f"rebuild or upgrade {found.distribution}" if theirs < ours else "upgrade ompy"
    return (
        f"{found.framework} component {found.name} of {found.distribution} {found.version} was built for interface "
        f"{theirs} of the {found.framework} framework, this ompy has interface {ours}: {remedy}"
    )


def offer_problem(framework: str, offer: Offer) -> str:
    """Why the offer can't be taken: what it holds are no modules of the framework, or lack what each must have."""
    if not isinstance(offer.priority, int | float):
        return f"the priority of its offer is of type {type(offer.priority).__name__}, no number"
    if framework not in OFFERED:
        return ""
    name, overrides = OFFERED[framework]
    base = getattr(import_module(f"ompy.mca.{framework}"), name)
    if not offer.modules:
        return "its offer holds no module: a component that can't serve returns a Refusal, which says why"
    for module in offer.modules:
        kind = type(module)
        if not isinstance(module, base):
            return f"its offer holds a module of type {kind.__name__}, which is no ompy.mca.{framework}.{name}"
        if missing := [method for method in overrides if getattr(kind, method) is getattr(base, method)]:
            return f"its {kind.__name__} does not override {', '.join(missing)}"
    return ""


def owners(name: str) -> list[Found]:
    """The installed components that a parameter of that full name may belong to."""
    framework = name.partition("_")[0]
    return [
        found for found in discovery.installed().get(framework, {}).values() if name.startswith(f"{framework}_{found.name}_")
    ]


def load_quietly(found: Found) -> bool:
    """Whether the component could be loaded; why not is for its verdict to tell, when it is asked to serve."""
    try:
        load(found)
    except (ParameterError, KeyboardInterrupt):
        raise
    except BaseException:
        return False
    return True


def check_parameters() -> None:
    """Raise ParameterError for a name that a source sets and nothing installed knows, and for a value that is not taken.

    A component that is not loaded yet is loaded only if a name may be its own.  Lists of components are checked too:
    ComponentError.
    """
    declare()
    for name, setting in registry.unknown().items():
        may_be = owners(name)
        if not all(load_quietly(found) for found in may_be) or name in registry.entries:
            continue
        raise ParameterError(unknown_name(name, setting))
    for framework in FRAMEWORKS:
        if framework in registry.read():
            named(framework)


def unknown_name(name: str, setting: Setting) -> str:
    framework = name.partition("_")[0]
    near = {framework} if framework in FRAMEWORKS else set(FRAMEWORKS)
    for kind in near:
        for found in discovery.installed().get(kind, {}).values():
            load_quietly(found)
    where = f"`ompy_info --param {framework} all --level 9`" if framework in FRAMEWORKS else "`ompy_info --all`"
    hint = suggestion(name, list(registry.entries))
    return f"{setting.source}: no parameter is called {name}.{hint} {where} lists those that there are."
