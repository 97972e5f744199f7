"""Calls of everything public in `ompy.MPI`, methods on their classes too, with arguments of the right and of every other sort.

A call is text, so that a finding is a line of Python: what is called, positional arguments, keywords.
What a call begins is taken back at once where that is possible; one that rightly waits is interrupted after a moment.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import random
import re
import resource
import signal
import types
from pathlib import Path

PATIENCE = 0.03
ROOM = 3 << 30  # bytes of address space beyond what the child begins with

# Names that are not called: they end the process or the library, believe an address, or keep what they are given for good, as
# their documentation says.
LEFT_ALONE = re.compile(
    r"(.*\.)?(Abort|Finalize|_set_abort_status|fromaddress|Disconnect|Set_errhandler|Call_errhandler|Attach_buffer)"
    r"|(.*\.)?Add_error_.*"
    r"|(buffer|memory)\.(release|__.*)|pickle.*|rc.*|.*\.(exit|Exit)"
)

NUMBERS = (
    "0", "1", "-1", "2", "-2", "3", "7", "255", "2**15", "2**31-1", "2**31", "-2**31", "2**32", "2**62", "2**63-1",
    "2**63", "-2**63", "2**64", "10**30", "True", "1.5", "float('nan')", "numpy.int64(1)", "numpy.array(1)",
    "MPI.ANY_SOURCE", "MPI.PROC_NULL", "MPI.ROOT", "MPI.UNDEFINED", "MPI.ANY_TAG",
)  # fmt: skip
SMALL = ("0", "0", "0", "1", "-1", "2", "MPI.PROC_NULL", "MPI.ANY_SOURCE", "2**31-1", "7")
TYPES = (
    "MPI.INT", "MPI.DOUBLE", "MPI.BYTE", "MPI.CHAR", "MPI.DOUBLE_INT", "MPI.LONG_DOUBLE", "MPI.C_DOUBLE_COMPLEX", "'i'",
    "'d'", "'Z'", "MPI.DATATYPE_NULL", "v.vector", "v.negative", "v.beyond", "v.empty", "v.overlapping", "v.struct",
    "v.freed_type", "v.uncommitted", "MPI.Datatype()",
)  # fmt: skip
MEMORY = (
    "bytearray(64)", "bytearray(8)", "bytearray()", "b'12345678'", "numpy.zeros(8)", "numpy.zeros((4, 4), 'i')",
    "numpy.zeros((4, 4))[:, 1]", "numpy.zeros(8, '>i4')", "numpy.zeros(4, 'O')", "numpy.zeros(3, 'S5')",
    "memoryview(bytes(16))", "memoryview(bytearray(32))[::2]", "array.array('d', range(9))", "MPI.buffer.allocate(64)[:0]",
    "MPI.buffer.allocate(32)", "None", "numpy.zeros(0)", "numpy.arange(12, dtype='u1').reshape(3, 4).T",
    "bytearray(1 << 20)", "numpy.zeros(5, 'M8[s]')", "numpy.zeros(2, [('a', 'i4'), ('b', 'f8')])", "numpy.ma.zeros(4)",
    "MPI.IN_PLACE", "v.readonly", "v.liar",
)  # fmt: skip
COUNTS = (
    *NUMBERS, "None", "(1,)", "[1]", "[2, 1]", "(0, 0)", "(1, 7)", "(2**62, 2**62)", "([1], [0])", "([1], [-1])",
    "([8], None)", "([2**62], [2**62])", "range(2)", "'12'", "numpy.array([1])", "numpy.zeros(3)", "[None]",
    "([1, 1], [0, 4])",
)  # fmt: skip
OTHERS = (
    "None", "5", "'text'", "''", "b''", "object()", "[]", "()", "{}", "[[]]", "(1, 2, 3, 4, 5)", "lambda *a, **k: None",
    "lambda *a: 1 / 0", "int", "MPI", "MPI.Comm", "...", "NotImplemented", "iter([])", "range(3)", "slice(0, 2)",
    "v.cycle", "v.liar", "v.odd", "'\\udcff'", "'x' * 100000", "'\\0'", "{1: 2}", "set()", "1j", "v.long_list",
)  # fmt: skip
COMMS = (
    "v.comm", "v.comm", "MPI.COMM_SELF", "MPI.COMM_WORLD", "MPI.COMM_NULL", "v.cart", "v.graph", "v.distgraph",
    "v.freed_comm", "MPI.Intercomm()", "MPI.Comm()", "MPI.Intracomm()", "MPI.Cartcomm()", "v.free_twin",
)  # fmt: skip
KINDS: dict[str, tuple[str, ...]] = {
    "comm": COMMS,
    "group": ("v.group", "MPI.GROUP_EMPTY", "MPI.GROUP_NULL", "MPI.Group()"),
    "op": ("MPI.SUM", "MPI.MAXLOC", "MPI.BXOR", "MPI.NO_OP", "MPI.REPLACE", "MPI.OP_NULL", "v.op", "v.raising_op", "max"),
    "status": ("None", "v.status", "MPI.Status()", "[]", "[MPI.Status()]"),
    "info": ("MPI.INFO_NULL", "v.info", "MPI.INFO_ENV", "MPI.Info()", "{'a': 'b'}"),
    "request": ("MPI.REQUEST_NULL", "v.done", "v.pending()", "v.persistent()", "MPI.Request()", "MPI.Prequest()", "v.greq()"),
    "requests": (
        "[]",
        "[MPI.REQUEST_NULL]",
        "[v.pending()]",
        "[v.done, v.persistent()]",
        "(v.pending(), v.pending())",
        "[None]",
    ),
    "errhandler": ("MPI.ERRORS_RETURN", "MPI.ERRHANDLER_NULL", "MPI.Errhandler()"),
    "win": ("v.win", "MPI.WIN_NULL", "v.dynamic", "v.freed_win", "MPI.Win()"),
    "message": ("MPI.MESSAGE_NULL", "MPI.MESSAGE_NO_PROC", "v.message()", "MPI.Message()"),
    "datatype": TYPES,
    "session": ("MPI.SESSION_NULL", "MPI.Session()", "v.session"),
    "keyval": ("v.keyval", "0", "-1", "2**31-1", "MPI.KEYVAL_INVALID", "MPI.TAG_UB"),
    "file": ("MPI.FILE_NULL", "MPI.File()"),
    "buffer": ("MPI.buffer.allocate(16)", "MPI.buffer.frombuffer(bytearray(8))", "MPI.buffer()"),
    "pickle": ("MPI.Pickle()",),
}
OF_CLASS = {
    "Comm": "comm", "Intracomm": "comm", "Topocomm": "comm", "Cartcomm": "comm", "Graphcomm": "comm",
    "Distgraphcomm": "comm", "Intercomm": "comm", "Group": "group", "Op": "op", "Status": "status", "Info": "info",
    "Request": "request", "Prequest": "request", "Grequest": "request", "Errhandler": "errhandler", "Win": "win",
    "Message": "message", "Datatype": "datatype", "Session": "session", "File": "file", "buffer": "buffer",
    "memory": "buffer", "Pickle": "pickle",
}  # fmt: skip
# Substrings of parameters' names, and what they want.
WANTS = (
    ("requests", "requests"), ("request", "request"), ("status", "status"), ("comm", "comm"), ("group", "group"),
    ("info", "info"), ("datatype", "datatype"), ("errhandler", "errhandler"), ("message", "message"),
    ("keyval", "keyval"), ("win", "win"),
)  # fmt: skip
BUFFERS = ("buf", "origin", "result", "compare", "memory", "inbuf", "outbuf", "mem")
INTEGERS = (
    "dest",
    "source",
    "root",
    "rank",
    "tag",
    "count",
    "size",
    "position",
    "disp",
    "key",
    "color",
    "assertion",
    "lock_type",
    "n",
)


class Odd:
    """Says yes to everything."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given: object, **named: object) -> object:
        return self

    def __index__(self) -> int:
        raise RuntimeError("no number")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, item: object) -> object:
        return self


class Liar:
    """Memory, as a device says it; its length is not true."""

    __cuda_array_interface__ = {"shape": (-4,), "typestr": "<f8", "data": (0, False), "version": 3}


class Values:
    """What expressions find under `v`."""

    def __init__(self, mpi: types.ModuleType) -> None:
        self.mpi = mpi
        self.build()

    def build(self) -> None:
        mpi = self.mpi
        self.comm = mpi.COMM_SELF.Dup()
        self.cart = mpi.COMM_SELF.Create_cart([1, 1], [True, False])
        self.graph = mpi.COMM_SELF.Create_graph([0], [])
        self.distgraph = mpi.COMM_SELF.Create_dist_graph_adjacent([0], [0])
        self.freed_comm = mpi.COMM_SELF.Dup()
        self.free_twin = mpi.Intracomm(self.freed_comm)
        self.freed_comm.Free()
        self.vector = mpi.INT.Create_vector(3, 1, 2).Commit()
        self.negative = mpi.INT.Create_hvector(3, 1, -8).Commit()
        self.beyond = mpi.INT.Create_hindexed([1, 1], [0, 4096]).Create_resized(0, 4).Commit()
        self.empty = mpi.INT.Create_contiguous(0).Commit()
        self.overlapping = mpi.INT.Create_hvector(1 << 40, 1, 0).Commit()
        self.struct = mpi.Datatype.Create_struct([1, 2], [0, 8], [mpi.INT, mpi.DOUBLE]).Commit()
        self.uncommitted = mpi.DOUBLE.Create_contiguous(2)
        self.freed_type = mpi.INT.Dup()
        self.freed_type.Free()
        self.group = mpi.COMM_WORLD.Get_group()
        self.op = mpi.Op.Create(lambda a, b, t: None)
        self.raising_op = mpi.Op.Create(lambda a, b, t: 1 / 0)
        self.status = mpi.Status()
        self.info = mpi.Info.Create({"a": "b"})
        self.done = mpi.COMM_SELF.Irecv(bytearray(1), mpi.PROC_NULL)
        self.win = mpi.Win.Allocate(64, comm=mpi.COMM_SELF)
        self.dynamic = mpi.Win.Create_dynamic(comm=mpi.COMM_SELF)
        self.freed_win = mpi.Win.Allocate(8, comm=mpi.COMM_SELF)
        self.freed_win.Free()
        self.session = mpi.Session.Init()
        self.keyval = mpi.Comm.Create_keyval()
        self.readonly = memoryview(bytes(16))
        self.liar, self.odd = Liar(), Odd()
        self.cycle: list[object] = []
        self.cycle.append(self.cycle)
        self.long_list = [0] * 70_000

    def discard(self) -> None:
        for value in list(vars(self).values()):
            if value is not self.mpi and hasattr(value, "free"):
                with contextlib.suppress(Exception):
                    value.free()

    def pending(self) -> object:
        return self.mpi.COMM_SELF.Irecv(bytearray(4), 0, 77)

    def persistent(self) -> object:
        return self.mpi.COMM_SELF.Recv_init(bytearray(4), 0, 78)

    def greq(self) -> object:
        return self.mpi.Grequest.Start(None, None, None)

    def message(self) -> object:
        self.mpi.COMM_SELF.Send(b"1234", 0, 79)
        return self.mpi.COMM_SELF.Improbe(0, 79)


class Interrupted(Exception):
    """A call that waits has waited long enough."""


class Alarm:
    """Interrupts what takes longer than PATIENCE."""

    armed = False

    def __enter__(self) -> None:
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def __exit__(self, *problem: object) -> None:
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def ring(self, number: int, frame: object) -> None:
        if self.armed:
            raise Interrupted


alarm = Alarm()


class Callable_:
    """Something that can be called: its name, the class that it is a method of, and its parameters' names."""

    def __init__(self, path: str, owner: str, parameters: list[str]) -> None:
        self.path, self.owner, self.parameters = path, owner, parameters


def parameters_of(value: object) -> list[str]:
    """From the signature in the first line of the docstring."""
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    inner = re.match(r"[\w.]+\((.*)\)", first)
    names = (
        [part.split(":")[0].split("=")[0].split()[-1] for part in re.split(r",\s*(?![^\[(]*[\])])", inner[1]) if part.split()]
        if inner
        else []
    )
    return [name for name in names if name not in ("self", "cls", "/", "*") and not name.startswith("*")]


def everything(mpi: types.ModuleType) -> list[Callable_]:
    found = []
    for name, value in sorted(vars(mpi).items()):
        if name.startswith("__") or not callable(value) or LEFT_ALONE.fullmatch(name):
            continue
        if not isinstance(value, type):
            if isinstance(value, (types.BuiltinFunctionType, types.FunctionType)):
                found.append(Callable_(name, "", parameters_of(value)))
            continue
        if not value.__module__.startswith("ompy"):
            continue
        found.append(Callable_(name, "", parameters_of(value)))
        for inner in dir(value):
            path = f"{name}.{inner}"
            member = inspect.getattr_static(value, inner)
            if LEFT_ALONE.fullmatch(path) or inner in (
                "__class__",
                "__init_subclass__",
                "__subclasshook__",
                "__new__",
                "__dir__",
            ):
                continue
            if isinstance(member, (staticmethod, classmethod)) or type(member).__name__ == "classmethod_descriptor":
                found.append(Callable_(path, "", parameters_of(getattr(value, inner))))
            elif callable(member):
                found.append(Callable_(path, name, parameters_of(member)))
            elif inspect.isdatadescriptor(member) and not inner.startswith("__"):
                found.append(Callable_(f"{path}.__get__", name, []))
                found.append(Callable_(f"{path}.__set__", name, ["value"]))
    return found


def specification(rng: random.Random) -> str:
    """A message, in one of the forms that there are, or nearly."""
    memory = rng.choice(MEMORY)
    form = rng.randrange(7)
    if form < 2:
        return memory
    kind, count = rng.choice(TYPES), rng.choice(COUNTS)
    if form == 2:
        return f"[{memory}, {kind}]"
    if form == 3:
        return f"[{memory}, {count}, {kind}]"
    if form == 4:
        return f"[{memory}, {count}, {rng.choice(COUNTS)}, {kind}]"
    if form == 5:
        return f"[{memory}, ([{rng.choice(NUMBERS)}], [{rng.choice(NUMBERS)}]), {rng.choice((kind, f'[{kind}]'))}]"
    return f"[{memory}, {count}]"


def argument(rng: random.Random, name: str) -> str:
    lower = name.lower()
    if rng.random() < 0.2:
        return rng.choice(rng.choice((NUMBERS, OTHERS, OTHERS, COUNTS, MEMORY, *KINDS.values())))
    if any(part in lower for part in BUFFERS):
        return specification(rng)
    for part, kind in WANTS:
        if part in lower:
            return rng.choice(KINDS[kind])
    if lower == "op":
        return rng.choice(KINDS["op"])
    if any(part in lower for part in INTEGERS):
        return rng.choice(SMALL if rng.random() < 0.7 else NUMBERS)
    return rng.choice(rng.choice((NUMBERS, OTHERS, COUNTS, MEMORY, SMALL)))


class Arguments:
    name = "arguments"

    def begin(self) -> None:
        import array

        import numpy

        from ompy import MPI

        self.mpi = MPI
        self.callables = everything(MPI)
        self.values = Values(MPI)
        self.names = {"MPI": MPI, "numpy": numpy, "array": array, "v": self.values}
        signal.signal(signal.SIGALRM, alarm.ring)
        # What the first wait opens stays, and so does the launcher of whoever spawns.
        with contextlib.suppress(Interrupted), alarm:
            MPI.COMM_SELF.Recv(bytearray(1), 0)
        with contextlib.suppress(MPI.Exception):
            MPI.COMM_SELF.Spawn("/nonexistent")
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))

    def make(self, rng: random.Random) -> object:
        if not hasattr(self, "callables"):
            from ompy import MPI

            self.callables = everything(MPI)
        it = rng.choice(self.callables)
        named = it.parameters if it.parameters or rng.random() < 0.7 else ["value"] * rng.randrange(4)
        some = named[: rng.randrange(len(named) + 1)] if rng.random() < 0.3 else named
        arguments = [argument(rng, name) for name in some]
        if rng.random() < 0.05:
            arguments.append(rng.choice(OTHERS))
        keyword = ""
        if arguments and rng.random() < 0.1 and len(some) == len(arguments):
            keyword = f"{some[-1]}={arguments.pop()}"
        if it.owner:
            pool = KINDS.get(OF_CLASS.get(it.owner, ""), ())
            own = pool or (f"MPI.{it.owner}()",)
            arguments.insert(0, rng.choice(own) if rng.random() < 0.85 else rng.choice(OTHERS + NUMBERS))
        return f"MPI.{it.path}({', '.join([*arguments, keyword] if keyword else arguments)})"

    def carry_out(self, given: object) -> str:
        try:
            with alarm:
                result = eval(str(given), self.names)
            with alarm:
                self.take_back(result)
        except SystemError as error:
            return f"SystemError: {error}"
        except (Exception, GeneratorExit):
            pass
        return ""

    def take_back(self, result: object) -> None:
        """A request is cancelled, an object freed, a port closed."""
        mpi = self.mpi
        if isinstance(result, mpi.Request) and result:
            with contextlib.suppress(mpi.Exception):
                result.Cancel()
            if not result.Test():
                result.free()
        elif isinstance(result, str):
            with contextlib.suppress(mpi.Exception):
                mpi.Close_port(result)
        elif isinstance(result, mpi.buffer) and result:
            with contextlib.suppress(mpi.Exception):
                mpi.Free_mem(result)
        elif isinstance(result, (mpi.Comm, mpi.Win, mpi.Datatype, mpi.Group, mpi.Info, mpi.Op, mpi.Session)):
            known = [getattr(self.values, name) for name in vars(self.values)]
            if not any(result is value for value in known):
                result.free()

    def settle(self) -> None:
        """Messages that nobody received, objects that calls have changed: begin again with new ones."""
        mpi = self.mpi
        for comm in (mpi.COMM_SELF, mpi.COMM_WORLD, self.values.comm):
            with contextlib.suppress(Exception):
                while (message := comm.Improbe()) is not None:
                    with contextlib.suppress(Exception):
                        message.recv()
        self.values.discard()
        self.values.build()
        with contextlib.suppress(Exception):
            mpi.Detach_buffer()
        gc.collect()

    def show(self, given: object) -> str:
        return str(given)
