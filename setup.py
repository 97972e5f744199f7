"""How ompy is compiled, by pip or by tools/build.py: every `.pyx` that lies under the source roots.

    .pyx  --Cython, all cores-->  .c  --ninja: compiler-->  .o  --ninja: linker-->  one `_compiled` a package

A package's modules lie together in one shared object, where `ompy.core.compiled` finds them; what Cython needs in every module
lies once in `ompy._cython`.  Each step does what is stale, of all that it depends on.  Compiled for speed (-O2), but for a
module that says otherwise in a line `# distutils: extra_compile_args=-Os`, what runs once a job, a communicator, a system call
or a message between hosts, or `-O3`, what every short message within a host passes.  `CFLAGS`, e.g. `-O0` or `-g`, come
last and so win.
"""

from __future__ import annotations

import fcntl
import filecmp
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import traceback
from pathlib import Path
from typing import NoReturn

import Cython
from Cython.Build import Dependencies, cythonize
from Cython.Compiler import Errors
from Cython.Compiler.Main import Context
from Cython.Compiler.Symtab import ModuleScope
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOTS = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["where"]
WORK = Path("build", f"{sys.implementation.cache_tag}-cython-{Cython.__version__}")
HELPERS = "ompy._cython"
# Passes that take gcc a sixth of its time, and with -Os make nothing smaller.
LEAN = ["-fno-tree-pre", "-fno-gcse", "-fno-tree-vrp", "-fno-tree-dominator-opts", "-fno-tree-loop-optimize"]
# With -O3: of what it does, this makes short messages faster; the rest is size.
FAST = ["-O2", "-falign-jumps", "-falign-labels", "--param=max-inline-insns-single=200", "--param=max-inline-insns-auto=30"]
# Space before targets of jumps is a fortieth of the size.
UNPADDED = ["-fno-align-jumps", "-fno-align-labels"]
# Who has it builds the same thing more than once; Cython then keeps what it wrote as well.
CCACHE = [found] if (found := shutil.which("ccache")) else []


def extensions() -> list[Extension]:
    """One for each package that holds a `.pyx`, with all of these as its sources; one that is alone keeps its name."""
    found = [Extension(HELPERS, ["ompy/_cython.c"], extra_compile_args=["-Os"])]  # which Cython writes, below WORK
    for root in ROOTS:
        for folder in sorted({path.parent for path in Path(root).glob("ompy*/**/*.pyx")}):
            sources = sorted(str(path) for path in folder.glob("*.pyx"))
            name = "_compiled" if len(sources) > 1 else Path(sources[0]).stem
            found.append(Extension(".".join([*folder.relative_to(root).parts, name]), sources))
    return found


def declarations() -> dict[str, str]:
    """Where the `.pxd` of each module lies."""
    found = ((root, path) for root in ROOTS for path in Path(root).glob("ompy*/**/*.pxd"))
    return {".".join(path.relative_to(root).with_suffix("").parts): str(path) for root, path in found}


class Reached(dict):
    """What Cython has parsed, of which one module sees what it reaches by `cimport`."""

    def __init__(self, parsed: dict, module: ModuleScope) -> None:
        super().__init__(parsed)
        self.module = module

    def items(self) -> list:
        names = {scope.qualified_name for scope in [self.module, *self.module.cimported_modules]}
        return [(name, tree) for name, tree in super().items() if name in names]


class Translation:
    """Cython for many modules at a time, which parses a `.pxd` once.

        here         the .pxd of module a --.-- those of module b that are new --.-- ...
        a child           parses a.pyx, writes a.c                 parses b.pyx, writes b.c

    A `.pyx` leaves traces in the declarations that it cimports: they end with the child.  Buffers typed in a `.pxd` leave
    theirs in all that is parsed, so that what cimports such comes last.
    """

    def __init__(self) -> None:
        self.tasks: list[tuple] = []
        self.translate, Dependencies.cythonize_one = Dependencies.cythonize_one, lambda *task: self.tasks.append(task)

    def run(self, jobs: int) -> None:
        """What Cython's own function would have done at each call."""
        names = {path: name for name, path in declarations().items()}
        typed = {path for path in names if "[::" in Path(path).read_text()}
        needs = {task[0]: Dependencies.create_dependency_tree().all_dependencies(task[0]) for task in self.tasks}
        context, children, failed = None, {}, []
        for task in sorted(self.tasks, key=lambda task: not typed.isdisjoint(needs[task[0]])):
            context = context or Context.from_options(task[4])
            for path in sorted(needs[task[0]] & names.keys()):
                context.find_module(names[path])
            if len(children) == jobs:
                reap(children, failed)
            child = os.fork()
            if not child:
                self.become(context, task)
            children[child] = task[0]
        while children:
            reap(children, failed)
        if failed:
            raise Errors.CompileError(None, ", ".join(failed))

    def become(self, context: Context, task: tuple) -> NoReturn:
        status = 1
        try:
            if not Errors.get_errors_count():  # or else it parses all again, and tells
                scope = context
                for part in task[7].split("."):
                    scope = scope.find_submodule(part)
                context.pxds = Reached(context.pxds, scope)
                Context.from_options = lambda options: context
            self.translate(*task)
            status = 0
        except Errors.CompileError:  # told
            # Cython keeps an archive of nothing, which would be taken for the module at the next attempt.
            source, fingerprint, cache = task[1], task[2], task[10]
            if cache and fingerprint and (kept := cache.lookup_cache(source, fingerprint)):
                os.unlink(kept)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def reap(children: dict[int, str], failed: list[str]) -> None:
    child, status = os.wait()
    source = children.pop(child)
    if status:
        failed.append(source)


class BuildExtensions(build_ext):
    def build_extensions(self) -> None:
        WORK.mkdir(parents=True, exist_ok=True)
        with open(WORK / "lock", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.compile()
        for extension in self.extensions:
            replace(WORK / f"{extension.name}.so", Path(self.get_ext_fullpath(extension.name)))

    def compile(self) -> None:
        jobs = self.parallel if isinstance(self.parallel, int) else len(os.sched_getaffinity(0))
        # Cython would look for each in every folder of its own and Python's path, for ten seconds.  Names are absolute here.
        lies = declarations()
        Dependencies.DependencyTree.find_pxd = lambda tree, module, filename=None: lies.get(module)
        translation = Translation()
        try:
            modules = cythonize(
                [
                    Extension(f"{e.name.rpartition('.')[0]}.{Path(s).stem}", [s], extra_compile_args=e.extra_compile_args)
                    for e in self.extensions
                    for s in e.sources
                ],
                build_dir=str(WORK),
                include_path=ROOTS,
                cache=bool(CCACHE),
                shared_utility_qualified_name=HELPERS,
                compiler_directives={"language_level": 3, "auto_pickle": False, "emit_code_comments": False},
                quiet=True,
            )
            translation.run(jobs)
        except Errors.CompileError:
            # What Cython wrote in place of C would be up to date at the next attempt, and the message be the C compiler's.
            for path in WORK.rglob("*.c"):
                if path.read_bytes().startswith(b"#error"):
                    path.unlink()
            raise
        (WORK / "build.ninja").write_text("\n".join(self.rules(modules)) + "\n")
        subprocess.run([sys.executable, "-m", "ninja", "--quiet", "-j", str(jobs), "-f", str(WORK / "build.ninja")], check=True)

    def rules(self, modules: list[Extension]) -> list[str]:
        """The lines of the file that ninja carries out.  `modules` have C sources, one each."""
        own = shlex.split(os.environ.get("CFLAGS", ""))
        tried = [*self.compiler.compiler_so, *LEAN, *FAST, "-E", "-x", "c", os.devnull]
        gcc = subprocess.run(tried, capture_output=True).returncode == 0
        meant = {"-Os": LEAN, "-O3": FAST} if gcc else {}
        # What only a debugger reads: a tenth of the size, as are the gaps that keep code apart from other pages.
        debugged = any(flag.startswith("-g") for flag in own)
        unwinding = [] if debugged else ["-fno-asynchronous-unwind-tables"]
        symbols = [] if debugged else ["-s", "-Wl,-z,noseparate-code"]
        lines = [
            f"builddir = {WORK}",
            f"compile = {shlex.join([*CCACHE, *self.compiler.compiler_so, '-w', '-g0', '-O2', *UNPADDED, *unwinding])}",
            "rule compile",
            "  command = $compile $flags -MMD -MF $out.d -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "rule link",
            f"  command = {shlex.join([*self.compiler.linker_so, *symbols])} $in -o $out",
        ]
        includes = [f"-I{folder}" for folder in self.compiler.include_dirs]
        # gcc reads a header that it has compiled, with the same flags, at once; ccache would not keep what it made with that.
        headers: dict[Path, list[str]] = {}
        # The longest first, so that no core is left with it at the end.
        for module in sorted(modules, key=lambda module: -os.path.getsize(module.sources[0])):
            more = [flag for level in module.extra_compile_args for flag in meant.get(level, [])]
            flags = shlex.join([*includes, *module.extra_compile_args, *more, *own])
            lines += [f"build {WORK}/{module.name}.o: compile {module.sources[0]}", f"  flags = {flags}"]
            if gcc and not CCACHE:
                header = WORK / f"python{''.join(module.extra_compile_args)}.h"
                lines[-2:] = [f"{lines[-2]} | {header}.gch", f"{lines[-1]} -include {header}"]
                headers[header] = [f"build {header}.gch: compile {header}", f"  flags = {flags}"]
        for header, rule in headers.items():
            if not header.exists():
                header.write_text('#define PY_SSIZE_T_CLEAN\n#include "Python.h"\n')
            lines += rule
        for extension in self.extensions:
            package = extension.name.rpartition(".")[0]
            objects = " ".join(f"{WORK}/{package}.{Path(source).stem}.o" for source in extension.sources)
            lines.append(f"build {WORK}/{extension.name}.so: link {objects}")
        return lines

    def copy_extensions_to_source(self) -> None:
        """Beside the sources, for an editable installation."""
        for built, target in self.get_output_mapping().items():
            replace(Path(built), Path(target))
        # One of a module alone would be found before its package's.
        for extension in self.extensions:
            if extension.name.endswith("._compiled"):
                for source in map(Path, extension.sources):
                    source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX")).unlink(missing_ok=True)


def replace(built: Path, target: Path) -> None:
    """Copy what changed; never overwrite it, because running ranks have the former one mapped."""
    if target.exists() and filecmp.cmp(built, target, shallow=False):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(built, partial)
    os.replace(partial, target)


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
