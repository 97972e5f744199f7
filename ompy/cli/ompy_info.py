"""`ompy_info`: what is installed, what can be set, to what it is set, and by whom."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ompy.cli.tables import show
from ompy.core.errors import MPIError
from ompy.mca import discovery
from ompy.mca.counters import PROGRESS
from ompy.mca.errors import suggestion
from ompy.mca.frameworks import CORE, FRAMEWORKS, declare
from ompy.mca.loading import check_parameters, interface_mismatch, load, loaded_components
from ompy.mca.params import registry, use

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ompy.mca.counters import Counter
    from ompy.mca.discovery import Found
    from ompy.mca.params import Entry

SECTIONS = sorted({section for section, _ in CORE})


class Component:
    """A component as it is shown: loaded, or why it could not be."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.version = found.version
        self.interface = ""
        self.summary = ""
        self.problem = ""
        try:
            component = load(found).component
            self.version = component.version
            self.summary = component.summary
            self.problem = interface_mismatch(found, component)
            self.interface = "" if self.problem else str(import_module(f"ompy.mca.{found.framework}").interface)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.problem = f"{type(error).__name__}: {error}"


def components(framework: str, name: str = "all") -> list[Component]:
    """The framework's components, or the one of that name."""
    known = discovery.installed().get(framework, {})
    if name != "all" and name not in known:
        listing = ", ".join(sorted(known)) or "none is installed"
        raise click.UsageError(f"no {framework} component is called {name}; known: {listing}.{suggestion(name, list(known))}")
    return [Component(known[key]) for key in sorted(known) if name in ("all", key)]


def frameworks(name: str) -> list[str]:
    """The frameworks and sections of the core that a name stands for."""
    known = [*FRAMEWORKS, *SECTIONS]
    if name == "all":
        return known
    if name not in known:
        raise click.UsageError(f"no framework is called {name}; known: {', '.join(known)}.{suggestion(name, known)}")
    return [name]


def entries(framework: str, name: str, level: int) -> list[Entry]:
    """The parameters of one component, or of the framework and all its components, up to a level."""
    loaded = {component.found.name for component in components(framework, name)} if framework in FRAMEWORKS else set()
    wanted = loaded if name != "all" else {*loaded, "", "base"}
    return [
        entry
        for entry in registry.entries.values()
        if entry.framework == framework and entry.component in wanted and entry.parameter.level <= level
    ]


def text(value: object) -> str:
    """A value as a parameter file would hold it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(words: object) -> str:
    return '"' + text(words).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def parsable_component(component: Component) -> list[str]:
    found = component.found
    start = f"mca:{found.framework}:{found.name}"
    lines = [
        f"{start}:version:{quoted('component:' + component.version)}",
        f"{start}:version:{quoted('interface:' + component.interface)}",
        f"{start}:distribution:{quoted(f'{found.distribution} {found.version}')}",
        f"{start}:summary:{quoted(component.summary)}",
    ]
    return [*lines, f"{start}:problem:{quoted(component.problem)}"] if component.problem else lines


def parsable_entry(entry: Entry) -> list[str]:
    parameter = entry.parameter
    start = f"mca:{entry.framework}:{entry.component or 'base'}:param:{entry.full_name}"
    return [
        f"{start}:value:{quoted(entry.value)}",
        f"{start}:source:{entry.source}",
        f"{start}:default:{quoted(parameter.default)}",
        f"{start}:level:{parameter.level}",
        f"{start}:type:{parameter.type.__name__}",
        f"{start}:unit:{parameter.unit}",
        f"{start}:choices:{','.join(text(choice) for choice in parameter.choices or ())}",
        f"{start}:help:{quoted(parameter.help)}",
    ]


def show_components(found: Iterable[Component]) -> None:
    rows = []
    for it in found:
        entry = it.found
        summary = f"can't be used: {it.problem}" if it.problem else it.summary
        rows.append((entry.framework, entry.name, it.version, it.interface, f"{entry.distribution} {entry.version}", summary))
    show("", ("framework", "component", "version", "interface", "distribution", "summary"), rows)


def show_entries(title: str, found: Iterable[Entry]) -> None:
    rows = []
    for entry in found:
        parameter = entry.parameter
        value = f"{text(entry.value)} {parameter.unit}".strip()
        words = parameter.help
        if parameter.choices:
            words += f" (one of {', '.join(text(choice) for choice in parameter.choices)})"
        rows.append((entry.full_name, value, entry.source, str(parameter.level), words))
    show(title, ("parameter", "value", "source", "level", "help"), rows)


def counters() -> list[tuple[str, Counter]]:
    """What is counted, by full name: by the core, and by every installed component that says so."""
    found = [(f"progress_{counter.name}", counter) for counter in PROGRESS]
    for framework in FRAMEWORKS:
        for name in discovery.installed().get(framework, {}):
            loaded = loaded_components.get((framework, name))
            for counter in loaded.component.counters if loaded else ():
                found.append((f"{framework}_{name}_{counter.name.replace(' ', '_')}", counter))
    return found


def show_counters(parsable: bool) -> None:
    for framework in FRAMEWORKS:
        components(framework)
    if parsable:
        for name, counter in counters():
            start = f"mca:pvar:{name}"
            click.echo(f"{start}:class:{counter.kind}\n{start}:unit:{counter.unit}\n{start}:help:{quoted(counter.help)}")
        return
    rows = [(name, counter.kind, counter.unit, counter.help) for name, counter in counters()]
    show("", ("performance variable", "class", "unit", "help"), rows)


def configuration() -> dict[str, str]:
    """What this ompy is and runs on."""
    import platform
    import sysconfig

    import ompy

    return {
        "ompy:version": ompy.__version__,
        "ompy:path": str(ompy.__path__[0]),
        "python:version": platform.python_version(),
        "python:path": sys.executable,
        "build:compiler": str(sysconfig.get_config_var("CC") or ""),
        "build:flags": str(sysconfig.get_config_var("CFLAGS") or ""),
        "host:name": platform.node(),
        "host:system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def show_configuration(parsable: bool, full: bool) -> None:
    for key, value in configuration().items():
        if parsable:
            click.echo(f"{key}:{value}")
        elif full or not key.startswith("build:"):
            click.echo(f"{key.replace(':', ' '):>16}: {value}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-V", "--version", "version", is_flag=True, help="Print the version.")
@click.option("-a", "--all", "everything", is_flag=True, help="Everything: configuration, components, all parameters.")
@click.option("-c", "--config", "config", is_flag=True, help="How this ompy was built and where it is.")
@click.option("--param", "--params", "wanted", nargs=2, multiple=True, metavar="FRAMEWORK COMPONENT",
              help="The parameters of a component, or of `all` components of a framework, or of `all` frameworks.")  # fmt: skip
@click.option("--pvars", "pvars", is_flag=True, help="What components count: the performance variables of `ompy.tool`.")
@click.option("-l", "--level", type=click.IntRange(1, 9), help="Up to this level: 1-3 user, 4-6 tuner, 7-9 developer.")
@click.option("--effective", is_flag=True, help="Only the parameters whose value is not the default, and who set them.")
@click.option("--parsable", "--parseable", is_flag=True, help="Lines of fields between colons, for programs.")
@click.option("--mca", "mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As the launcher would be given it.")
@click.option("--tune", "tune", multiple=True, metavar="FILE", help="As the launcher would be given it.")
def command(
    version: bool,
    everything: bool,
    config: bool,
    wanted: tuple[tuple[str, str], ...],
    pvars: bool,
    level: int | None,
    effective: bool,
    parsable: bool,
    mca: tuple[tuple[str, str], ...],
    tune: tuple[str, ...],
) -> None:
    """Show what is installed, what can be set, to what it is set, and by whom.

    Without options: the version, the frameworks and their components.
    """
    if version:
        import ompy

        click.echo(f"ompy {ompy.__version__}")
        return
    use(mca, tune)
    declare()
    check_parameters()
    if effective or everything:
        wanted = (*wanted, ("all", "all"))
        level = level or 9
    if pvars:
        show_counters(parsable)
        return
    if config or everything or not wanted:
        show_configuration(parsable, config or everything)
    if everything or not (wanted or config):
        installed = [component for framework in FRAMEWORKS for component in components(framework)]
        if parsable:
            click.echo("\n".join(line for component in installed for line in parsable_component(component)))
        else:
            click.echo()
            show_components(installed)
    for framework, name in wanted:
        for section in frameworks(framework):
            found = entries(section, name, level or 1)
            if effective:
                found = [entry for entry in found if entry.source != "default"]
            if parsable:
                shown = components(section, name) if section in FRAMEWORKS and not (effective or everything) else []
                lines = [line for it in shown for line in parsable_component(it)]
                lines += [line for entry in found for line in parsable_entry(entry)]
                click.echo("".join(line + "\n" for line in lines), nl=False)
            elif found:
                show_entries(f"\n{section}", found)
    if wanted and not effective and not parsable and not everything and level is None:
        click.echo("\nOnly level 1 is shown; `--level 9` shows all.")


def main() -> None:
    """The console command: exit status 0, or 2 after saying what is wrong with the arguments or the settings."""
    try:
        command(prog_name="ompy_info", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except MPIError as error:
        click.echo(f"ompy_info: {error}", err=True)
        sys.exit(2)
