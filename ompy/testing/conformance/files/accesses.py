"""Views of files and what lies where in them, as a list of bytes sees them; accesses with memory of several layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ompy.core.file import Access, File
from ompy.core.memory import address_of
from ompy.core.typemap import Typemap, predefined
from ompy.core.view import View
from ompy.testing.conformance.check import Breach

BYTE = predefined(1)
UNTOUCHED = 0xEE


def views() -> Iterator[tuple[str, View]]:
    """Some of every kind: their names, and they."""
    nested = BYTE.create_vector(3, 1, 2).create_hvector(4, 1, 11).create_resized(0, 50)
    for name, displacement, filetype in (
        ("plain", 0, BYTE),
        ("plain from byte 7 on", 7, BYTE),
        ("every fifth byte", 3, BYTE.create_resized(0, 5)),
        ("blocks of different lengths", 0, BYTE.create_indexed([3, 1, 10], [2, 9, 11]).create_resized(0, 30)),
        ("nested", 1, nested),
        ("long blocks far apart", 5, BYTE.create_vector(2, 3000, 90000)),
    ):
        yield name, View(displacement, BYTE, filetype)


class Memory(NamedTuple):
    """Bytes of a rank's, and which of them are data."""

    name: str
    whole: bytearray
    elements: int
    typemap: Typemap
    places: list[int]

    def put(self, data: bytes) -> None:
        for place, value in zip(self.places, data, strict=False):
            self.whole[place] = value


def memories(nbytes: int) -> list[Memory]:
    """Room for so many bytes of data: in one run, and with gaps."""
    plain = bytearray([UNTOUCHED]) * max(nbytes, 1)
    apart = bytearray([UNTOUCHED]) * max(3 * nbytes, 1)
    return [
        Memory("one run", plain, nbytes, BYTE, list(range(nbytes))),
        Memory("every third byte", apart, nbytes, BYTE.create_resized(0, 3), [3 * index for index in range(nbytes)]),
    ]


def access(view: View, position: int, memory: Memory, *, writing: bool, collective: bool = False) -> Access:
    """One that moves all of the memory's data."""
    made = Access()
    made.address, made.count, made.typemap = address_of(memory.whole), memory.elements, memory.typemap
    made.owner = memory.whole
    made.writing, made.collective = writing, collective
    made.view, made.position, made.nbytes = view, position, len(memory.places)
    return made


def places(view: View, position: int, nbytes: int) -> list[int]:
    """Offsets in the file of some bytes of the view."""
    return [offset + index for offset, length in view.pieces(position, nbytes) for index in range(length)]


def put(content: bytearray, at: list[int], data: bytes) -> None:
    """Write into the model of a file."""
    if at:
        content.extend(bytes(max(0, max(at) + 1 - len(content))))
    for place, value in zip(at, data, strict=True):
        content[place] = value


def content_of(file: File) -> bytes:
    """All bytes of a file."""
    whole = bytearray(file.module.size())
    if whole:
        fetched = file.parts["fbtl"].fetch(address_of(whole), len(whole), 0)
        assert fetched == len(whole), (fetched, len(whole))
    return bytes(whole)


def compare(found: Any, wanted: Any, clause: str, words: str) -> None:
    """Raises Breach at the first byte that differs."""
    if found == wanted:
        return
    where = next((at for at, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), "the end")
    raise Breach(clause, f"{words}: {len(found)} bytes, {len(wanted)} expected; they differ at {where}")
