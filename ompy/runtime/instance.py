"""The bring-up of one process: from parameters to communicators, and back.

parameters -> rte -> btl -> bml -> pml        each framework chooses its components
                      |
                    addresses on the card -> modex fence -> world and self
"""

from __future__ import annotations

# The module without underscore costs an enum, which nothing else at start-up needs.
import _signal as signals  # type: ignore[import-not-found]
from _thread import RLock

from ompy.core.clock import is_simulated
from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.group import make_group, set_this_process
from ompy.core.listener import hear, set_listener
from ompy.core.proc import process_table
from ompy.core.progress import abandon, end, shutdown
from ompy.core.progress_source import register_source, unregister_source
from ompy.mca import coll_selection, osc_selection, selection
from ompy.mca import pml as pml_framework
from ompy.mca.hook import hooks
from ompy.mca.params import registry
from ompy.runtime import abort, tracing, waiting
from ompy.runtime.communicator_lifecycle import settle_all
from ompy.runtime.contexts import first_context
from ompy.runtime.dpm import acquaintances
from ompy.runtime.modex import Modex
from ompy.runtime.orphans import ORPHANED, hear_of_parents_end

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        world, own: the communicators behind MPI_COMM_WORLD and MPI_COMM_SELF.
    """

    def __init__(self) -> None:
        self.rte: Rte = selection.select("rte")[0]
        abort.install(self.rte)
        waiting.configure(self.rte)
        tracing.configure(self.rte)
        self.modex = Modex(self.rte)
        self.launcher_lock = RLock()
        set_this_process(self.rte.rank, self.rte.size)
        process_table().extend(self.rte.size)
        process_table().set_resolver(self.modex.proc)
        self.btls: list[Btl] = selection.select("btl")
        self.bml: Bml = selection.select("bml")[0]
        self.pml: Pml = selection.select("pml")[0]
        pml_framework.choose(self.pml)
        self.hear_launcher()
        first = first_context(self.rte.job, 0)
        self.world = Communicator(first | WORLD_CONTEXT, make_group(range(self.rte.size)), None, "MPI_COMM_WORLD")
        self.own = Communicator(first | SELF_CONTEXT, make_group([self.rte.rank]), None, "MPI_COMM_SELF")
        # Before the cards go out, which say who serves the world.
        self.world.coll = coll_selection.select_collectives(self.world)
        self.publish()
        for btl in self.btls:
            register_source(btl)
        self.pml.add_comm(self.world)
        self.serve(self.own)
        if registry.value("mpi_async_progress"):
            self.start_progress_thread()
        hooks.announce("ompy_initialized", instance=self)

    def start_progress_thread(self) -> None:
        """One that moves the engine while the program computes."""
        if is_simulated():
            raise MPIError(
                ERR_OTHER,
                "mpi_async_progress: on a simulated machine time passes only while the program waits: leave it out, or choose "
                "another transport",
            )
        from ompy.core import progress_thread

        progress_thread.employ()

    def publish(self) -> None:
        """Put every component's address on the card, and see that every rank chose the same PML and collectives."""
        card = self.modex.card
        card["pml"] = self.pml.name.encode()
        card["coll"] = coll_selection.on_card()
        self.transports: set[str] = set()
        for btl in self.btls:
            card |= btl.cards()
            self.transports |= btl.cards().keys()
        card |= self.pml.cards()
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

    def tell_connected(self) -> None:
        """Tell the launcher which jobs this process is connected with."""
        with self.launcher_lock:
            self.rte.tell_connected(acquaintances.jobs())

    def part_from(self, leaving: list[int]) -> None:
        """Processes of other jobs are disconnected."""
        from ompy.runtime.dpm.meeting import forget

        forget(self, leaving)
        self.tell_connected()

    def close(self) -> None:
        """Complete what was sent, leave the job, and leave nothing behind.

        Messages may still be on their way to a peer that needs this process to hand them over: all ranks meet first.
        A program that leaves with `sys.exit(1)` meets nobody: its peers may wait for what it never sent, and the launcher,
        which sees the exit code, ends them.
        """
        from ompy.core import progress_thread

        progress_thread.retire()
        if abort.leaves_in_failure():
            return
        settle_all()
        self.pml.finalize()
        tracing.stop()
        # Who the others are is asked on the wire that the fence waits on.
        process_table().set_resolver(None)
        self.rte.commit_and_fence()
        tracing.collect(self.rte)
        # What other threads are in the middle of ends, and no call of theirs begins, before anything is taken from under them.
        pml_framework.close(FINALISED)
        end(FINALISED)
        for btl in self.btls:
            unregister_source(btl)
        for proc in process_table().known():
            self.pml.del_proc(proc)
        self.pml.close()
        self.bml.finalize()
        shutdown()
        process_table().leave()
        set_listener(None)
        acquaintances.forget_all()
        self.rte.finalize()
        selection.forget()
        coll_selection.forget()
        osc_selection.forget()

    def hear_launcher(self) -> None:
        """Hear in waits that last which ranks have failed, and that the launcher has gone with its keeper.

        The latter also by a signal, wherever else this process is.
        """
        if self.rte.descriptor < 0:
            return
        set_listener(self.listen)
        try:
            # The parent may be a shell in between: only the wire tells.
            signals.signal(ORPHANED, lambda number, frame: hear())
        except ValueError:
            return  # Python lets only the main thread choose handlers: the waits are left
        hear_of_parents_end()

    def listen(self) -> None:
        """What the launcher has said: contact with ranks that have failed is over, whoever has tried it.

        Where it has gone, and its keeper has not ended this rank, nobody else removes what the job leaves.
        """
        try:
            failed = self.rte.listen()
        except EOFError:
            if self.rte.board is not None:
                from ompy.runtime.keeper import sweep

                sweep(self.rte.job)
            self.rte.outlive_launcher()
        for job, rank, how in failed:
            if job == self.rte.job:
                self.lose(rank, how)
            else:
                acquaintances.failed[job, rank] = how
                if (job, rank) in acquaintances.indices:
                    self.lose(acquaintances.indices[job, rank], how)

    def lose(self, index: int, how: str) -> None:
        """Contact with a process is over, as the launcher says how it has ended."""
        if not process_table().reaches(index):
            return  # never met, and not to be met any more
        if index < self.rte.size:
            self.modex.failed(index)
        self.pml.peer_lost(process_table().get(index), f"the launcher says that it {how}")

    def leave_to_parent(self) -> None:
        """In a child made by fork: all of this stays the parent's, and what the child asks of it is an error."""
        abandon()
        end(FORKED)
        pml_framework.close(FORKED)
        abort.uninstall()
        set_listener(None)
        self.rte.leave_to_parent()
