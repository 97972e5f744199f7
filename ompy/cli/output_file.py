"""The type of a command's option that names a file which is written at the end of something long."""

from __future__ import annotations

import os
from pathlib import Path

import click

PICTURES = (".png", ".svg", ".pdf")


class OutputFile(click.Path):
    """What would stop it from being written is said before anything is begun.

    Parameters:
        suffixes: what its name may end with; empty for anything.
        placeholder: a part of the name that something else comes in place of.
    """

    name = "file"

    def __init__(self, suffixes: tuple[str, ...] = (), placeholder: str = "") -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes
        self.placeholder = placeholder

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        path = Path(str(value))
        if self.suffixes and path.suffix.lower() not in self.suffixes:
            self.fail(f"{value}: a name that ends with {', '.join(self.suffixes)} expected", parameter, context)
        if reason := obstacle(Path(str(value).replace(self.placeholder, "0")) if self.placeholder else path):
            self.fail(reason, parameter, context)
        return path


def obstacle(path: Path) -> str:
    """Why a file can't be written; empty where it can."""
    if path.is_dir():
        return f"{path} is a folder"
    if path.exists():
        return "" if os.access(path, os.W_OK) else f"{path} can't be written"
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}"
    return "" if os.access(path.parent, os.W_OK) else f"{path}: no file can be made in {path.parent}"
