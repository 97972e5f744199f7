"""What the plugin tells the ranks of a test, and what they tell it back."""

from __future__ import annotations

from typing import Any

PASSED, FAILED, SKIPPED, XFAILED = "passed", "failed", "skipped", "xfailed"
# What each rank has for itself.
COMMUNICATOR = "comm"


class Task:
    """What the ranks of a test are to do.

    Attributes:
        path: the test's file.
        names: of the classes there that the function is in, and its own.
        arguments: fixture and parameter values, made in the parent.
        communicator: whether the body asks for `comm`.
        module_path: entries for the front of `sys.path`.
    """

    def __init__(
        self, path: str, names: list[str], arguments: dict[str, Any], communicator: bool, module_path: list[str]
    ) -> None:
        self.path = path
        self.names = names
        self.arguments = arguments
        self.communicator = communicator
        self.module_path = module_path


class Outcome:
    """How it went on one rank: one of the words above, and the traceback or reason."""

    def __init__(self, rank: int, word: str, text: str = "") -> None:
        self.rank = rank
        self.word = word
        self.text = text
