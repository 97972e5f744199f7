"""Guard bytes around memory: a component that writes in front of what it has allocated, or behind, ends its rank.

Python has its own (`PYTHONMALLOC=debug`); of glibc's `malloc` a library of glibc's does it, where that is installed beside it.
Its lock stays taken in a child that is forked while another thread allocates, and the child waits for ever: ranks that fork
go without it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LIBRARY = "libc_malloc_debug.so.0"
# What they say.
WORDS = ("free(): invalid", "realloc(): invalid", "malloc_check", "corrupted", "Debug memory block")
# Of mallopt(3): say what is wrong, and end the process.
SAY_AND_END = "3"


@cache
def library() -> str:
    """glibc's library, from 2.34 on beside its libc; empty: there is none."""
    with open("/proc/self/maps") as maps:
        paths = {Path(line.split()[-1]) for line in maps if "/libc.so" in line}
    return next((str(path.with_name(LIBRARY)) for path in paths if path.with_name(LIBRARY).exists()), "")


def environment(forks: bool, outside: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that ranks, which may fork, are started with, given those that there are."""
    if outside.get("PYTHONMALLOC") == "malloc":  # a sanitizer or valgrind looks closer, and wants to be the first library
        return {}
    guarded = {"PYTHONMALLOC": "debug"}
    if not forks and (path := library()):
        guarded |= {"MALLOC_CHECK_": SAY_AND_END, "LD_PRELOAD": " ".join(filter(None, (path, outside.get("LD_PRELOAD", ""))))}
    return guarded


def are_hurt(output: str) -> bool:
    """Whether what a rank has printed tells of guard bytes that were overwritten."""
    return any(words in output for words in WORDS)
