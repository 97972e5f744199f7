"""The bring-up of one process: from parameters to communicators, and back.

parameters -> rte -> btl -> bml -> pml        each framework chooses its components
                      |
                    addresses on the card -> modex fence -> world and self
"""

from __future__ import annotations

# The module without underscore costs an enum, which nothing else at start-up needs.
import _signal as signals  # type: ignore[import-not-found]

from ompy.core.clock import is_simulated
from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.group import make_group, set_this_process
from ompy.core.proc import process_table
from ompy.core.progress import (
    abandon,
    check_lifeline,
    end,
    register_source,
    set_lifeline,
    shutdown,
    unregister_source,
)
from ompy.mca import coll_selection, selection
from ompy.mca import pml as pml_framework
from ompy.mca.hook import hooks
from ompy.mca.params import registry
from ompy.runtime import abort, tracing, waiting
from ompy.runtime.modex import Modex
from ompy.runtime.orphans import ORPHANED, hear_of_parents_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.progress_thread import ProgressThread
    from ompy.mca.bml import Bml
    from ompy.mca.btl import Btl
    from ompy.mca.pml import Pml
    from ompy.mca.rte import Rte

FINALISED = "MPI was finalised"
FORKED = "this process was forked by a rank, which alone is part of the job: communicate there"

WORLD_CONTEXT = 1
SELF_CONTEXT = 2


class Instance:
    """Everything between the environment and the MPI layer, of one process.

    Attributes:
        rte, btls, bml, pml: the chosen modules.
        progress_thread: moves the engine while the program computes, where that was asked for.
        world, own: the communicators behind MPI_COMM_WORLD and MPI_COMM_SELF.
    """

    def __init__(self) -> None:
        self.rte: Rte = selection.select("rte")[0]
        self.watch_launcher()
        abort.install(self.rte)
        waiting.configure(self.rte)
        tracing.configure(self.rte)
        self.modex = Modex(self.rte)
        set_this_process(self.rte.rank)
        process_table().extend(self.rte.size)
        process_table().set_resolver(self.modex.proc)
        self.btls: list[Btl] = selection.select("btl")
        self.bml: Bml = selection.select("bml")[0]
        self.pml: Pml = selection.select("pml")[0]
        pml_framework.choose(self.pml)
        high = self.rte.job_number << 48
        self.world = Communicator(high | WORLD_CONTEXT, make_group(range(self.rte.size)), None, "MPI_COMM_WORLD")
        self.own = Communicator(high | SELF_CONTEXT, make_group([self.rte.rank]), None, "MPI_COMM_SELF")
        # Before the cards go out, which say who serves the world.
        self.world.coll = coll_selection.select_collectives(self.world)
        self.publish()
        for btl in self.btls:
            register_source(btl)
        self.pml.add_comm(self.world)
        self.serve(self.own)
        self.progress_thread: ProgressThread | None = None
        if registry.value("mpi_async_progress"):
            self.progress_thread = self.start_progress_thread()
        hooks.announce("ompy_initialized", instance=self)

    def start_progress_thread(self) -> ProgressThread:
        if is_simulated():
            raise MPIError(
                ERR_OTHER,
                "mpi_async_progress: on a simulated machine time passes only while the program waits: leave it out, or choose "
                "another transport",
            )
        from ompy.core.progress_thread import ProgressThread

        return ProgressThread()

    def publish(self) -> None:
        """Put every component's address on the card, and see that every rank chose the same PML and collectives."""
        card = self.modex.card
        card["pml"] = self.pml.name.encode()
        card["coll"] = coll_selection.on_card()
        for btl in self.btls:
            card |= btl.cards()
        self.modex.publish()
        if self.rte.rank != 0:
            theirs = process_table().get(0).card
            first = theirs.get("pml", b"").decode("utf-8", "replace")
            if first != self.pml.name:
                raise MPIError(
                    ERR_OTHER,
                    f"rank {self.rte.rank} chose pml {self.pml.name}, rank 0 chose {first}: give every rank the same --mca pml",
                )
            coll_selection.compare(theirs.get("coll", b""), 0, self.rte.rank)

    def serve(self, communicator: Communicator) -> None:
        """Let a new communicator carry messages and collectives."""
        self.pml.add_comm(communicator)
        communicator.coll = coll_selection.select_collectives(communicator)

    def release(self, communicator: Communicator) -> None:
        """The communicator is freed: give back what PML and collectives keep for it."""
        communicator.mark_freed()
        for module in communicator.coll.modules():
            module.free()
        communicator.coll = None
        self.pml.del_comm(communicator)

    def close(self) -> None:
        """Complete what was sent, leave the job, and leave nothing behind.

        Messages may still be on their way to a peer that needs this process to hand them over: all ranks meet first.
        A program that leaves with `sys.exit(1)` meets nobody: its peers may wait for what it never sent, and the launcher,
        which sees the exit code, ends them.
        """
        if self.progress_thread is not None:
            self.progress_thread.stop()
        if abort.leaves_in_failure():
            return
        self.pml.finalize()
        tracing.stop()
        # Who the others are is asked on the wire that the fence waits on.
        process_table().set_resolver(None)
        self.rte.commit_and_fence()
        tracing.collect(self.rte)
        for btl in self.btls:
            unregister_source(btl)
        for proc in process_table().known():
            self.pml.del_proc(proc)
        self.bml.finalize()
        shutdown()
        end(FINALISED)
        pml_framework.close(FINALISED)
        process_table().clear()
        set_lifeline(-1, None)
        self.rte.finalize()
        selection.forget()
        coll_selection.forget()

    def watch_launcher(self) -> None:
        """Notice that the launcher has gone, and its keeper too: in a wait that lasts, or by a signal wherever else it is."""
        set_lifeline(self.rte.descriptor, self.outlive_launcher)
        if self.rte.descriptor < 0:
            return
        try:
            # The parent may be a shell in between: only the wire tells.
            signals.signal(ORPHANED, lambda number, frame: check_lifeline())
        except ValueError:
            return  # Python lets only the main thread choose handlers: the waits are left
        hear_of_parents_end()

    def outlive_launcher(self) -> None:
        """The launcher has gone, and its keeper has not ended this rank: nobody else removes what the job leaves."""
        from ompy.runtime.keeper import sweep

        if self.rte.board is not None:
            sweep(self.rte.job)
        self.rte.poll()

    def leave_to_parent(self) -> None:
        """In a child made by fork: all of this stays the parent's, and what the child asks of it is an error."""
        abandon()
        end(FORKED)
        pml_framework.close(FORKED)
        abort.uninstall()
        set_lifeline(-1, None)  # its number may soon be another descriptor's
        self.rte.leave_to_parent()
