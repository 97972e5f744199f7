"""Finds compiled modules: those of a package lie together in one shared object, `_compiled`.

    ompy/core/request.pyx, proc.pyx, ...  ->  ompy/core/_compiled.*.so        `import ompy.core.request` finds it there

There would be two hundred shared objects otherwise, each of which costs a rank its loading and some pages.  A package that has
several compiled modules imports this one in its `__init__.py`; their stubs (`request.pyi`) tell what is in it.  One whose
modules are compiled one by one, as a small component's are, does without.

It comes before Python's own finders, which would try every way to spell a module's file, and lists each folder once; so it
finds the plain modules and the packages in ompy's and its components' packages as well.

Much is imported when it is first used, within a call of the program's: where the process has no descriptor left for it, that is
an error of the call.
"""

from __future__ import annotations

import errno
import os
import sys

# What `importlib.machinery` hands on, without the rest of `importlib`, which nothing else at start-up needs.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import EXTENSION_SUFFIXES, ExtensionFileLoader, SourceFileLoader

from ompy.core.errors import ERR_OTHER, MPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

TOGETHER = "_compiled" + EXTENSION_SUFFIXES[0]


# Of the system, that it has no more of something at the moment.
LACK = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


class Loader(SourceFileLoader):
    def get_data(self, path: str) -> bytes:
        try:
            return super().get_data(path)
        except OSError as error:
            if error.errno in LACK:
                raise lack(self.name, error) from error
            raise


def lack(name: str, error: OSError) -> MPIError:
    return MPIError(ERR_OTHER, f"{name} can't be loaded: {error.strerror}")


class Finder:
    """A finder as `sys.meta_path` has them, of what lies in ompy's packages and its components'."""

    # By folder: the names in it.
    listings: dict[str, frozenset[str]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or not name.startswith("ompy"):
            return None
        module = name.rpartition(".")[2]
        for folder in path:
            names = cls.names(folder)
            loader: ExtensionFileLoader | Loader
            inner = None
            # In Python's own order: a package, compiled by itself, plain.
            if module in names and "__init__.py" in cls.names(f"{folder}/{module}"):
                inner = [f"{folder}/{module}"]
                loader = Loader(name, f"{inner[0]}/__init__.py")
            elif alone := [suffix for suffix in EXTENSION_SUFFIXES if f"{module}{suffix}" in names]:
                loader = ExtensionFileLoader(name, f"{folder}/{module}{alone[0]}")
            elif f"{module}.py" in names:
                loader = Loader(name, f"{folder}/{module}.py")
            elif f"{module}.pyi" in names and TOGETHER in names:
                loader = ExtensionFileLoader(name, f"{folder}/{TOGETHER}")
            else:
                continue
            spec = ModuleSpec(name, loader, origin=loader.path)
            spec.submodule_search_locations = inner
            spec.has_location = True
            return spec
        return None

    @classmethod
    def invalidate_caches(cls) -> None:
        """For `importlib.invalidate_caches`."""
        cls.listings.clear()

    @classmethod
    def names(cls, folder: str) -> frozenset[str]:
        names = cls.listings.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder))
            except OSError as error:
                if error.errno in LACK:
                    raise lack(folder, error) from error
                names = frozenset()
            cls.listings[folder] = names
        return names


sys.meta_path.insert(0, Finder)
