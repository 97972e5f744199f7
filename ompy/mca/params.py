"""Parameters: what can be set, to what, by whom it was.

A value comes from the strongest source that names it.  Weakest first: the default, the system file
(`<prefix>/etc/ompy-mca-params.conf`), the user's (`~/.ompy/mca-params.conf`), `--tune` files, the environment
(`OMPY_MCA_<name>`), `--mca <name> <value>`, and `Registry.set` at run time.  The files hold lines `name = value`; `#`
begins a comment.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG

from ompy.mca.errors import ParameterError, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

PREFIX = "OMPY_MCA_"
# Those that MPI has among the arguments of `mpiexec`, and the info keys of Spawn (MPI-4.1, 11.5, 11.8.4 and 11.4.3).
STARTUP = ("mpi_initial_errhandler", "mpi_memory_alloc_kinds")
TUNE = "OMPY_TUNE"  # files given with --tune, separated by commas
COMMAND_LINE = "OMPY_COMMAND_LINE_MCA"  # which of the OMPY_MCA_ variables were given with --mca, separated by commas

LONGEST_FILE = 1 << 20  # bytes

BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
SUFFIXES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Parameter:
    """Something that can be set.

    Parameters:
        name: short name; `<framework>_<component>_` goes before it.
        type: int, float, bool or str.
        default: of that type.
        help: a line or two for people.
        unit: "bytes", "ms", ..., of a number that has one; numbers of bytes also take the suffixes k, m, g, t (powers of 1024).
        range: the smallest and the largest value that a number may have.
        also: numbers outside of the range with a meaning of their own, which `help` tells (-1: chosen by itself).
        level: 1 to 3 for users, 4 to 6 for tuners, 7 to 9 for developers.
        choices: the only values taken, or None.
        scope: "readonly" when it is read at the start only; "local" or "all" when it may be set at run time, on any process
            or on all of them alike.
    """

    __slots__ = ("also", "choices", "default", "help", "level", "name", "range", "scope", "type", "unit")

    def __init__(
        self,
        name: str,
        type: type[int | float | bool | str],
        default: Any,
        *,
        help: str,
        unit: str = "",
        range: tuple[float, float] | None = None,
        also: Iterable[float] = (),
        level: int = 5,
        choices: Iterable[Any] | None = None,
        scope: str = "readonly",
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.help = help
        self.unit = unit
        self.range = range
        self.also = tuple(also)
        self.level = level
        self.choices = None if choices is None else tuple(choices)
        self.scope = scope

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices is not None:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        if self.type is bool:
            return "a truth value (1, true, yes, on, 0, false, no, off)"
        if self.type is str:
            return "a string"
        words = "an integer" if self.type is int else "a number"
        if self.unit:
            words += f" of {self.unit}"
        if self.range is not None:
            words += f" from {self.written(self.range[0])} to {self.written(self.range[1])}"
        words += "".join(f" or {self.written(value)}" for value in self.also)
        return words + ", with or without a suffix k, m, g or t" if self.unit == "bytes" else words

    def written(self, value: float) -> str:
        """A number as people write it: 64k."""
        if self.unit == "bytes":
            for suffix, factor in reversed(SUFFIXES.items()):
                if value and value % factor == 0:
                    return f"{value // factor}{suffix}"
        return f"{value:g}" if self.type is float else str(value)

    def parse(self, text: str) -> Any:
        """The value that the text stands for; ValueError when it stands for none."""
        value: Any
        word = text.strip()
        if self.type is bool:
            if word.lower() not in BOOLEANS:
                raise ValueError(text)
            value = BOOLEANS[word.lower()]
        elif self.type is str:
            value = word
        elif self.unit == "bytes" and word[-1:].lower() in SUFFIXES:
            value = self.type(self.type(word[:-1]) * SUFFIXES[word[-1].lower()])
        else:
            value = int(word, 0) if self.type is int else float(word)
        if self.choices is not None and value not in self.choices:
            raise ValueError(text)
        if self.range is not None and not self.range[0] <= value <= self.range[1] and value not in self.also:
            raise ValueError(text)
        return value


class Entry:
    """A registered parameter, its value, and where the value came from."""

    __slots__ = ("changed", "component", "framework", "full_name", "parameter", "source", "value")

    def __init__(self, framework: str, component: str, parameter: Parameter) -> None:
        self.framework = framework
        self.component = component
        self.parameter = parameter
        self.full_name = "_".join(part for part in (framework, component, parameter.name) if part)
        self.value: Any = parameter.default
        self.source = "default"
        self.changed: Callable[[], object] | None = None


class Setting:
    """What a source says of a name: text that is not parsed before its parameter is registered."""

    __slots__ = ("source", "text")

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source


def files(environment: Mapping[str, str]) -> list[tuple[str, bool]]:
    """The parameter files, weakest first, and whether each one must exist."""
    home = environment.get("HOME") or os.path.expanduser("~")
    found = [(f"{sys.prefix}/etc/ompy-mca-params.conf", False), (f"{home}/.ompy/mca-params.conf", False)]
    return found + [(path, True) for path in environment.get(TUNE, "").split(",") if path]


def read_file(path: str, required: bool = False) -> dict[str, Setting]:
    """The settings of one parameter file; ParameterError names the file and line that can't be read."""
    try:
        found = os.stat(path)
        if not S_ISREG(found.st_mode):
            raise ParameterError(f"parameter file {path} is no regular file, which every rank could read")
        if found.st_size > LONGEST_FILE:
            raise ParameterError(f"parameter file {path} has {found.st_size} bytes, {LONGEST_FILE} at most are read")
        with open(path, encoding="utf-8-sig") as stream:
            lines = stream.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ParameterError(f"parameter file {path}: no such file (named by --tune or {TUNE})") from None
        return {}
    except (OSError, ValueError) as error:
        raise ParameterError(f"parameter file {path} can't be read: {error}") from error
    settings = {}
    for number, line in enumerate(lines, 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        name, equals, value = content.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ParameterError(f"{path}:{number}: expected `name = value`, found {line.strip()!r}")
        settings[name] = Setting(value.strip(), f"{path}:{number}")
    return settings


def command_line(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The environment by which a launcher hands on what was given with `--mca name value`."""
    environment = {PREFIX + name: value for name, value in pairs}
    environment[COMMAND_LINE] = ",".join(name[len(PREFIX) :] for name in environment)
    return environment


class Registry:
    """The parameters of this process.

    Sources are read once, when a value is first asked for; a value is parsed when its parameter is registered.

    Attributes:
        generation: another number whenever a value may have changed: what was worked out from values holds as long as it.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.entries: dict[str, Entry] = {}
        self.environment = environment
        self.settings: dict[str, Setting] | None = None
        self.generation = 0

    def read(self) -> dict[str, Setting]:
        """What the sources say, the strongest for each name."""
        if self.settings is None:
            environment = os.environ if self.environment is None else self.environment
            settings: dict[str, Setting] = {}
            for path, required in files(environment):
                settings |= read_file(path, required)
            given = [name for name in environment.get(COMMAND_LINE, "").split(",") if name]
            for variable, text in environment.items():
                if variable.startswith(PREFIX):
                    name = variable[len(PREFIX) :]
                    settings[name] = Setting(text, f"--mca {name}" if name in given else f"environment {variable}")
            self.settings = settings
        return self.settings

    def register(self, framework: str, component: str, parameter: Parameter) -> Entry:
        """Make a parameter known, and give it its value; the same one again changes nothing."""
        entry = Entry(framework, component, parameter)
        known = self.entries.get(entry.full_name)
        if known is not None:
            return known
        setting = self.read().get(entry.full_name)
        if setting is not None:
            entry.value = self.parse(entry, setting.text, setting.source)
            entry.source = setting.source
        self.entries[entry.full_name] = entry
        return entry

    def parse(self, entry: Entry, text: str, source: str) -> Any:
        try:
            return entry.parameter.parse(text)
        except ValueError:
            problem = f"parameter {entry.full_name} ({source}): {text!r} is not {entry.parameter.expected}"
            choices = [str(choice) for choice in entry.parameter.choices or ()]
            raise ParameterError(problem + "." + suggestion(text, choices)) from None

    def lookup(self, name: str) -> Entry:
        """The entry of that full name; ParameterError with the nearest known one."""
        try:
            return self.entries[name]
        except KeyError:
            raise ParameterError(f"no parameter is called {name}.{suggestion(name, list(self.entries))}") from None

    def value(self, name: str) -> Any:
        """The value of the parameter of that full name."""
        return self.lookup(name).value

    def set(self, name: str, value: object) -> None:
        """Set at run time; the value may be text, as in a file."""
        entry = self.lookup(name)
        entry.value = self.parse(entry, str(value), "run time")
        entry.source = "run time"
        self.generation += 1
        if entry.changed is not None:
            entry.changed()

    def watch(self, name: str, changed: Callable[[], object]) -> None:
        """Call `changed` whenever the parameter is set at run time; the latest to ask is called."""
        self.lookup(name).changed = changed

    def unknown(self) -> dict[str, Setting]:
        """What the sources set and nobody has registered."""
        return {name: setting for name, setting in self.read().items() if name not in self.entries}


registry = Registry()


def use(pairs: Iterable[tuple[str, str]], tune: Iterable[str] = ()) -> None:
    """Put what a command of ours was given with `--mca` and `--tune` into this process's environment, before it is read."""
    paths = [path for path in (os.environ.get(TUNE, ""), *tune) if path]
    if paths:
        os.environ[TUNE] = ",".join(paths)
    environment = command_line(pairs)
    given = os.environ.get(COMMAND_LINE, "")
    os.environ |= environment | {COMMAND_LINE: ",".join(part for part in (given, environment[COMMAND_LINE]) if part)}
    registry.settings = None
