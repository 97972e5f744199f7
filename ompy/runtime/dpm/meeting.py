"""Two groups that know nothing of each other become the two sides of an inter-communicator."""

from __future__ import annotations

import marshal

from ompy.core.circle import Circle
from ompy.core.errors import ERR_INTERN, ERR_OTHER, ERR_UNSUPPORTED_OPERATION, MPIError, code_of
from ompy.core.proc import process_table
from ompy.core.signals import KeptExceptions
from ompy.runtime import contexts, intercommunicators, internal_messages
from ompy.runtime.dpm import acquaintances
from ompy.runtime.dpm.channel import ANSWER
from ompy.runtime.modex import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ompy.core.communicator import Communicator
    from ompy.runtime.dpm.channel import Channel
    from ompy.runtime.instance import Instance


LIMIT = 60.0  # seconds for the other group's next word, once its root has proved itself


def meet(
    instance: Instance,
    local: Communicator,
    root: int,
    open_channel: Callable[[], Channel],
    interrupted: Callable[[], None] = lambda: None,
) -> Communicator:
    """An inter-communicator between the group of `local` and the one whose root is at the other end of the root's channel.

    Parameters:
        open_channel: called on the root alone; gives the channel.  What it raises is raised by every rank.
        interrupted: called on the root where a signal handler ends the meeting, before the other group can notice.

    Collective over `local`.

    Errors: ERR_UNSUPPORTED_OPERATION where messages of this job stay within it, before anybody is called or started.
    """
    if not instance.pml.serves_other_jobs():
        below = f" over mtl {instance.pml.mtl.name}" if hasattr(instance.pml, "mtl") else ""
        raise MPIError(
            ERR_UNSUPPORTED_OPERATION,
            f"pml {instance.pml.name}{below} carries messages within one job only: give every job --mca pml ob1, say",
        )
    channel: Channel | None = None
    news: Any = None
    new: list[int] = []
    own: BaseException | None = None
    with KeptExceptions() as exceptions:
        introductions = internal_messages.gather_values(local, introduction(instance), root)
        try:
            try:
                if local.rank == root:
                    if (kept := exceptions.first()) is not None:
                        raise kept
                    channel = open_channel()
                    news = exchange(instance, channel, introductions)
            except BaseException as error:
                own = error
                if not isinstance(error, MPIError):
                    interrupted()
                news = refusal(error, root)
            news = internal_messages.share_value(local, news, root)
            if own is not None:
                raise own
            check(news)
            problem = None
            try:
                indices = let_in(instance, local, news, new)
                if (kept := exceptions.first()) is not None:
                    raise kept
            except BaseException as error:
                own = error
                problem = refusal(error, local.rank)
            outcomes = internal_messages.gather_values(local, problem, root)
            outcome = None
            if local.rank == root:
                outcome = next((it for it in outcomes if it is not None), None)
                try:
                    if own is None and (kept := exceptions.first()) is not None:
                        raise kept
                    assert channel is not None
                    channel.send(marshal.dumps(outcome), LIMIT)
                    outcome = outcome or marshal.loads(channel.receive(LIMIT))
                except BaseException as error:
                    own = own or error
                    if not isinstance(error, MPIError):
                        interrupted()
                    outcome = refusal(error, root)
            outcome = internal_messages.share_value(local, outcome, root)
            if own is not None:
                raise own
            check(outcome)
            return intercommunicators.bridge(news["context"], news["local context"], local, indices)
        except BaseException:
            if new:
                instance.part_from(new)
            raise
        finally:
            if channel is not None:
                channel.close()


def refusal(error: BaseException, rank: int) -> dict[str, Any]:
    """An error of this rank's for other ranks."""
    if isinstance(error, MPIError):
        return {"error": code_of(error), "words": error.detail}
    return {"error": ERR_OTHER, "words": f"rank {rank} has raised {type(error).__name__}: {error}"}


def check(news: dict[str, Any] | None) -> None:
    if news is not None and "error" in news:
        raise MPIError(news["error"], news["words"])


def introduction(instance: Instance) -> tuple[str, int, bytes]:
    """What other jobs' processes must know of this one: of its transports, those that serve more than their own job."""
    card = {name: value for name, value in instance.modex.card.items() if name not in instance.transports}
    for btl in instance.btls:
        if btl.serves_other_jobs():
            card |= btl.cards()
    return instance.rte.job, instance.rte.rank, pack(card)


def exchange(instance: Instance, channel: Channel, ours: list[tuple[str, int, bytes]]) -> dict[str, Any]:
    """The root's part: our group for theirs.  Returns what every member of this group must know."""
    offer = contexts.offer_context()
    own = {"members": ours, "context": offer}
    channel.send(marshal.dumps(own), LIMIT)
    try:
        theirs = marshal.loads(channel.receive(LIMIT))
        members, their_offer = theirs["members"], theirs["context"]
    except (ValueError, EOFError, TypeError, KeyError):
        raise MPIError(ERR_INTERN, "what the other group says of itself can't be understood") from None
    present = {(job, rank) for job, rank, _ in ours}
    if any((job, rank) in present for job, rank, _ in members):
        raise MPIError(ERR_OTHER, "a process is in both groups, that which accepts and that which connects")
    return {
        "members": members,
        "context": min(offer, their_offer),
        "local context": contexts.offer_context(),
        "secret": channel.secret,
        "was called": channel.outward == ANSWER,
    }


def let_in(instance: Instance, local: Communicator, news: dict[str, Any], new: list[int]) -> list[int]:
    """Know the members of the other group: their indices.  Transports expect those who are `new`, which is filled here."""
    members = news["members"]
    # In the circle, those who were called come first.
    ours, theirs = (0, local.size) if news["was called"] else (len(members), 0)
    circle = Circle(news["secret"].hex()[:16], news["secret"], ours + local.rank, local.size + len(members))
    indices = []
    for place, (job, rank, card) in enumerate(members):
        if job == instance.rte.job:
            indices.append(rank)
        elif (job, rank) in acquaintances.indices:
            indices.append(acquaintances.indices[job, rank])
        else:
            if not new:
                compare(instance, job, unpack(card))
            new.append(acquaintances.remember(job, rank, card, circle, theirs + place))
            indices.append(new[-1])
    if new:
        for btl in instance.btls:
            btl.admit(circle)
        instance.tell_connected()
        elsewhere = (index for index in new if not instance.modex.is_here(unpack(acquaintances.known[index].card)))
        if (one := next(elsewhere, None)) is not None:
            # Where no transport of this job's leads there, the error has the reasons of each.
            instance.pml.add_proc(process_table().get(one))
    for job, rank, _ in members:
        if (job, rank) in acquaintances.failed:
            instance.lose(acquaintances.indices[job, rank], acquaintances.failed[job, rank])
    return indices


def compare(instance: Instance, job: str, card: dict[str, bytes]) -> None:
    """Raises MPIError where the other job can't work together with this one."""
    if card["pml"].decode("utf-8", "replace") != instance.pml.name:
        theirs = card["pml"].decode("utf-8", "replace")
        raise MPIError(
            ERR_OTHER, f"this job chose pml {instance.pml.name}, job {job} chose {theirs}: give both the same --mca pml"
        )
    if contexts.overlap(job, instance.rte.job):
        raise MPIError(
            ERR_INTERN, f"job {job} numbers its communicators as this one does, by chance: start one of the two again"
        )


def forget(instance: Instance, leaving: list[int]) -> None:
    """These processes are disconnected: nothing is kept of them."""
    table = {proc.index: proc for proc in process_table().known()}

    def let_go(index: int) -> None:
        if index in table:
            instance.pml.del_proc(table[index])
        instance.modex.forget(index)
        process_table().forget(index)

    for circle in acquaintances.part_from(leaving, let_go):
        for btl in instance.btls:
            btl.dismiss(circle)
