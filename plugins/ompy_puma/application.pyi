from collections.abc import Callable, Iterable
from typing import Any

from typing_extensions import Buffer

from ompy_puma.process import DropReason, EventKind, Process
from ompy_puma.transmission import SendVerdict

END: int
NEXT: int
ANY: int
ALL_BITS: int
TABLE_ENTRY: int

class Message:
    source_group: int
    source_rank: int
    match_bits: int
    length: int
    offset: int
    return_length: int
    is_acknowledgement: bool
    is_reply: bool
    user_data: bytes

class Happening:
    kind: EventKind
    reason: DropReason
    portal: int
    entry: int
    refused: int
    descriptor: int
    saved: int
    length: int
    owner: int
    message: Message

class Kept:
    message: Message
    state: int
    @property
    def body(self) -> bytes: ...
    def detach(self) -> None: ...
    def release(self) -> None: ...

class Table:
    count: int
    def __init__(self, memories: Iterable[Buffer], place: Buffer | None = None) -> None: ...

class Queued:
    status: int | None

class Application(Process):
    events: list[Happening] | None
    watcher: Callable[[Happening], object] | None
    def single(self, memory: Buffer, operation: int = ..., save: int = ..., options: int = 0) -> int: ...
    def independent(
        self, memories: Iterable[Buffer] | Table, operation: int = ..., save: int = ..., options: int = 0
    ) -> int: ...
    def combined(self, memories: Iterable[Buffer] | Table, operation: int = ..., options: int = 0) -> int: ...
    def dynamic(self, memory: Buffer, save: int = ..., options: int = 0) -> int: ...
    def overlay(self, below: int, save: int = ..., options: int = 0) -> int: ...
    def discard(self, descriptor: int) -> int: ...
    def set_aside(self, node: int, memory: object) -> bool: ...
    def take_back(self, node: int, memory: object) -> bool: ...
    def give_back(self, node: int, memory: object) -> None: ...
    def counters(self, descriptor: int) -> dict[str, Any]: ...
    def portal_counters(self, portal: int) -> tuple[int, int]: ...
    def buffer(self, descriptor: int, number: int) -> tuple[int, int, Message]: ...
    def free_buffer(self, descriptor: int, number: int) -> None: ...
    def rewind(self, descriptor: int, offset: int = 0) -> None: ...
    def letters(self, descriptor: int) -> list[Kept]: ...
    def heap_use(self, descriptor: int) -> tuple[int, int]: ...
    def attach(self, portal: int, descriptor: int) -> None: ...
    def close_portal(self, portal: int) -> None: ...
    def entry(
        self,
        descriptor: int,
        match_bits: int = 0,
        mask: int = ...,
        source_group: int = ...,
        source_rank: int = ...,
        too_long: int = ...,
        invalid: int = ...,
        owner: int = 0,
    ) -> int: ...
    def append(self, portal: int, entry: int, before: int = ...) -> None: ...
    def withdraw(self, entry: int) -> None: ...
    def forget(self, entry: int) -> None: ...
    def link(
        self, entry: int, *, no_match: int | None = None, too_long: int | None = None, invalid: int | None = None
    ) -> None: ...
    def start_list(self, portal: int, entry: int) -> None: ...
    def search(self, heap_descriptor: int, portal: int, entry: int, before: int = ...) -> Kept | None: ...
    @property
    def portal_table(self) -> memoryview: ...
    @property
    def match_entries(self) -> memoryview: ...
    @property
    def memory_descriptors(self) -> memoryview: ...
    def send(
        self,
        group: int,
        rank: int,
        portal: int,
        body: Buffer = b"",
        *,
        match_bits: int = 0,
        offset: int = 0,
        answer: int | None = None,
        answer_bits: int = 0,
        answer_length: int = 0,
        answer_offset: int = 0,
        user_data: bytes = b"",
    ) -> SendVerdict | Queued: ...
    def send_server(
        self,
        capability: int,
        body: Buffer = b"",
        *,
        match_bits: int = 0,
        offset: int = 0,
        answer: int | None = None,
        answer_bits: int = 0,
        answer_length: int = 0,
        answer_offset: int = 0,
        user_data: bytes = b"",
    ) -> SendVerdict | Queued: ...
