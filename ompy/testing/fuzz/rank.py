"""One rank that carries programs out, one after another: `python rank.py`, with mpi4py and nothing else of ompy's.

It says who it is, is told the prelude once, and then gets its own part of one program after another.  Over the wire, a Unix
socket, all goes that is not part of a program, so that nothing depends on what is being tested.
"""

import faulthandler
import os
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Client
from typing import Any


def main() -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    wire = Client(os.environ["OMPY_FUZZ_WIRE"], family="AF_UNIX")
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    wire.send((world.rank, os.getpid(), about(MPI)))
    prelude, descriptors = wire.recv()
    if descriptors:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    given = {"MPI": MPI, "me": world.rank, "__name__": "fuzz"}
    for module in ("array", "gc", "os", "random", "struct", "sys", "time", "signal"):
        given[module] = __import__(module)
    exec(compile(prelude, "<prelude>", "exec"), given)
    number = 0
    wire.send((number, True, ""))

    def fail(problem: Any) -> None:
        text = "".join(traceback.format_exception(type(problem), problem, problem.__traceback__))
        wire.send((number, False, text))
        while True:
            signal.pause()

    threading.excepthook = lambda told: fail(told.exc_value)
    while True:
        try:
            number, memory, text = wire.recv()
        except EOFError:
            break
        try:
            if "numpy." in memory + text:
                given["numpy"] = __import__("numpy")
            names = dict(given)
            exec(compile(memory, "<memory>", "exec"), names)
            names["comm"] = world.Dup()
            exec(compile(text, f"<program {number}>", "exec"), names)
            names["comm"].Barrier()
            names["comm"].Free()
            for memory in names.get("allocated", ()):
                MPI.Free_mem(memory)
            names.clear()
        except Exception as problem:
            print(f"rank {world.rank}, program {number}", file=sys.stderr)
            traceback.print_exc()
            fail(problem)
        wire.send((number, True, ""))
    os._exit(0)


def about(MPI: Any) -> dict[str, Any]:
    """The library's name and version, and the sizes at which its components change their ways."""
    limits = set()
    if "ompy" in sys.modules:
        from ompy.mca import selection

        for module in selection.chosen_modules.get("btl", []):
            for name in ("eager_limit", "rndv_eager_limit", "max_send_size", "min_rdma_pipeline_size"):
                limits.add(getattr(module, name, 0))
    # Libraries have calls of a standard that they do not claim yet.
    standard = tuple(MPI.Get_version())
    if standard < (4, 0):
        try:
            MPI.COMM_SELF.Psend_init([bytearray(1), 1, MPI.BYTE], 1, 0, 0).Free()
            standard = (4, 0)
        except NotImplementedError:
            pass
    version = MPI.Get_library_version().replace("\0", "").splitlines()[0]
    return {"version": version, "standard": standard, "limits": sorted(n for n in limits if 0 < n < 1 << 22)}


if __name__ == "__main__":
    main()
