"""Metadata of distributions as nobody would write it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

TEXTS = (
    b"[ompy.btl]\npigeon = pigeons.component\n", b"[ompy.btl]\n = x\n", b"[ompy.btl]\na\tb = c\n", b"[ompy.btl]\nx =\n",
    b"[ompy.]\nx = y\n", b"[ompy.btl\nx = y\n", b"[ompy.pml]\nx = y:z [extra]\n", b"ompy.btl\n", b"[ompy.\xff]\nx = y\n",
    b"[ompy.btl]\r\nx = y\r\n", b"\xef\xbb\xbf[ompy.btl]\nx = y\n", b"[ompy.btl]\n\xc2\x85 = y\n", b"[ompy.btl]\nx = y\x1ez\n",
    b"[ompy.btl]\n" + b"x" * 70_000 + b" = y\n", b"[ompy.btl]\n" + b"".join(b"n%d = m\n" % i for i in range(300)),
)  # fmt: skip
FIELDS = (
    b"Name: pigeon\nVersion: 1\n", b"Name: a\tb\nVersion: \n", b"", b"\xff", b"Name:\n",
    b"Name: x\x85y\x1c\nVersion: 1\x0b\n", b"Version: 1\n\nName: no\n",
)  # fmt: skip
FOLDERS = ("pigeon-1.dist-info", "pigeon-2.dist-info", "a\tb-1.dist-info", "a\nb-1.dist-info", ".dist-info", "x.egg-info",
           "é-1.dist-info", "\udcff-1.dist-info", "PIGEON-1.dist-info", "-.dist-info")  # fmt: skip
KINDS = ("file", "file", "file", "file", "folder", "fifo", "loop", "zero", "unreadable", "none")


def mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        place = rng.randrange(len(changed) + 1)
        changed[place : place + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
    return bytes(changed)


class EntryPoints:
    name = "entry-points"

    def begin(self) -> None:
        from ompy.mca import discovery
        from ompy.mca.errors import ComponentError

        self.discovery, self.refusal = discovery, ComponentError
        self.folder = Path(tempfile.mkdtemp(prefix="ompy-hostile-"))

    def make(self, rng: random.Random) -> object:
        distributions = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            texts = mutated(rng, rng.choice(TEXTS)), mutated(rng, rng.choice(FIELDS))
            distributions.append((rng.choice(FOLDERS), rng.choice(KINDS), texts[0], rng.choice(KINDS), texts[1]))
        return distributions, mutated(rng, b"\tbtl\tx\ty\tz\t1\n/usr\t5\ta/b\n")

    def carry_out(self, given: object) -> str:
        distributions, handed = given  # type: ignore[misc]
        self.settle()
        for folder, kind, text, metadata_kind, fields in distributions:
            path = self.folder / folder
            path.mkdir(parents=True, exist_ok=True)
            put(path / "entry_points.txt", kind, text)
            put(path / "METADATA", metadata_kind, fields)
        found = self.discovery.folders([str(self.folder)], self.discovery.decode(handed.decode(errors="surrogateescape")))
        handed_down = self.discovery.decode(self.discovery.encode(found))
        if found[0].path not in handed_down:
            return "the folder is not handed down"
        here, there = (
            [(it.framework, it.name, it.module) for it in folder.components]
            for folder in (found[0], handed_down[found[0].path])
        )
        if here != there:
            return f"found {here}, handed down {there}"
        try:
            self.discovery.merge(found)
        except self.refusal as error:
            return "" if "two distributions" in str(error) else f"merge: {error}"
        return ""

    def settle(self) -> None:
        shutil.rmtree(os.fsencode(self.folder), ignore_errors=True)
        self.folder.mkdir(exist_ok=True)

    def show(self, given: object) -> str:
        return repr(given)[:800]


def put(path: Path, kind: str, data: bytes) -> None:
    if os.path.lexists(path):
        return
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind != "none":
        path.write_bytes(data)
        if kind == "unreadable":
            path.chmod(0)
