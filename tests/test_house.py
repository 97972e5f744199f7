"""The rules of the house: who may import whom, and what every package holds."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
# Distributions of their own that lie in the tree, and the roots of ompy's.
APART = [path.parent for path in sorted(TOP.glob("plugins/*/pyproject.toml"))]
ROOTS = [*APART, *(TOP / name for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["where"] if name != ".")]

# What each part of `ompy` may import of `ompy`; a part may always import itself, and `ompy.core.errors` is everybody's.
# An arrow of the architecture runs down, never up.
MAY_IMPORT = {
    "ompy.core": set(),
    "ompy.mca": {"ompy.core"},
    "ompy.runtime": {"ompy.core", "ompy.mca"},
    "ompy.mpi": {"ompy.core", "ompy.mca", "ompy.runtime"},
    "ompy.MPI": {"ompy.core", "ompy.mpi"},
    "ompy.testing": {"ompy.core", "ompy.mca", "ompy.runtime", "ompy.mpi", "ompy.MPI", "ompy.compat"},
    "ompy.cli": {
        "ompy.core",
        "ompy.mca",
        "ompy.runtime",
        "ompy.mpi",
        "ompy.MPI",
        "ompy.compat",
        "ompy.scaffold",
        "ompy.testing",
    },
    "ompy.__main__": {"ompy.cli"},
    "ompy.scaffold": {"ompy.mca"},
    "ompy.tool": {"ompy.core", "ompy.mca", "ompy.mpi"},
    "ompy.compat": {"ompy.core", "ompy.mca", "ompy.runtime", "ompy.mpi", "ompy.MPI"},
}
# Arrows that run up, each with its reason.
EXCEPTIONS = {
    ("ompy.core.schedule", "ompy.mca.pml"): "a schedule's steps are messages, issued through the PML's contract",
    ("ompy.mpi.handle", "ompy.MPI"): "a predefined handle is pickled as its name in the public face",
}
CONTRACTS_OF_COMPONENTS = {"ompy.core", "ompy.mca"}
# Simulated machines, which know no MPI: components run on them as on hardware, through what these packages declare.
MACHINE_MODELS = {"ompy_puma", "ompy_raw"}
# Programs: they stand on top of MPI, as anybody's do, and are shipped because they are about a component.
PROGRAMS = {"ompy_raw_experiments", "ompy_tune"}
# What a C compiler gets as it is: programs that are no part of ompy.
WRITTEN_IN_C = {TOP / "tools" / "bench" / "bare.c"}
CYTHON_IMPORT = r"from\s+(\.*[\w.]+)\s+c?import\s+(?:\(([^)]*)\)|([^\n(#]*))|c?import\s+([\w.]+)"
# What an endpoint's engine and its requests do to each other is one protocol.
CIRCLES = {frozenset({"ompy_mtl_ofi.engine", "ompy_mtl_ofi.requests"})}


def sources(folder: Path, *suffixes: str) -> list[Path]:
    return sorted(path for suffix in suffixes for path in folder.rglob(f"*{suffix}"))


def module_name(path: Path) -> str:
    for root in (*ROOTS, TOP):
        if path.is_relative_to(root):
            parts = path.relative_to(root).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise ValueError(path)


def imports_of_python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import; write the whole name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of_cython(path: Path, begins: str = r"^[ \t]*") -> Iterator[str]:
    for package, listed, rest, module in re.findall(f"{begins}(?:{CYTHON_IMPORT})", path.read_text(), re.MULTILINE):
        assert not package.startswith("."), f"{path}: relative import; write the whole name"
        if module:
            yield module
        for name in (listed or rest).split(","):
            if package and name.split():
                yield f"{package}.{name.split()[0]}"


def imports(path: Path) -> list[str]:
    """Dotted names that a source imports or cimports, each with the name taken from the module at its end."""
    return list(imports_of_python(path) if path.suffix in (".py", ".pyi") else imports_of_cython(path))


def part_of(name: str) -> str:
    """`ompy.core.request.Request` -> `ompy.core`."""
    return ".".join(name.split(".")[:2])


def components() -> set[str]:
    return {path.parent.name for root in ROOTS for path in root.glob("*/__init__.py")}


CORE_SOURCES = sources(TOP / "ompy", ".py", ".pyx", ".pxd", ".pyi")
COMPONENT_SOURCES = sorted({path for root in ROOTS for path in sources(root, ".py", ".pyx", ".pxd", ".pyi")})


def test_there_is_something_to_check() -> None:
    assert len(CORE_SOURCES) > 50
    assert len(COMPONENT_SOURCES) > 20
    assert {"ompy_btl_sm", "ompy_btl_zmq", "ompy_pml_ob1", "ompy_coll_basic"} <= components()


@pytest.mark.parametrize("path", CORE_SOURCES, ids=lambda path: str(path.relative_to(TOP)))
def test_ompy_imports_no_component_and_only_what_lies_below(path: Path) -> None:
    module = module_name(path)
    part = part_of(module)
    for name in imports(path):
        assert name.split(".")[0] not in components(), f"{name}: ompy imports no component"
        target = part_of(name)
        excused = any(module == source and name.startswith(goal) for source, goal in EXCEPTIONS)
        # `ompy` itself only hands on, when it is called.
        if target in MAY_IMPORT and target != part and part != "ompy" and not excused:
            assert part in MAY_IMPORT, f"{part} is a new part of ompy: say in MAY_IMPORT what it may import"
            assert target in MAY_IMPORT[part], f"{name}: {part} may import {sorted(MAY_IMPORT[part]) or 'nothing'} of ompy"


@pytest.mark.parametrize("path", COMPONENT_SOURCES, ids=lambda path: str(path.relative_to(TOP)))
def test_a_component_imports_contracts_and_itself_alone(path: Path) -> None:
    own = module_name(path).split(".")[0]
    for name in imports(path):
        package = name.split(".")[0]
        if package == "ompy" and own not in PROGRAMS:
            assert part_of(name) in CONTRACTS_OF_COMPONENTS, f"{name}: components import only ompy.core and ompy.mca"
        foreign = components() if own in MACHINE_MODELS else components() - MACHINE_MODELS
        assert package == own or package not in foreign, f"{name}: components do not import one another, nor models components"


def test_every_compiled_module_has_a_stub() -> None:
    present = [path for path in (*CORE_SOURCES, *COMPONENT_SOURCES) if path.suffix == ".pyx"]
    assert len(present) > 100
    assert [str(path.relative_to(TOP)) for path in sorted(present) if not path.with_suffix(".pyi").exists()] == []


def test_the_number_of_layouts_is_that_of_what_is_declared() -> None:
    path = TOP / "tools" / "build.py"
    spec = spec_from_file_location("build", path)
    assert spec is not None
    assert spec.loader is not None
    build = module_from_spec(spec)
    spec.loader.exec_module(build)
    text = (TOP / "ompy" / "mca" / "layout.pxd").read_text()
    assert f"LAYOUT = {build.layout_number():#x}\n" in text, "declarations have changed: run tools/build.py"


def test_a_package_whose_modules_are_compiled_together_has_them_found() -> None:
    modules = Counter(path.parent for path in (*CORE_SOURCES, *COMPONENT_SOURCES) if path.suffix == ".pyx")
    for package, count in modules.items():
        if package.parent in APART:
            continue  # compiled one by one
        finds = "ompy.core.compiled" in imports(package / "__init__.py")
        assert finds == (count > 1), f"{package}/__init__.py: `import ompy.core.compiled` finds modules of one shared object"


def test_every_package_with_declarations_can_be_cimported_from() -> None:
    packages = {path.parent for path in (*CORE_SOURCES, *COMPONENT_SOURCES) if path.suffix == ".pxd"}
    assert [str(package.relative_to(TOP)) for package in sorted(packages) if not (package / "__init__.pxd").exists()] == []


def test_source_roots_are_no_packages() -> None:
    assert [root.name for root in ROOTS if (root / "__init__.py").exists()] == []


def test_entry_points_lead_to_components_named_as_they_are() -> None:
    for group, entries in PROJECT["project"]["entry-points"].items():
        if not group.startswith("ompy."):
            continue
        for name, target in entries.items():
            found = [root / Path(*target.split(".")).with_suffix(".py") for root in ROOTS]
            [source] = [path for path in found if path.exists()]
            if group == "ompy.command":
                assert re.search(r"^def command\(", source.read_text(), re.MULTILINE), f"{source} holds no command"
                continue
            assert source.name == "component.py", target
            assert re.search(rf'\bname="{name}"', source.read_text()), f"{source} does not name itself {name}"


def test_no_generated_c_lies_in_the_tree() -> None:
    folders = (TOP / "ompy", TOP / "tests", TOP / "tools", TOP / "docs", *ROOTS)
    found = {path for folder in folders for path in sources(folder, ".c", ".cpp")}
    assert found - WRITTEN_IN_C == set()


def test_lines_fit() -> None:
    folders = (TOP / "ompy", TOP / "tests", TOP / "tools", TOP / "docs" / "examples", *ROOTS)
    for path in (path for folder in folders for path in sources(folder, ".py", ".pyx", ".pxd", ".pyi")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= 128, f"{path}:{number} has {len(line)} columns"


def imports_at_once(path: Path) -> Iterator[str]:
    """What is imported when the module is, not by a call of its functions."""
    if path.suffix != ".py":
        yield from imports_of_cython(path, "^")
        return
    left = list(ast.parse(path.read_text(), str(path)).body)
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            left += node.orelse
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef)):
            left += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_there_are_no_circles_of_imports() -> None:
    modules: dict[str, set[str]] = {}
    names = {module_name(path) for path in {*CORE_SOURCES, *COMPONENT_SOURCES}}
    for path in {*CORE_SOURCES, *COMPONENT_SOURCES}:
        if path.suffix != ".pyi":
            found = {name if name in names else name.rpartition(".")[0] for name in imports_at_once(path)}
            modules.setdefault(module_name(path), set()).update(found & names - {module_name(path)})
    # Whoever imports nothing that is left, or is imported by nobody that is left, is in no circle.
    while True:
        imported = set().union(*modules.values())
        gone = {name for name, wanted in modules.items() if not wanted & modules.keys() or name not in imported}
        if not gone:
            break
        modules = {name: wanted for name, wanted in modules.items() if name not in gone}
    assert modules.keys() == set().union(*CIRCLES), "these import one another; or a circle that was allowed is none any more"


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_commands_of_the_documents_exist(document: str) -> None:
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", (TOP / document).read_text(), re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.strip() and not line.startswith("#")]
    assert commands
    scripts = PROJECT["project"]["scripts"]
    for command in commands:
        words = [word for word in shlex.split(command, comments=True) if not re.fullmatch(r"\w+=\S*", word)]
        program = words[0]
        if "/" in program and not program.startswith("."):
            path = TOP / program
            assert path.exists(), f"{document}: {command}"
            assert path.stat().st_mode & 0o100, f"{document}: {program} is not executable"
        elif program.startswith("omp"):
            assert program in scripts, f"{document}: {command}"
        for word in words[1:]:
            if word.startswith(("docs/", "tests/", "tools/")):
                assert (TOP / word).exists(), f"{document}: {command} names {word}"


def test_the_two_commands_of_the_readme_are_what_ci_runs() -> None:
    readme = (TOP / "README.md").read_text()
    pipeline = (TOP / ".ci" / "run").read_text()
    for command in ("tools/demo", "tools/check"):
        assert f"\n{command}\n" in readme
        assert command in pipeline


@pytest.mark.parametrize("root", [TOP / "ompy", *ROOTS], ids=lambda root: root.name)
def test_compiled_methods_are_of_the_kind_that_checks_self(root: Path) -> None:
    """Functions of Cython's own kind (`binding=True`, its default) take any object for self when called on the class."""
    modules = [*root.rglob("*.pyx"), *root.rglob("*.pyx.template")]
    assert not [path.name for path in modules if not re.search(r"^# cython:.*\bbinding=False", path.read_text(), re.MULTILINE)]
