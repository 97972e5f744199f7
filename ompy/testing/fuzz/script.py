"""A program as Python: what one rank runs, or a script of its own for all ranks, which needs only mpi4py."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from importlib.resources import files

from ompy.testing.fuzz.program import Program

INDENT = "    "
CONTROL = re.compile(r"\bctl\b")
WORD = re.compile(r"[A-Za-z_]\w*")
# What makes memory that holds given bytes, by the kind of memory.
MEMORY = {
    "bytes": "filled = bytearray",
    "alloc": """\
allocated = []
def filled(payload):
    memory = MPI.Alloc_mem(len(payload))
    allocated.append(memory)
    memoryview(memory)[:] = payload
    return memory
""",
    "numpy": """\
def filled(payload):
    return numpy.frombuffer(payload, 'B').copy()
""",
}


@cache
def prelude() -> str:
    """The source of what programs may call."""
    return (files("ompy.testing.fuzz") / "prelude.py").read_text(encoding="utf-8")


@cache
def definitions() -> dict[str, str]:
    """The prelude's functions, classes and values by name, each with its source."""
    text = prelude()
    found = {}
    for node in ast.parse(text).body:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = without_docstring(node, source)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = source
    return found


def without_docstring(node: ast.FunctionDef | ast.ClassDef, source: str) -> str:
    """The source of a definition that has more than its docstring, without it: scripts are to be short."""
    first = node.body[0]
    if ast.get_docstring(node) is None or len(node.body) == 1:
        return source
    lines = source.splitlines()
    del lines[first.lineno - node.lineno : (first.end_lineno or 0) - node.lineno + 1]
    return "\n".join(lines)


def needed(text: str) -> list[str]:
    """Sources of the prelude's definitions that a text uses, in the prelude's order."""
    known = definitions()
    found: set[str] = set()
    waiting = [text]
    while waiting:
        for word in set(WORD.findall(waiting.pop())):
            if word in known and word not in found:
                found.add(word)
                waiting.append(known[word])
    return [source for name, source in known.items() if name in found]


def whole(program: Program, bodies: list[list[str]], controlled: bool, room: int) -> list[str]:
    """The lines of one process.

    Parameters:
        bodies: of each lane.
        controlled: with communicators `ctl` for what only synchronises.
        room: bytes for buffered sends.
    """
    if program.lanes == 1:
        lines = (["ctl = comm.Dup()"] if controlled else []) + bodies[0]
    else:
        lines = [f"comms = [comm] + [comm.Dup() for _ in range({program.lanes - 1})]"]
        if controlled:
            lines.append("ctls = [c.Dup() for c in comms]")
        for lane, body in enumerate(bodies):
            given = f"comm=comms[{lane}]" + (f", ctl=ctls[{lane}]" if controlled else "")
            lines += [f"def lane{lane}({given}):", *(INDENT + line for line in [*body, "pass"])]
        lines.append(f"run_lanes({', '.join(f'lane{lane}' for lane in range(program.lanes))})")
    if room:
        lines = [f"MPI.Attach_buffer(bytearray({room}))", *lines, "MPI.Detach_buffer()"]
    return lines


def room_of(program: Program, rank: int) -> int:
    """Bytes that a rank's buffered sends need (MPI-4.1, 3.6)."""
    return sum(action.buffer_needed(rank) for action in program.actions.values())


def parts_of(program: Program) -> list[str]:
    """What each rank runs, given `MPI`, `comm`, `me`, `filled` and the prelude."""
    bodies: list[list[list[str]]] = [[[] for _ in range(program.lanes)] for _ in program.everybody]
    for step in program.steps:
        action = program.actions[step.action]
        for rank in program.ranks(step):
            bodies[rank][action.lane] += action.lines(program, step.phase, rank)
    controlled = any(CONTROL.search(line) for lanes in bodies for body in lanes for line in body)
    return ["\n".join(whole(program, lanes, controlled, room_of(program, rank))) + "\n" for rank, lanes in enumerate(bodies)]


def everybody(program: Program, lane: int) -> list[str]:
    """The lines of a lane on all ranks: what not all do stands below a condition."""
    parts: list[tuple[tuple[int, ...], list[str]]] = []

    def add(ranks: tuple[int, ...], lines: list[str]) -> None:
        if parts and parts[-1][0] == ranks:
            parts[-1][1].extend(lines)
        elif lines:
            parts.append((ranks, list(lines)))

    for step in program.steps:
        action = program.actions[step.action]
        if action.lane != lane:
            continue
        by_text: dict[tuple[str, ...], list[int]] = {}
        for rank in program.ranks(step):
            by_text.setdefault(tuple(action.lines(program, step.phase, rank)), []).append(rank)
        for text, ranks in by_text.items():
            add(tuple(sorted(ranks)), list(text))
    lines: list[str] = []
    for who, part in parts:
        if len(who) == program.size:
            lines += part
        else:
            condition = f"me == {who[0]}" if len(who) == 1 else f"me in {who}"
            lines += [f"if {condition}:", *(INDENT + line for line in part)]
    return lines


def script_of(program: Program, title: str = "") -> str:
    """The program as a script of its own."""
    bodies = [everybody(program, lane) for lane in range(program.lanes)]
    controlled = any(CONTROL.search(line) for body in bodies for line in body)
    room = max(room_of(program, rank) for rank in program.everybody)
    body = "\n".join(whole(program, bodies, controlled, room))
    memory = MEMORY[program.memory] if re.search(r"\bfilled\b", body) else ""
    helpers = needed(body)
    imports = [
        name
        for name in ("random", "sys", "time", "os", "gc", "array", "struct", "numpy")
        if uses(name, [body, memory, *helpers])
    ]
    head = [f'"""{textwrap.fill(title, 120)}', f'Run it on {program.size} ranks."""']
    head += [*(f"import {name}" for name in imports), "from mpi4py import MPI", ""]
    parts = [line for source in helpers for line in (source, "")]
    start = [*([memory] if memory else []), "comm = MPI.COMM_WORLD", "me = comm.rank"]
    return "\n".join([*head, *parts, *start, body, 'print("rank", me, "ok", flush=True)', ""])


def uses(name: str, texts: list[str]) -> bool:
    return any(re.search(rf"\b{name}\.", text) for text in texts)
