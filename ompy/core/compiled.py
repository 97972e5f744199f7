"""Finds compiled modules: those of a package lie together in one shared object, `_compiled`.

    ompy/core/request.pyx, proc.pyx, ...  ->  ompy/core/_compiled.*.so        `import ompy.core.request` finds it there

There would be two hundred shared objects otherwise, each of which costs a rank its loading and some pages.  A package that has
several compiled modules imports this one in its `__init__.py`; their stubs (`request.pyi`) tell what is in it.  One whose
modules are compiled one by one, as a small component's are, does without.

It comes before Python's own finders, which would try every way to spell a module's file, and lists each folder once; so it
finds the plain modules beside the compiled ones as well.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

TOGETHER = "_compiled" + EXTENSION_SUFFIXES[0]


class Finder:
    """A finder as `sys.meta_path` has them."""

    # By folder: the names in it, none where nothing is compiled together.
    listings: dict[str, frozenset[str]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or not name.startswith("ompy"):
            return None
        module = name.rpartition(".")[2]
        for folder in path:
            names = cls.listings.get(folder)
            if names is None:
                names = cls.listings[folder] = listing(folder)
            loader: ExtensionFileLoader | SourceFileLoader
            if f"{module}.py" in names:
                loader = SourceFileLoader(name, f"{folder}/{module}.py")
            elif f"{module}.pyi" in names:
                loader = ExtensionFileLoader(name, f"{folder}/{TOGETHER}")
            else:
                continue
            spec = ModuleSpec(name, loader, origin=loader.path)
            spec.has_location = True
            return spec
        return None


def listing(folder: str) -> frozenset[str]:
    try:
        names = frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
    return names if TOGETHER in names else frozenset()


sys.meta_path.insert(0, Finder)
