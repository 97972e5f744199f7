# cython: language_level=3
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""The beginning and the end of MPI in this process, and what it says of itself (MPI-4.1, 9.1, 11.2 and 11.4)."""

from __future__ import annotations

import atexit
import os
from _thread import get_ident

from ompy.core.errors import ERR_ARG, ERR_OTHER, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.options import rc, read_environment, settle
from ompy.mpi.raising import hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ompy.runtime.instance import Instance

__all__ = [
    "Finalize",
    "Get_abi_fortran_info",
    "Get_abi_info",
    "Get_abi_version",
    "Get_hw_resource_info",
    "Get_library_version",
    "Get_processor_name",
    "Get_version",
    "Init",
    "Init_thread",
    "Is_finalized",
    "Is_initialized",
    "Is_thread_main",
    "MAX_DATAREP_STRING",
    "MAX_ERROR_STRING",
    "MAX_LIBRARY_VERSION_STRING",
    "MAX_OBJECT_NAME",
    "MAX_PORT_NAME",
    "MAX_PROCESSOR_NAME",
    "MAX_PSET_NAME_LEN",
    "MAX_STRINGTAG_LEN",
    "Pcontrol",
    "Query_thread",
    "SUBVERSION",
    "THREAD_FUNNELED",
    "THREAD_MULTIPLE",
    "THREAD_SERIALIZED",
    "THREAD_SINGLE",
    "VERSION",
    "get_vendor",
]

VERSION = 4
SUBVERSION = 1
RELEASE = (0, 1, 0)

THREAD_SINGLE = 0
THREAD_FUNNELED = 1
THREAD_SERIALIZED = 2
THREAD_MULTIPLE = 3
THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")

# Longest strings, in characters (MPI-4.1, annex A.1).
MAX_PROCESSOR_NAME = 256
MAX_ERROR_STRING = 512
MAX_PORT_NAME = 1024
MAX_OBJECT_NAME = 128
MAX_DATAREP_STRING = 128
MAX_LIBRARY_VERSION_STRING = 256
MAX_PSET_NAME_LEN = 1024
MAX_STRINGTAG_LEN = 1024


class State:
    """What this process has of MPI.  Brought up once: by Init, by the import, or by the first session."""

    instance: Instance | None = None
    initialized = False
    finalized = False
    thread_level = THREAD_SINGLE
    main_thread = 0
    abort_status = 0
    sessions = 0                                 # that are open
    # In a child made by fork: the parent's instance, kept, as its destructors would speak to the parent's peers.
    inherited: Instance | None = None


state = State()


def instance() -> Instance:
    """The bring-up of this process.

    Raises:
        Exception: ERR_OTHER before MPI is initialised, and after it was finalised.
    """
    if state.inherited is not None:
        from ompy.runtime.instance import FORKED

        raise MPIException(ERR_OTHER, FORKED)
    if state.instance is None:
        raise MPIException(ERR_OTHER, "MPI is not initialised here" if not state.finalized else "MPI was finalised")
    return state.instance


def set_check_level() -> None:
    """As `mpi_param_check` says."""
    from ompy.mca.params import registry
    from ompy.mpi import collective_check, envelope

    envelope.set_check_level(registry.value("mpi_param_check"))
    collective_check.set_check_level(registry.value("mpi_param_check"))


def bring_up() -> None:
    """Find the job and its peers, unless that was done already."""
    if state.instance is not None:
        return
    if state.finalized:
        raise MPIException(ERR_OTHER, "MPI was finalised: it can't be initialised again")
    from ompy.mca.params import registry
    from ompy.mpi import object_reductions
    from ompy.mpi.intracomm import open_world
    from ompy.runtime.instance import Instance

    state.instance = Instance()
    registry.watch("mpi_param_check", set_check_level)
    set_check_level()
    object_reductions.set_fast_reduce(rc.fast_reduce)
    if registry.value("mpi_numpy_heap"):
        from ompy.mpi.array_memory import use_heap_for_arrays
        use_heap_for_arrays(registry.value("mpi_numpy_heap"))
    open_world(state.instance)
    if state.instance.rte.parent_port:
        from ompy.mpi import dynamic_processes
        dynamic_processes.meet_parent()
    choose_error_handler()
    atexit.register(leave)
    os.register_at_fork(after_in_child=stay_out)


def stay_out() -> None:
    """In a child made by fork: it knows its parent's rank, and has no part in the job; MPI counts as finalised there."""
    atexit.unregister(leave)
    atexit.unregister(finish)
    if state.instance is not None:
        state.inherited, state.instance = state.instance, None
        state.finalized = True
        state.inherited.leave_to_parent()


def leave() -> None:
    """At exit: a process that only ever had sessions, or had some after it finalised, leaves its job; one that called Init
    finalises, or meant not to."""
    if state.instance is not None and (state.finalized or not state.initialized):
        take_down()


def take_down() -> None:
    try:
        state.instance.close()
    finally:
        state.instance = None


def begin_session() -> None:
    bring_up()
    state.sessions += 1


def end_session() -> None:
    """After Finalize the last one takes the library with it."""
    state.sessions -= 1
    if state.finalized and state.sessions == 0 and state.instance is not None:
        take_down()


def choose_error_handler() -> None:
    """`rc.errors`: what errors on the first communicators do; by default what the job was started with (MPI-4.1, 11.5)."""
    from ompy.mca.params import registry

    chosen = rc.errors
    if chosen == "default":
        names = {"mpi_errors_abort": "abort", "mpi_errors_return": "exception"}
        chosen = names.get(registry.value("mpi_initial_errhandler"), "fatal")
    if chosen == "exception":
        return
    from ompy.mpi.errhandler import ERRORS_ABORT, ERRORS_ARE_FATAL
    from ompy.mpi.intracomm import COMM_SELF, COMM_WORLD

    for comm in (COMM_WORLD, COMM_SELF):
        comm.Set_errhandler(ERRORS_ABORT if chosen == "abort" else ERRORS_ARE_FATAL)


def start() -> None:
    """What importing `ompy.MPI` does: as the options say, initialise now and finalise at exit."""
    read_environment()
    settle()
    level = rc.thread_level if rc.threads else "single"
    if rc.initialize and not state.initialized:
        initialize(THREAD_LEVELS.index(level))
    if rc.initialize if rc.finalize is None else rc.finalize:
        atexit.register(finish)


def initialize(level: int) -> None:
    bring_up()
    state.initialized = True
    state.thread_level = level
    state.main_thread = get_ident()


def finish() -> None:
    """At exit: finalise, unless the program did."""
    if state.initialized and not state.finalized:
        if state.abort_status:
            abort(state.abort_status, f"the program failed with exit status {state.abort_status}")
        Finalize()


def _set_abort_status(status: object) -> None:
    """End the job with this exit status instead of finalising it; what `mpi4py.run` calls when a program fails."""
    state.abort_status = status if isinstance(status, int) else 1 if status else 0


def Init() -> None:
    """Initialise MPI (MPI-4.1, 11.2.1).  Importing `ompy.MPI` has done it already, unless `rc.initialize` is false.

    Raises:
        Exception: ERR_OTHER when MPI was initialised before.
    """
    Init_thread(THREAD_SINGLE)


def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """Initialise MPI for threads (MPI-4.1, 11.6.2).  Returns the level of thread support, which is what was asked for.

    Raises:
        Exception: ERR_OTHER when MPI was initialised before, ERR_ARG for a level that there is none of.
    """
    if state.initialized:
        raise MPIException(ERR_OTHER, "MPI is initialised already")
    if not THREAD_SINGLE <= required <= THREAD_MULTIPLE:
        raise MPIException(ERR_ARG, f"required: THREAD_SINGLE (0) to THREAD_MULTIPLE (3) expected, not {required}")
    initialize(required)
    return required


def Finalize() -> None:
    """End MPI here: what was sent is delivered, and nothing is left behind (MPI-4.1, 11.2.2).

    Sessions that are open go on without COMM_WORLD and COMM_SELF (MPI-4.1, 11.1); none can be opened once all are closed.

    Raises:
        Exception: ERR_OTHER before initialisation, or when MPI was finalised before.
    """
    if not state.initialized or state.finalized:
        raise MPIException(ERR_OTHER, "MPI is not initialised" if not state.initialized else "MPI was finalised already")
    from ompy.mpi import buffered, dynamic_processes
    from ompy.mpi.intracomm import close_world

    running = instance()
    close_world()
    dynamic_processes.close(running)
    buffered.flush_all()
    state.finalized = True
    if state.sessions:
        running.world.mark_freed()
        running.own.mark_freed()
    else:
        take_down()


def Is_initialized() -> bool:
    """Whether MPI was initialised (MPI-4.1, 11.4.1)."""
    return state.initialized


def Is_finalized() -> bool:
    """Whether MPI was finalised (MPI-4.1, 11.4.1)."""
    return state.finalized


def Query_thread() -> int:
    """The level of thread support (MPI-4.1, 11.6.2)."""
    instance()
    return state.thread_level


def Is_thread_main() -> bool:
    """Whether this thread is the one that initialised MPI (MPI-4.1, 11.6.2)."""
    instance()
    return get_ident() == state.main_thread


def abort(code: int, message: str) -> NoReturn:
    """End the whole job with exit status `code`, and say why on the error output."""
    if state.instance is not None:
        state.instance.rte.abort(code, message)
    import sys

    print(f"ompy: {message}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(code & 0xFF or 1)


def Get_version() -> tuple[int, int]:
    """The version of the MPI standard that this follows (MPI-4.1, 9.1.1)."""
    return VERSION, SUBVERSION


def Get_abi_version() -> tuple[int, int]:
    """The version of MPI's binary interface (MPI-5.0, chapter 20): (-1, -1), for there is no C library behind ompy."""
    return -1, -1


def Get_abi_info() -> Any:
    """Details of MPI's binary interface, as an Info (MPI-5.0, chapter 20): none, there is no C library behind ompy."""
    from ompy.mpi.info import Info

    return Info.Create()


def Get_abi_fortran_info() -> Any:
    """Sizes of Fortran's types in MPI's binary interface, as an Info (MPI-5.0, chapter 20): none, as of `Get_abi_info`."""
    return Get_abi_info()


def Get_library_version() -> str:
    """Name and version of this library (MPI-4.1, 9.1.1).

    The words behind them are for tools that start jobs themselves and ask this for whose options `mpiexec` takes.
    """
    return "ompy {}.{}.{} (options as of Open MPI's mpiexec)".format(*RELEASE)


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """Name and version of this library."""
    return "ompy", RELEASE


def Get_processor_name() -> str:
    """Name of the host that this process runs on (MPI-4.1, 9.1.2)."""
    return os.uname().nodename


def Get_hw_resource_info() -> Any:
    """Kinds of hardware, as an Info (MPI-4.1, 9.1.2): "hwloc://Machine", "hwloc://Package", ... to "hwloc://PU".

    The value is "true" where one of that kind holds all processors that this process may use now; `Comm.Split_type` takes the
    names.
    """
    from ompy.mpi.info import Info
    from ompy.runtime import hardware

    pieces = hardware.pieces()
    return Info.Create({name: "false" if pieces[kind] is None else "true" for name, kind in hardware.RESOURCES.items()})


def Pcontrol(level: int) -> None:
    """Control of profiling (MPI-4.1, 15.2.4): there is no profiler, so that only the argument is checked.

    Raises:
        Exception: ERR_ARG for a level other than 0, 1 and 2.
    """
    if not 0 <= level <= 2:
        hand_over(MPIError(ERR_ARG, f"level: 0, 1 or 2 expected, not {level}"), None)
