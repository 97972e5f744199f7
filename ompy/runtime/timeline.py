"""A picture of a job's messages, from the rings that its ranks recorded: Chrome's trace format, which Perfetto opens.

A rank is a process.  Its sends, receives, kept messages and waits are slices, on as many lines as overlap; fragments and the
choice of protocol are marks; an arrow leads from each send to its receive:

    rank 0   send      [ send to 1, tag 5, 100000 B ]
                           announced   sent sent  \\
    rank 1   receive   [ receive from 0, tag 5      | matched | .. ]
             wait        [ Recv ........................... ]
"""

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from glob import escape, glob
from typing import Any, NamedTuple

from ompy.core.board import OPERATIONS
from ompy.core.errors import ERR_FILE, MPIError
from ompy.core.trace import EVENT_FORMAT, KINDS, MAGIC, RING_FORMAT, WAYS, create

SPAWNED = "spawned "


class Event(NamedTuple):
    """As `ompy/core/trace.pxd` has it."""

    time: int
    begun: int
    request: int
    context: int
    nbytes: int
    source: int
    destination: int
    tag: int
    sequence: int
    kind: int
    detail: int


Message = tuple[int, int, int, int]  # context, source, destination, sequence


class Slice:
    """Something that lasted: from `begin` to `end`, in nanoseconds since the epoch."""

    __slots__ = ("arguments", "begin", "end", "family", "marks", "matched", "message", "name", "thread")

    def __init__(self, family: str, name: str, begin: int) -> None:
        self.family = family
        self.name = name
        self.begin = begin
        self.end = begin
        self.marks: list[tuple[int, str]] = []
        self.arguments: dict[str, object] = {}
        self.message: Message | None = None
        self.matched = 0
        self.thread = 0


class Recording:
    """One rank's ring.

    Parameters:
        path: of its file.
        job: which it belongs to, `SPAWNED` before its name if it was.
    """

    def __init__(self, path: str, job: str = "") -> None:
        self.job = job
        self.number = 0  # of its process in the picture
        with open(path, "rb") as stream:
            data = stream.read()
        size = struct.calcsize(RING_FORMAT)
        if len(data) < size or not data.startswith(MAGIC):
            raise MPIError(ERR_FILE, f"{path} is no recording of this version of ompy")
        _, self.epoch, capacity, self.written, self.rank, self.pid, host = struct.unpack_from(RING_FORMAT, data)
        self.host = host.rstrip(b"\0").decode()
        self.lost = max(0, self.written - capacity)
        events = [Event._make(fields) for fields in struct.iter_unpack(EVENT_FORMAT, data[size:])][: self.written]
        turn = self.written % capacity if self.lost else 0
        self.events = events[turn:] + events[:turn]

    def slices(self) -> list[Slice]:
        """What the events tell, put together by request and message."""
        found: list[Slice] = []
        open_slices: dict[int, Slice] = {}
        kept: dict[Message, Slice] = {}

        def begin(family: str, name: str, event: Event, since: int) -> Slice:
            it = Slice(family, name, since + self.epoch)
            it.end = event.time + self.epoch
            it.arguments = {"tag": event.tag, "bytes": event.nbytes, "communicator": f"{event.context:#x}"}
            found.append(it)
            return it

        for event in self.events:
            kind = KINDS[event.kind]
            time = event.time + self.epoch
            it = open_slices.get(event.request)
            if it is not None:
                it.end = time
            message = event.context, event.source, event.destination, event.sequence
            if kind == "sent":
                sent = begin("send", f"send to {event.destination}", event, event.begun)
                sent.arguments["protocol"] = "eager"
                sent.message = message
            elif kind == "started":
                it = open_slices[event.request] = begin("send", f"send to {event.destination}", event, event.time)
                it.message = message
            elif kind == "posted":
                source = "any" if event.source < 0 else str(event.source)
                open_slices[event.request] = begin("receive", f"receive from {source}", event, event.time)
            elif kind == "matched":
                if it is None:  # taken out by a matched probe before it was received
                    it = open_slices[event.request] = begin("receive", "", event, event.time)
                it.name = f"receive from {event.source}"
                it.arguments |= {"tag": event.tag, "bytes": event.nbytes}
                it.message, it.matched = message, time
                it.marks.append((time, "matched"))
                if message in kept:
                    kept.pop(message).end = time
            elif kind == "kept":
                kept[message] = begin("unexpected", f"from {event.source}", event, event.time)
            elif kind == "waited":
                operation = OPERATIONS[event.detail] if 0 < event.detail < len(OPERATIONS) else "wait"
                begin("wait", operation, event, event.begun)
            elif it is not None and kind == "announced":
                it.arguments["protocol"] = WAYS[event.detail]
                it.marks.append((time, f"announced, {WAYS[event.detail]}"))
            elif it is not None and kind == "fragment":
                it.marks.append((time, f"{event.nbytes} B {'received' if it.family == 'receive' else WAYS[event.detail]}"))
            elif it is not None and kind == "completed":
                if event.detail:
                    it.arguments["error class"] = event.detail
                del open_slices[event.request]
        for it in open_slices.values():
            it.arguments["complete"] = False
        return found


FAMILIES = ("send", "receive", "unexpected", "wait")
LINES = 1000  # of one family; more slices than that at a time are drawn over one another


def lay_out(slices: list[Slice]) -> None:
    """Give each slice a line of its family, so that none overlap."""
    for number, family in enumerate(FAMILIES):
        ends: list[int] = []
        for it in sorted((it for it in slices if it.family == family), key=lambda it: it.begin):
            line = next((line for line, end in enumerate(ends) if end <= it.begin), len(ends))
            ends[line : line + 1] = [it.end]
            it.thread = number * LINES + min(line, LINES - 1)


def arrows(recordings: dict[Recording, list[Slice]]) -> Iterator[tuple[Recording, Slice, Recording, Slice]]:
    """Each send with its receive.

    Sequence numbers come round again after 65536 messages; where a ring was too small for all, the latest are paired.
    """
    sends: dict[Message, list[tuple[Recording, Slice]]] = {}
    receives: dict[Message, list[tuple[Recording, Slice]]] = {}
    for recording, slices in recordings.items():
        for it in slices:
            if it.message is not None and it.family in ("send", "receive"):
                (sends if it.family == "send" else receives).setdefault(it.message, []).append((recording, it))
    for message, those in sends.items():
        theirs = receives.get(message, [])
        jobs = {recording.job for recording, _ in (*those, *theirs)}
        # No two jobs have one number for different communicators: this one is between two.
        for job in jobs:
            left = [it for it in those if it[0].job == job]
            right = [it for it in theirs if it[0].job != job or len(jobs) == 1]
            for sender, receiver in zip(reversed(left), reversed(right), strict=False):
                yield *sender, *receiver


def timeline(recordings: list[Recording]) -> Iterator[dict[str, Any]]:
    """The events of Chrome's trace format; times are microseconds from the first."""
    drawn = {recording: recording.slices() for recording in recordings}
    start = min((it.begin for slices in drawn.values() for it in slices), default=0)

    def at(time: int) -> float:
        return (time - start) / 1000

    for number, (recording, slices) in enumerate(drawn.items()):
        lay_out(slices)
        recording.number = number
        where = {"pid": number}
        whose = f" of {recording.job}" if recording.job.startswith(SPAWNED) else ""
        label = f"rank {recording.rank}{whose} ({recording.host}, pid {recording.pid})"
        if recording.lost:
            label += f", the first {recording.lost} events lost: raise trace_events"
        yield where | {"ph": "M", "name": "process_name", "args": {"name": label}}
        yield where | {"ph": "M", "name": "process_sort_index", "args": {"sort_index": number}}
        for thread in sorted({it.thread for it in slices}):
            name = FAMILIES[thread // LINES] + (f" {thread % LINES + 1}" if thread % LINES else "")
            yield where | {"tid": thread, "ph": "M", "name": "thread_name", "args": {"name": name}}
            yield where | {"tid": thread, "ph": "M", "name": "thread_sort_index", "args": {"sort_index": thread}}
        for it in slices:
            place = where | {"tid": it.thread, "cat": it.family}
            length = max(it.end - it.begin, 1) / 1000
            yield place | {"ph": "X", "name": it.name, "ts": at(it.begin), "dur": length, "args": it.arguments}
            for time, words in it.marks:
                yield place | {"ph": "i", "s": "t", "name": words, "ts": at(time)}
    for number, (sender, send, receiver, receive) in enumerate(arrows(drawn), 1):
        arrow = {"cat": "message", "name": "message", "id": number}
        yield arrow | {"ph": "s", "pid": sender.number, "tid": send.thread, "ts": at(send.begin)}
        yield arrow | {"ph": "f", "bp": "e", "pid": receiver.number, "tid": receive.thread, "ts": at(receive.matched)}


def refusal(output: str) -> str:
    """Why a file of that name can't be written, before anything is recorded for it; empty where it can."""
    folder = os.path.dirname(output) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK):
        return f"no file can be made in {folder}"
    if os.path.lexists(output) and not stat.S_ISREG(os.lstat(output).st_mode) and not os.path.islink(output):
        return f"{output} is no regular file"
    return ""


def rings(output: str) -> list[str]:
    """The recordings that wait to be put together into `output`: this user's files, not what others have put there."""
    found = []
    for path in glob(f"{escape(output)}.*.ring"):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            found.append(path)
    return sorted(found)


def collect(output: str) -> int:
    """Put the ranks' recordings together into the file `output`, and remove them; returns how many there were."""
    paths = rings(output)
    # run.json.<job>.<rank>.ring
    recordings = [Recording(path, path[len(output) + 1 :].rsplit(".", 2)[0]) for path in paths]
    recordings.sort(key=lambda recording: (recording.job.startswith(SPAWNED), recording.job, recording.rank))
    with open(create(output), "w", encoding="utf-8") as stream:
        stream.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, event in enumerate(timeline(recordings)):
            stream.write(",\n" * (number > 0) + json.dumps(event, separators=(",", ":")))
        stream.write("\n]}\n")
    for path in paths:
        with suppress(FileNotFoundError):
            os.remove(path)
    return len(paths)
