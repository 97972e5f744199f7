"""What a component says of itself, what it is asked, and what it may answer.

A component's distribution names, in the entry-point group `ompy.<framework>`, a module that holds two hooks:

    from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl

    COMPONENT = Component(framework="btl", name="pigeon", version="1.0", interface=1, summary="bytes by carrier pigeon",
                          parameters=(Parameter("birds", int, 4, help="birds kept for each peer"),))

    @hookimpl
    def ompy_component() -> Component:
        return COMPONENT

    @hookimpl
    def ompy_query(context: Context) -> Offer | Refusal:
        from pigeons.module import PigeonBtl        # what costs time to import, only here
        return Offer(modules=[PigeonBtl(context.value("birds"))], priority=10)
"""

from __future__ import annotations

from ompy.mca.counters import Counter
from ompy.mca.params import Parameter, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from ompy.core.communicator import Communicator
    from ompy.core.file import File
    from ompy.core.window import Window
    from ompy.mca.rte import Rte

    Hook = TypeVar("Hook", bound=Callable[..., object])

__all__ = ["Component", "Context", "Counter", "Offer", "Parameter", "Refusal", "hookimpl"]

PROJECT = "ompy"


def hookimpl(function: Hook) -> Hook:
    """Mark a hook's implementation, exactly as `pluggy.HookimplMarker("ompy")` marks it without options.

    Components import this one so that a rank whose plugins are all of the plain kind needs no pluggy, whose import
    (`inspect`, `typing`) costs more than all the rest of discovery and selection; see `ompy.mca.hook`.
    """
    function.__dict__[PROJECT + "_impl"] = {
        "wrapper": False,
        "hookwrapper": False,
        "optionalhook": False,
        "tryfirst": False,
        "trylast": False,
        "specname": None,
    }
    return function


class Component:
    """A component's declaration.

    Parameters:
        framework: `btl`, `pml`, `coll`, ...
        name: as in `--mca btl name`; the same as its entry point's.
        version: the component's own.
        interface: the `INTERFACE` of the framework's contract that it was built with; of a compiled component, the name
            of its compiled module, which holds that number as `interface` (`interface = INTERFACE` beside its cimports),
            and as `layout` what it was compiled against (`layout = LAYOUT`, of `ompy.mca.layout`).
        summary: one line for people.
        parameters: what can be set, each as `<framework>_<component>_<name>`.
        capabilities: limits and abilities as data; docs/developers/conformance.md lists those that the conformance kit asks
            about.  `reach` is known to selection: "process", "host" or "network"; a component with the last, unless
            named, is asked only when a peer is on another host or none has "host".
        counters: what the modules' `statistics()` return; what is not described here is shown without words.
    """

    __slots__ = ("capabilities", "counters", "framework", "interface", "name", "parameters", "summary", "version")

    def __init__(
        self,
        *,
        framework: str,
        name: str,
        version: str,
        interface: int | str,
        summary: str,
        parameters: Sequence[Parameter] = (),
        capabilities: Mapping[str, object] | None = None,
        counters: Sequence[Counter] = (),
    ) -> None:
        self.framework = framework
        self.name = name
        self.version = version
        self.interface = interface
        self.summary = summary
        self.parameters = tuple(parameters)
        self.capabilities = dict(capabilities or {})
        self.counters = tuple(counters)

    def __repr__(self) -> str:
        return f"<component {self.framework}/{self.name} {self.version}>"


class Offer:
    """A component can serve.

    Parameters:
        modules: the framework's objects; more than one where a framework takes several (a BTL for each interface).
        priority: the highest wins where one is chosen.
        functions: of a `coll` component, the names that it serves (`bcast`: all forms; `ibcast`, `bcast_init`: that
            form alone); None for all.
        again: of a `coll` component: `again(communicator)` makes the module for another communicator of the first one's kind:
            as many ranks on each side, a topology or none, as much known of their hosts (`Communicator.placement`).
            Of an `osc` component: `again(window)`, for a window of the first one's flavor over a communicator of such a kind;
            its answer may be a Refusal, the same on every rank.
            The priority would be the same as long as no parameter is set, and the component is not asked.  None where that
            can't be promised.
        certain: False where a transport may turn out not to reach a peer that its `reach` includes: those that reach
            farther are then opened too.
    """

    __slots__ = ("again", "certain", "functions", "modules", "priority")

    def __init__(
        self,
        modules: Sequence[Any],
        priority: int = 0,
        functions: Sequence[str] | None = None,
        certain: bool = True,
        again: Callable[[Any], Any] | None = None,
    ) -> None:
        self.again = again
        self.certain = certain
        self.modules = list(modules)
        self.priority = priority
        self.functions = None if functions is None else tuple(functions)


class Refusal:
    """A component can't serve, and why.

    Parameters:
        reason: a sentence for people, with the remedy where there is one.
        lasting: of a `coll` or `osc` component: it holds for every communicator or window of this one's kind, as `Offer.again`
            has it, as long as no parameter is set.
    """

    __slots__ = ("lasting", "reason")

    def __init__(self, reason: str, lasting: bool = False) -> None:
        self.reason = reason
        self.lasting = lasting


class Context:
    """What a component may ask while it is queried.

    Attributes:
        component: the component's own declaration.
        rte: this process's place in its job; None while the `rte` framework itself is chosen.
        communicator: the communicator that a `coll` component is asked to serve, else None.
        window: the window that an `osc` component is asked to serve, else None.
        file: the file that a component of `io` or below it is asked to serve, else None.
        select: `select(framework)` chooses the components of a framework that stands below this one alone, as `mtl` does
            below pml/cm, and returns their modules; raises ComponentError when none can serve.
        opener: the name of the component of the same framework that has opened this one, to serve through it; mostly "".
        by_name: the framework's parameter names the component: it is wanted, whatever else would do.
    """

    __slots__ = ("by_name", "chosen_modules", "communicator", "component", "file", "opener", "rte", "select", "window")

    def __init__(
        self,
        component: Component,
        rte: Rte | None = None,
        communicator: Communicator | None = None,
        chosen_modules: Mapping[str, Sequence[Any]] | None = None,
        window: Window | None = None,
        select: Callable[[str], list[Any]] | None = None,
        opener: str = "",
        file: File | None = None,
        by_name: bool = False,
    ) -> None:
        self.component = component
        self.by_name = by_name
        self.rte = rte
        self.communicator = communicator
        self.window = window
        self.file = file
        self.chosen_modules = chosen_modules or {}
        self.select = select or self.chosen
        self.opener = opener

    def value(self, name: str) -> Any:
        """The value of the component's own parameter of that short name."""
        return registry.value(f"{self.component.framework}_{self.component.name}_{name}")

    def chosen(self, framework: str) -> list[Any]:
        """The modules chosen so far in another framework, best first: how `bml` finds the BTLs, and a PML its BML."""
        return list(self.chosen_modules.get(framework, ()))

    def admits(self, framework: str, reach: str) -> bool:
        """Whether another framework's parameter lets a component serve that declares this `reach`.

        The same on every rank that has the same parameters, whichever components could be opened there; true of a framework
        that nobody has chosen in, as `btl` is below pml/cm.
        """
        from ompy.mca.selection import admits

        return admits(framework, reach)

    def open(self, name: str) -> list[Any]:
        """The modules of another component of the same framework, which then serves through this one.

        So a component builds on another that it does not import.  Raises ComponentError, with the reason, when there is
        none of that name, when it can't serve, and when the framework's parameter names it too: it would be open twice.
        """
        from ompy.mca.selection import open_under

        return open_under(self.component, name)

    def inform(self, line: str, private: bool = False) -> None:
        """One line for people, from one process a host; `<framework>_base_verbose` 1 has all tell, -1 none.

        Parameters:
            private: the others of the host have no reason to say the same, so this process tells whichever it is.
        """
        framework = self.component.framework
        verbosity = registry.value(f"{framework}_base_verbose")
        if verbosity >= 1 or (verbosity == 0 and (private or self.rte is None or self.rte.local_rank == 0)):
            import sys

            print(f"ompy: {framework}/{self.component.name}: {line}", file=sys.stderr, flush=True)
