"""The frameworks, how many of its components each one takes, and the parameters that belong to no component."""

from __future__ import annotations

from ompy.mca.params import Parameter, registry


class Framework:
    """A kind of component.

    Attributes:
        name: `btl`, ...; its entry-point group is `ompy.<name>`.
        takes: "one" (the highest priority wins), "all" that can run, "each" (asked again for every communicator, window
            or file), or "named" (those that a person's settings speak of).
        summary: one line for people.
    """

    __slots__ = ("name", "summary", "takes")

    def __init__(self, name: str, takes: str, summary: str) -> None:
        self.name = name
        self.takes = takes
        self.summary = summary

    @property
    def group(self) -> str:
        return f"ompy.{self.name}"


FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    for framework in (
        Framework("rte", "one", "run-time environment: who this process is, and how it finds its peers"),
        Framework("plm", "one", "process launch: how ompyrun's proxy is started on another host"),
        Framework("btl", "all", "byte transfer layers"),
        Framework("bml", "one", "byte transfer management: which BTLs lead to a peer"),
        Framework("mtl", "one", "matching transport layers, under pml/cm"),
        Framework("rpi", "one", "request progression interfaces, under pml/rpi"),
        Framework("pml", "one", "point-to-point management: MPI's send and receive"),
        Framework("coll", "each", "collectives, per communicator and function"),
        Framework("osc", "each", "one-sided communication, per window"),
        Framework("io", "each", "files, per file: the handle, pointers and views"),
        Framework("fs", "each", "file systems, per file: open, close, delete, size, sync"),
        Framework("fbtl", "each", "file byte transfer layers, per file: one process's bytes to and from the file"),
        Framework("fcoll", "each", "collective accesses to files, per file"),
        Framework("sharedfp", "each", "shared file pointers, per file"),
        Framework("machine", "named", "simulated machines, joined by the components that run on them"),
        Framework("hook", "named", "watchers of bring-up, when named or when a parameter of theirs is set"),
    )
}

# Of which class in `ompy.mca.<framework>` an offer's modules are, and what each of them must have of its own.
OFFERED: dict[str, tuple[str, tuple[str, ...]]] = {
    "rte": ("Rte", ("put", "get", "commit_and_fence", "abort")),
    "plm": ("Plm", ()),
    "btl": ("Btl", ("add_procs", "progress")),
    "bml": ("Bml", ("add_proc", "del_proc")),
    "mtl": ("Mtl", ("isend", "irecv", "forget", "improbe", "imrecv")),
    "rpi": ("Rpi", ("progress",)),
    "pml": ("Pml", ("isend", "irecv", "improbe", "imrecv")),
    "coll": ("CollModule", ()),
    "osc": ("OscModule", ()),
    "io": ("IoModule", ()),
    "fs": ("FsModule", ()),
    "fbtl": ("FbtlModule", ("preadv", "pwritev", "fetch", "store")),
    "fcoll": ("FcollModule", ("read_all", "write_all")),
    "sharedfp": ("SharedfpModule", ("open", "get", "advance", "put")),
}

# The collective functions of MPI-4.1, chapters 6 and 8, in the order of `ompy.mca.coll`'s table.
FUNCTIONS = (
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce_scatter_block", "reduce_scatter",
    "scan", "exscan", "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
    "neighbor_alltoallw",
)  # fmt: skip

# Parameters of the core itself: section, and what can be set.
CORE: tuple[tuple[str, Parameter], ...] = (
    (
        "mpi",
        Parameter(
            "param_check",
            int,
            1,
            level=3,
            scope="all",
            choices=(0, 1, 2),
            help="check the arguments of MPI calls: 0 not at all, 1 on each rank, 2 collectives across ranks as well",
        ),
    ),
    (
        "mpi",
        Parameter(
            "initial_errhandler",
            str,
            "mpi_errors_are_fatal",
            level=3,
            choices=("mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"),
            help="what errors do until a program says otherwise, where its `rc.errors` is `default`; else they are exceptions",
        ),
    ),
    (
        "mpi",
        Parameter(
            "memory_alloc_kinds",
            str,
            "mpi,system",
            level=3,
            help="kinds of memory whose support is asked for; those that there are, mpi and system at any rate, are told by "
            "`Get_info`",
        ),
    ),
    (
        "mpi",
        Parameter(
            "connect_timeout",
            float,
            60.0,
            unit="s",
            range=(0.001, 86400.0),
            level=4,
            scope="local",
            help="until Connect gives up on a port at which nobody accepts",
        ),
    ),
    (
        "mpi",
        Parameter(
            "yield_when_idle",
            str,
            "auto",
            level=3,
            scope="local",
            choices=("auto", "yes", "no"),
            help="sleep soon while waiting; auto: where ranks of the job outnumber the cores of the host, or what a container "
            "may use of them",
        ),
    ),
    (
        "mpi",
        Parameter(
            "async_progress",
            bool,
            False,
            level=3,
            help="a thread moves messages, windows and non-blocking collectives on while the program computes; it needs the "
            "GIL for a moment, which NumPy lets go and pure Python hands over every 5 ms (sys.setswitchinterval)",
        ),
    ),
    (
        "mpi",
        Parameter(
            "partition_size",
            int,
            16384,
            unit="bytes",
            range=(1, 1 << 40),
            level=4,
            help="partitions that this process receives travel together, in parts of at least so many bytes; there are at most "
            "64 parts",
        ),
    ),
    (
        "mpi",
        Parameter(
            "numpy_heap",
            int,
            0,
            unit="bytes",
            range=(4096, 1 << 40),
            also=(0,),
            level=4,
            help="NumPy arrays of at least so many bytes live in the shared heap, where peers on this host read them in "
            "place; 0: none do",
        ),
    ),
    (
        "mpi",
        Parameter(
            "spin_us",
            float,
            -1.0,
            unit="us",
            range=(0, 1e6),
            also=(-1,),
            level=6,
            scope="local",
            help="a wait polls so long at first; -1: by itself",
        ),
    ),
    (
        "mpi",
        Parameter(
            "watch_us",
            float,
            -1.0,
            unit="us",
            range=(0, 1e6),
            also=(-1,),
            level=6,
            scope="local",
            help="then it only watches memory; -1: by itself",
        ),
    ),
    (
        "mpi",
        Parameter(
            "component_timeout",
            float,
            60.0,
            unit="s",
            range=(0.1, 86400),
            also=(0,),
            level=6,
            help="a component whose import or query takes longer is left out; 0: it may take for ever",
        ),
    ),
    (
        "trace",
        Parameter("output", str, "", level=3, help="record what becomes of each message, for Perfetto, in this file (JSON)"),
    ),
    (
        "trace",
        Parameter(
            "events",
            int,
            1 << 16,
            unit="events",
            range=(2, 1 << 24),
            level=4,
            help="events that a rank keeps, the latest; a power of two",
        ),
    ),
    (
        "ompyrun",
        Parameter(
            "grace",
            float,
            30.0,
            unit="s",
            range=(0, 86400),
            level=3,
            help="between the signal that tells a rank to end, because another one failed or somebody asked, and SIGKILL",
        ),
    ),
    (
        "ompyrun",
        Parameter(
            "host_silence",
            float,
            7.5,
            unit="s",
            range=(0.1, 86400),
            level=3,
            help="without a sign of life from another host, after which it counts as lost and the job ends; a proxy that hears "
            "nothing from ompyrun ends its ranks as soon",
        ),
    ),
    (
        "ompyrun",
        Parameter(
            "start_timeout",
            float,
            60.0,
            unit="s",
            range=(0.1, 86400),
            level=3,
            help="that the proxies of other hosts have to start and call back",
        ),
    ),
    (
        "ompyrun",
        Parameter(
            "fan_out",
            int,
            32,
            unit="hosts",
            range=(1, 65536),
            also=(0,),
            level=4,
            help="whose proxies one process starts: ompyrun, and where there are more hosts each proxy in turn; 0: ompyrun all",
        ),
    ),
    (
        "mpi",
        Parameter(
            "yield_us",
            float,
            -1.0,
            unit="us",
            range=(0, 1e6),
            also=(-1,),
            level=6,
            scope="local",
            help="then it offers its core to others; -1: by itself",
        ),
    ),
)


def declare() -> None:
    """Register the parameters of the frameworks and of the core; once is enough, again is harmless."""
    if "rte" in registry.entries:
        return
    for framework in FRAMEWORKS.values():
        name = framework.name
        registry.register(name, "", Parameter("", str, "", level=1, help=f"{name} components to use: a,b or ^c,d to exclude"))
        words = f"how much the {name} framework says about its choices: -1 nothing, 0 what matters, 1 choices, 2 more"
        registry.register(name, "base", Parameter("verbose", int, 0, range=(-1, 100), level=8, help=words, scope="local"))
    for section, parameter in CORE:
        registry.register(section, "", parameter)
    for function in FUNCTIONS:
        words = f"algorithm of {function}, of whichever component has it, wherever it can serve; `ompy explain` lists them"
        registry.register("coll", "", Parameter(f"{function}_algorithm", str, "auto", level=5, help=words, scope="all"))
