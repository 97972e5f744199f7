"""Small changes of a source file, each of which ought to be noticed by somebody.

Cython's tokens are Python's, so that `tokenize` finds what stands in code, and not in strings and comments.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# What an operator becomes, where a space stands on either side: `<Type>x` and `-1` are something else.
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "+=": "-=", "-=": "+=",
    "|": "&", "&": "|", "<<": ">>", ">>": "<<",
}  # fmt: skip
WORDS = {"and": "or", "or": "and", "True": "False", "False": "True"}
# How lines begin that can't be dropped or swapped: what they lead is not over at their end, or nothing happens in them.
LEADING = {
    "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "cdef", "cpdef", "ctypedef", "class",
    "import", "from", "cimport", "pass", "@",
}  # fmt: skip
ENDING = {"return", "raise", "break", "continue"}
# What a function returns that has nothing to say.
NOTHING = "return 0"


class Mutant(NamedTuple):
    """One change.

    Attributes:
        path: of the file.
        line: number of the first line that changes, from 1 on.
        kind: operator, word, constant, dropped line, swapped lines.
        before, after: the lines.
    """

    path: str
    line: int
    kind: str
    before: str
    after: str

    def text(self, source: str) -> str:
        """The source with the change."""
        lines = source.splitlines(keepends=True)
        count = len(self.before.splitlines())
        lines[self.line - 1 : self.line - 1 + count] = [self.after]
        return "".join(lines)

    def __str__(self) -> str:
        old = "\n".join(f"- {line}" for line in self.before.splitlines())
        new = "\n".join(f"+ {line}" for line in self.after.splitlines())
        return f"{self.path}:{self.line} ({self.kind})\n{old}\n{new}"


def mutants(path: Path, name: str) -> list[Mutant]:
    """All changes of a file, which is to be called so."""
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found = [Mutant(name, *change) for token in tokens for change in of_token(token, lines)]
    statements = list(simple_statements(tokens, lines))
    for number in statements:
        line = lines[number - 1]
        indent = line[: len(line) - len(line.lstrip())]
        found.append(Mutant(name, number, "dropped line", line, f"{indent}pass\n"))
        after = lines[number] if number + 1 in statements else ""
        if after.startswith(indent) and not after[len(indent)].isspace() and not line.lstrip().startswith("return"):
            found.append(Mutant(name, number, "swapped lines", line + after, after + line))
    return found


def of_token(token: tokenize.TokenInfo, lines: list[str]) -> Iterator[tuple[int, str, str, str]]:
    """What can be put in a token's place, as (line, kind, before, after)."""
    (number, start), (_, end), word = token.start, token.end, token.string
    line = lines[number - 1] if number <= len(lines) else ""
    kind, new = "", ""
    # Unions of types have no effect.
    if line.strip() == NOTHING or (word == "|" and ("-> " in line or "| None" in line)):
        return
    if token.type == tokenize.OP and word in OPERATORS and line[start - 1 : start] == " " == line[end : end + 1]:
        kind, new = "operator", OPERATORS[word]
    elif token.type == tokenize.NAME and word in WORDS:
        kind, new = "word", WORDS[word]
    elif token.type == tokenize.NUMBER and word.isdigit() and not line[:start].endswith("except -"):
        kind, new = "constant", str(int(word) + 1)
    if kind:
        yield number, kind, line, line[:start] + new + line[end:]


def simple_statements(tokens: list[tokenize.TokenInfo], lines: list[str]) -> Iterator[int]:
    """Numbers of the lines that hold one statement each, of which something comes."""
    first: tokenize.TokenInfo | None = None
    inside = 0  # blocks deep: what a module does once, at its import, is left alone
    for token in tokens:
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            inside += 1 if token.type == tokenize.INDENT else -1
        elif token.type == tokenize.NEWLINE and first is not None:
            line = lines[token.start[0] - 1]
            # What declares a name, and does nothing else, has neither.
            acts = ("=" in line or "(" in line or first.string in ENDING) and line.strip() != NOTHING
            acts = acts and first.type != tokenize.STRING
            if first.start[0] == token.start[0] and inside and acts and first.string not in LEADING:
                yield first.start[0]
            first = None
        elif token.type not in (tokenize.NL, tokenize.COMMENT) and first is None:
            first = token
