"""Puma's four kinds of portals (Puma, 4.1 to 4.4), as constructions of a portal and a memory descriptor.

| kind             | descriptor                                   | who decides where a message goes                    |
| ---------------- | -------------------------------------------- | --------------------------------------------------- |
| kernel managed   | dynamic block, header and body               | the kernel: a heap, letters in order of arrival     |
| receiver managed | independent block in a circle, header, body  | the receiver: the next of its buffers               |
| sender managed   | single block, sender's offset                | the sender; nobody else keeps account               |
| read memory      | single block to read, sender's offset        | the sender asks for a stretch, and gets it          |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy_puma.descriptor import CIRCULAR, READ, SAVE_BODY, SAVE_BOTH, SENDER_OFFSET, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

    from ompy_puma.application import Application


def kernel_managed(process: Application, portal: int, memory: Buffer) -> int:
    """Messages are kept in `memory`, in order of arrival, until they are released.  Returns the descriptor."""
    descriptor = process.dynamic(memory, SAVE_BOTH)
    process.attach(portal, descriptor)
    return descriptor


def receiver_managed(process: Application, portal: int, buffers: Iterable[Buffer]) -> int:
    """Each message goes into the next buffer, round and round; the process sets buffers free.  Returns the descriptor."""
    descriptor = process.independent(buffers, WRITE, SAVE_BOTH, CIRCULAR)
    process.attach(portal, descriptor)
    return descriptor


def sender_managed(process: Application, portal: int, memory: Buffer) -> int:
    """Senders write where they like in `memory`.  Returns the descriptor."""
    descriptor = process.single(memory, WRITE, SAVE_BODY, SENDER_OFFSET)
    process.attach(portal, descriptor)
    return descriptor


def read_memory(process: Application, portal: int, memory: Buffer) -> int:
    """Others read what they like of `memory`: a request gives offset, length and the portal for the reply."""
    descriptor = process.single(memory, READ, 0, SENDER_OFFSET)
    process.attach(portal, descriptor)
    return descriptor
