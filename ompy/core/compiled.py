"""Finds compiled modules: those of a package lie together in one shared object, `_compiled`.

    ompy/core/request.pyx, proc.pyx, ...  ->  ompy/core/_compiled.*.so        `import ompy.core.request` finds it there

There would be two hundred shared objects otherwise, each of which costs a rank its loading and some pages.  A package that has
several compiled modules imports this one in its `__init__.py`; their stubs (`request.pyi`) tell what is in it.  One whose
modules are compiled one by one, as a small component's are, does without: Python's own finders come first.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class Finder:
    """A finder as `sys.meta_path` has them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        module = name.rpartition(".")[2]
        for folder in path or ():
            together = f"{folder}/_compiled{EXTENSION_SUFFIXES[0]}"
            if os.path.exists(f"{folder}/{module}.pyi") and os.path.exists(together):
                spec = ModuleSpec(name, ExtensionFileLoader(name, together), origin=together)
                spec.has_location = True
                return spec
        return None


sys.meta_path.append(Finder)
