"""From opening a transport to the first message."""

from __future__ import annotations

import threading
import time
from traceback import format_exc

from ompy.core import progress
from ompy.core.request import Request
from ompy.mca import btl as contract
from ompy.mca.btl import FREE_TAGS, Btl, Endpoint
from ompy.testing.conformance.btl.rank import BtlRank, altered
from ompy.testing.conformance.check import Breach, Collection

check = Collection()

FLAGS = {
    "send": contract.SEND,
    "put": contract.PUT,
    "get": contract.GET,
    "atomics": contract.ATOMICS,
    "in_order": contract.IN_ORDER,
    "asynchronous_progress": contract.ASYNCHRONOUS,
    "renewal": contract.RENEWAL,
}
METHODS = {"put": "put", "get": "get", "atomics": "atomic", "renewal": "renew"}
# A call that does not wait is much shorter than this even where other programs take the core, once in so many calls.
WAITING, CALLS = 2e-3, 20
ROUNDS = 20
TIME_TO_FALL_ASLEEP = 1e-3


@check("open", unmet=True)
def limits_are_filled_in(rank: BtlRank) -> None:
    btl = rank.btl
    for name in ("max_send_size", "eager_limit", "rndv_eager_limit", "put_alignment", "get_alignment", "latency", "bandwidth"):
        least = 0 if name in ("latency", "rndv_eager_limit") else 1
        if getattr(btl, name) < least:
            raise Breach("open", f"{name} is {getattr(btl, name)}, less than {least}")
    for name in ("eager_limit", "rndv_eager_limit"):
        if getattr(btl, name) > btl.max_send_size:
            raise Breach("open", f"{name} {getattr(btl, name)} is above max_send_size {btl.max_send_size}")


@check("declaration", unmet=True)
def flags_and_capabilities_say_the_same(rank: BtlRank) -> None:
    declared = rank.component.capabilities
    if declared.get("reach") not in ("process", "host", "network"):
        raise Breach("declaration", f"the capability reach is {declared.get('reach')!r}, not process, host or network")
    for name, flag in FLAGS.items():
        said, flagged = declared.get(name, False), bool(rank.btl.flags & flag)
        # A string tells of circumstances, in which alone the flag is set.
        if not isinstance(said, str) and bool(said) != flagged:
            raise Breach("declaration", f"the capability {name} is {said!r}, and the flag is {'set' if flagged else 'not set'}")
        method = METHODS.get(name)
        if method and not said and getattr(type(rank.btl), method) is not getattr(Btl, method):
            raise Breach("declaration", f"{name} is not declared, and the method {method} is there")
        if method and flagged and getattr(type(rank.btl), method) is getattr(Btl, method):
            raise Breach("declaration", f"{name} is declared, and the method {method} is not overridden")


@check("statistics", unmet=True)
def numbers_can_be_asked_for_before_the_first_peer(rank: BtlRank) -> None:
    look_at_statistics(rank)


def look_at_statistics(rank: BtlRank) -> None:
    try:
        numbers = rank.btl.statistics()
    except Exception:
        raise Breach("statistics", f"statistics() raised\n{format_exc()}") from None
    for name, number in numbers.items():
        if not isinstance(name, str) or not isinstance(number, int | float):
            raise Breach("statistics", f"statistics() has {number!r} under {name!r}, not a number under a name")


@check("publish", unmet=True)
def the_address_stays_the_same(rank: BtlRank) -> None:
    first = rank.address
    for address in (rank.btl.address(), rank.btl.address()):
        if not isinstance(address, bytes) or address != first:
            raise Breach("publish", f"address() was {first!r} and is {address!r}")


@check("connect", ranks=2, abroad=True, unmet=True)
def a_peer_may_send_before_it_is_known(rank: BtlRank) -> None:
    """Rank 0 meets the others and sends; they have not called `add_procs` yet."""
    if rank.rank == 0:
        answers = rank.btl.add_procs(rank.procs[1:])
        rank.peers = {peer: answer for peer, answer in enumerate(answers, 1) if isinstance(answer, Endpoint)}
        if len(rank.peers) < len(answers):
            raise Breach("reach", f"a peer on this host is not reached: {[it for it in answers if isinstance(it, str)]}")
        for peer in rank.peers:
            rank.send(peer, rank.content(0, peer, 0, 100))
        rank.meet()
        rank.land()
        rank.peers = {}
    else:
        rank.until(lambda: rank.arrived, "a message to a process that has not called add_procs did not arrive")
        (arrival,) = rank.arrived
        sent = rank.content(0, rank.rank, 0, 100)
        if arrival.data != sent:
            problem = altered(sent, arrival.data) or "it was another message"
            raise Breach("connect", f"sent to a process that has not called add_procs: {problem}")
        if arrival.source is not None:
            raise Breach("sender", f"the endpoint of rank {arrival.source} was given before any was made")
        rank.meet()
    rank.arrived.clear()
    rank.meet()


@check("reach", unmet=True)
def every_proc_gets_an_endpoint_or_a_reason(rank: BtlRank) -> None:
    answers = rank.btl.add_procs(rank.procs)
    if len(answers) != rank.size:
        raise Breach("reach", f"add_procs gave {len(answers)} answers for {rank.size} processes")
    reach = rank.component.capabilities.get("reach", "network")
    for peer, answer in enumerate(answers):
        if isinstance(answer, Endpoint):
            if answer.proc is not rank.procs[peer] or answer.btl is not rank.btl:
                raise Breach("reach", f"the endpoint for rank {peer} names {answer.proc!r} and {answer.btl!r}")
        elif not isinstance(answer, str) or not answer.strip():
            raise Breach("reach", f"the answer for rank {peer} is {answer!r}, neither an Endpoint nor a reason")
        elif (reach == "process") == (peer == rank.rank):
            raise Breach("reach", f"rank {peer} is within reach ({reach}), but: {answer}")
    again = rank.btl.add_procs(rank.procs)
    for peer, (one, other) in enumerate(zip(answers, again, strict=True)):
        if isinstance(one, Endpoint) and one is not other:
            raise Breach("reach", f"asked again, add_procs gave another endpoint for rank {peer}")


@check("progress", idle=True)
def progress_without_events_returns_at_once_with_none(rank: BtlRank) -> None:
    rank.meet()
    end = time.monotonic() + rank.patience
    while sum(rank.progress() for _ in range(CALLS)):
        if time.monotonic() > end:
            raise Breach("progress", f"progress has been reporting events for {rank.patience:g} s, and nothing is sent")
    shortest = 1.0
    for _ in range(CALLS):
        begin = time.monotonic()
        rank.progress()
        shortest = min(shortest, time.monotonic() - begin)
    rank.meet()
    if shortest > WAITING:
        raise Breach("progress", f"progress waits: the shortest of {CALLS} calls with nothing to do took {shortest:.6f} s")


class Awaited:
    """Waits in the engine, as MPI's calls do, for arrivals."""

    def __init__(self, rank: BtlRank) -> None:
        self.rank = rank
        self.request = Request()

    def __call__(self, *arrival: object) -> None:
        request, self.request = self.request, Request()
        request.succeed()

    def wait(self) -> None:
        progress.wait_request(self.request)


@check("sleep", ranks=2, abroad=True, idle=True)
def a_sleeper_is_woken(rank: BtlRank) -> None:
    """Messages go round, each rank asleep until its own comes; with no back-stop a lost wake-up is a silence."""
    before, after = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    rank.meet()
    rank.until(lambda: all(module.may_sleep() for module in rank.modules), "may_sleep stays false, and nothing is sent")
    rank.meet()
    progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=600_000)
    awaited = Awaited(rank)
    rank.react = awaited
    asleep = progress.counters()["sleeps"]
    for turn in range(ROUNDS):
        if rank.rank == turn % rank.size:
            time.sleep(TIME_TO_FALL_ASLEEP)
            rank.send(after, b"wake up")
        if before == turn % rank.size:
            if not rank.arrived:
                awaited.wait()
            rank.arrived.clear()
        rank.land()
        rank.meet()
    progress.configure()
    if progress.counters()["sleeps"] == asleep:
        raise Breach("sleep", f"in {ROUNDS} waits this rank never slept: `progress` or `may_sleep` keeps it awake")


@check("statistics")
def numbers_can_be_asked_for_at_any_time(rank: BtlRank) -> None:
    """Before, amid and after messages: from a receiver, and from another thread."""
    rank.react = lambda *arrival: look_at_statistics(rank)
    rank.transfer(lambda source: [(target, FREE_TAGS[0], bytes([source]) * 24) for target in range(rank.size)])
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(rank.btl.statistics())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise Breach("statistics", f"asked from another thread, statistics() raised {found[0]!r}")
    look_at_statistics(rank)
