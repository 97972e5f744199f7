"""Whose code an error came out of: the program's, ompy's, or a component's.

prog.py:7                          the program      named in the line that the launcher tells
ompy/mpi/point_to_point.pyx:124    ompy             a dozen frames of no interest to either author
ompy_btl_pigeon/module.py:50       a component      named in that line too, and shown before the traceback
socket.py:300                      a library
"""

from __future__ import annotations

import os

from ompy.core.errors import MPIError
from ompy.mca import discovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from ompy.mca.discovery import Found

LIBRARY = os.path.dirname(os.__file__) + os.sep

# The first line of what an exception says goes to the launcher, cut to so many characters.
LONGEST_TEXT = 2000


def package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_own(frame: FrameType) -> bool:
    """Whether the frame is the library's: ompy's, or a component's."""
    package = package_of(frame)
    return package == "ompy" or package.startswith("ompy_")


def is_installed(frame: FrameType) -> bool:
    """Whether the frame is an installed package's, or Python's."""
    name = frame.f_code.co_filename
    return name.startswith((LIBRARY, "<frozen")) or "site-packages" in name


def place_of(traceback: TracebackType | None) -> str:
    """`prog.py:12` of the innermost frame that is the program's: not ompy's, and not an installed package's if it can be."""
    program = installed = ""
    while traceback is not None:
        frame = traceback.tb_frame
        place = f"{frame.f_code.co_filename}:{traceback.tb_lineno}"
        if not is_own(frame) and not is_installed(frame):
            program = place
        elif not is_own(frame) and not place.startswith("<frozen"):
            installed = place
        traceback = traceback.tb_next
    return program or installed or "unknown place"


def owner(frame: FrameType) -> Found | None:
    """The component whose module a frame is in; of several in one package the one whose own folder it is."""
    module = str(frame.f_globals.get("__name__", ""))
    best: tuple[int, Found] | None = None
    for names in discovery.installed().values():
        for found in names.values():
            package = found.module.rpartition(".")[0] or found.module
            if (module == package or module.startswith(package + ".")) and (best is None or len(package) > best[0]):
                best = len(package), found
    return best[1] if best else None


def component_at_fault(error: BaseException, traceback: TracebackType | None) -> tuple[Found, TracebackType] | None:
    """The component that an error came out of, and the innermost frame of its own.

    None where ompy has put the error in words for the program (MPIError), where somebody asked for it (KeyboardInterrupt),
    or where the program's own code raised it, a function that a component had called.
    """
    if isinstance(error, MPIError) or not isinstance(error, Exception):
        return None
    inside = False
    innermost: tuple[Found, TracebackType] | None = None
    while traceback is not None:
        frame = traceback.tb_frame
        if package_of(frame) == "ompy":
            inside = True
        elif inside and (found := owner(frame)):
            innermost = found, traceback
        elif not is_own(frame) and not is_installed(frame):
            innermost = None
        traceback = traceback.tb_next
    return innermost


def said(kind: type[BaseException], error: BaseException) -> str:
    """The exception's type, and the first line of what it says."""
    try:
        text = str(error).partition("\n")[0]
    except Exception as problem:
        text = f"what it says can't be shown, its __str__ raised {type(problem).__name__}"
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}... ({len(text)} characters)"
    return kind.__name__ + (f": {text}" if text else "")


def describe(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> str:
    """One line: the program's place, the component at fault with its own place, and the exception."""
    words = [place_of(traceback), said(kind, error)]
    if at_fault := component_at_fault(error, traceback):
        found, innermost = at_fault
        place = f"{innermost.tb_frame.f_code.co_filename}:{innermost.tb_lineno}"
        words.insert(1, f"{found.framework} component {found.name}, {place}")
    return ": ".join(words)


def headline(rank: int, error: BaseException, traceback: TracebackType | None) -> str:
    """For the author of a component that is at fault: its name and the innermost frame of its own; else empty."""
    at_fault = component_at_fault(error, traceback)
    if at_fault is None:
        return ""
    from traceback import format_tb

    found, innermost = at_fault
    name = f"{found.framework} component {found.name} of {found.distribution} {found.version}"
    return f"ompy: rank {rank}: {name} raised {said(type(error), error)}\n{''.join(format_tb(innermost, limit=1))}"
