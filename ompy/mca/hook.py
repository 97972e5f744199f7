"""The hooks that components implement, on pluggy.

Importing pluggy takes longer (`inspect`, `typing`) than all the rest of discovery and selection, and every rank would pay
for it at every start.  So a plugin whose implementations are plain, with the right names and arguments and no option,
and which nobody wraps, is called directly: that is what pluggy would do.  Everything else goes through pluggy's manager:
wrappers, ordering, plugins that are wrong (for its account of what is wrong), and the components of the `hook` framework.

A `hook` component watches: it has `ompy_component`, and may wrap `ompy_query` of all others (`wrapper=True`) or implement
`ompy_initialized`.  It is loaded when `--mca hook` names it, or when one of its parameters is set.

Clauses are numbered and named: the conformance kit (`ompy conformance --mca hook NAME`) says which one was broken.

AROUND QUERIES
   1 answers       What the wrapper returns is an Offer or a Refusal, the component's or one of its own; an offer's modules
                   stay modules of the framework.
   2 errors        What a component's query raises comes out as it is: it is for others to say whose it was.
   3 nested        A query may ask for others before it answers (`context.open`, `context.select`).
   4 lifetime      Components are asked again for every communicator, window and file.  Of context, answer and modules nothing
                   is kept once the answer is given.

AT THE END OF BRING-UP
   5 initialized   `ompy_initialized` comes once, on every rank, when messages can be sent, and returns.  What is collective
                   (a fence of the `rte` among it) is done by all ranks; what it sends it receives.
   6 messages      Afterwards the program's messages go as they do without a watcher.

THE PROGRAM'S OWN
   7 process       Signal handlers, `sys.excepthook`, `threading.excepthook`, standard streams, environment variables and the
                   working folder are as before.
   8 quiet         What it says it says on the error output: the other one is the program's.
   9 end           Nothing of it holds the process up at its end, nor changes its exit status.
"""

from __future__ import annotations

from ompy.mca.component import PROJECT, Component, Context, Offer, Refusal, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from pluggy import PluginManager

INTERFACE = 1
interface = INTERFACE


class Specification:
    """The hooks."""

    def ompy_component(self) -> Component:
        """The component's declaration.  Every plugin has this one."""
        raise NotImplementedError

    def ompy_query(self, context: Context) -> Offer | Refusal:
        """Make the component's modules, or say why not.  A plugin of the `hook` framework may wrap it."""
        raise NotImplementedError

    def ompy_initialized(self, instance: Any) -> None:
        """Bring-up is over: `instance` is the `ompy.runtime.instance.Instance` of this process."""


def arguments(function: Any) -> tuple[str, ...]:
    code = function.__code__
    return tuple(code.co_varnames[: code.co_argcount])


PLAIN_OPTIONS = getattr(hookimpl(lambda: None), f"{PROJECT}_impl")
ARGUMENTS = {"ompy_component": (), "ompy_query": ("context",)}


def plain(plugin: ModuleType, hook: str) -> bool:
    """Whether calling the plugin's function is all that pluggy would do."""
    function = getattr(plugin, hook, None)
    return getattr(function, f"{PROJECT}_impl", None) == PLAIN_OPTIONS and arguments(function) == ARGUMENTS[hook]


class Hooks:
    """Calls the hooks of the plugins of this process."""

    def __init__(self) -> None:
        self.manager: PluginManager | None = None

    def pluggy(self) -> PluginManager:
        """The plugin manager, made when it is first needed."""
        if self.manager is None:
            import pluggy

            mark = pluggy.HookspecMarker(PROJECT)
            once = {"ompy_component", "ompy_query"}
            for name in ("ompy_component", "ompy_query", "ompy_initialized"):
                mark(firstresult=name in once)(getattr(Specification, name))
            self.manager = pluggy.PluginManager(PROJECT)
            self.manager.add_hookspecs(Specification)
        return self.manager

    def register(self, plugin: ModuleType) -> None:
        """Hand a plugin to pluggy; raises its PluginValidationError for one that is wrong."""
        manager = self.pluggy()
        if not manager.is_registered(plugin):
            manager.register(plugin)
            manager.check_pending()

    def component(self, plugin: ModuleType) -> Component:
        """The plugin's declaration."""
        component: Component
        if plain(plugin, "ompy_component"):
            component = plugin.ompy_component()
        else:
            component = self.call(plugin, "ompy_component", {})
        return component

    def query(self, plugin: ModuleType, context: Context) -> Offer | Refusal:
        """The plugin's answer."""
        if self.manager is None and plain(plugin, "ompy_query"):
            answer = plugin.ompy_query(context)
        else:
            answer = self.call(plugin, "ompy_query", {"context": context})
        if not isinstance(answer, Offer | Refusal):
            raise TypeError(f"ompy_query of {plugin.__name__} must return an Offer or a Refusal, not {answer!r}")
        return answer

    def call(self, plugin: ModuleType, hook: str, given: dict[str, Any]) -> Any:
        """Through pluggy: of the plugins that implement the hook this one alone, with whoever wraps it."""
        self.register(plugin)
        manager = self.pluggy()
        others = [
            implementation.plugin
            for implementation in getattr(manager.hook, hook).get_hookimpls()
            if implementation.plugin is not plugin and not (implementation.wrapper or implementation.hookwrapper)
        ]
        return manager.subset_hook_caller(hook, others)(**given)

    def announce(self, hook: str, **given: Any) -> None:
        """Call a hook of every plugin that was registered; of none, when pluggy was never needed."""
        if self.manager is not None:
            getattr(self.manager.hook, hook)(**given)


hooks = Hooks()
