"""How the library starts: the options that mpi4py calls `mpi4py.rc`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORDS: dict[str, bool] = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


class Options:
    """Options of start-up; set them before `ompy.MPI` is imported, or through `MPI4PY_RC_<NAME>` in the environment.

    Attributes:
        initialize: initialise MPI when `ompy.MPI` is imported.
        threads: ask for threads at all.
        thread_level: "multiple", "serialized", "funneled" or "single".
        finalize: finalise MPI at exit; None: if the import initialised it.
        fast_reduce: reduce objects along a tree; False: one after the other, in rank order.
        errors: "exception" (errors raise MPI.Exception), or "default", "abort", "fatal" (errors end the job).
        recv_mprobe, irecv_bufsz: mpi4py's; without effect, as objects of any size are received without a probe.
    """

    initialize: bool = True
    threads: bool = True
    thread_level: str = "multiple"
    finalize: bool | None = None
    fast_reduce: bool = True
    recv_mprobe: bool = True
    irecv_bufsz: int = 32768
    errors: str = "exception"

    def __init__(self, **options: Any) -> None:
        self(**options)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, name):
            raise TypeError(f"rc has no option {name!r}")
        super().__setattr__(name, value)

    def __call__(self, **options: Any) -> None:
        for name in options:
            if not hasattr(self, name):
                raise TypeError(f"rc has no option {name!r}")
        for name, value in options.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return "<ompy.rc>"


rc = Options()

CHOICES = {
    "thread_level": ("single", "funneled", "serialized", "multiple"),
    "errors": ("exception", "default", "abort", "fatal"),
}


def read_environment() -> None:
    """Take over the options that the environment sets; what the program set itself gives way, as in mpi4py."""
    for name in Options.__annotations__:
        text = os.environ.get(f"MPI4PY_RC_{name.upper()}")
        if text is None:
            continue
        value: Any = text.lower()
        if name not in CHOICES:
            value = int(text) if name == "irecv_bufsz" and text.isdecimal() else WORDS.get(value, value)
        setattr(rc, name, value)


def settle() -> None:
    """Make each option what it means; of a value without a meaning there is a warning, and the option's default counts."""
    for name in Options.__annotations__:
        value = getattr(rc, name)
        if name in CHOICES:
            good = value in CHOICES[name]
        elif name == "irecv_bufsz":
            good = type(value) is int and value >= 0
        else:
            value = {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value
            good = value in (True, False) or (name == "finalize" and value is None)
        if not good:
            import warnings

            warnings.warn(f"mpi4py.rc.{name}: unexpected value {value!r}", RuntimeWarning, stacklevel=2)
        setattr(rc, name, value if good else getattr(Options, name))
