"""Errors of the component architecture: their words stand alone, without those of an MPI error class before them."""

from __future__ import annotations

from ompy.core.errors import ERR_ARG, ERR_OTHER, MPIError


class ParameterError(MPIError):
    """A parameter that does not exist, or a value that it does not take."""

    def __init__(self, detail: str) -> None:
        super().__init__(ERR_ARG, detail)

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str]]:
        return type(self), (self.detail,)

    def __str__(self) -> str:
        return self.detail


class ComponentError(MPIError):
    """A component that can't be found, loaded or chosen."""

    def __init__(self, detail: str) -> None:
        super().__init__(ERR_OTHER, detail)

    def __reduce__(self) -> tuple[type[ComponentError], tuple[str]]:
        return type(self), (self.detail,)

    def __str__(self) -> str:
        return self.detail


class UnreachableError(MPIError):
    """A peer that no transport leads to.

    Attributes:
        verdicts: (component, chosen, reason) of each transport that was asked.
    """

    def __init__(self, detail: str, verdicts: list[tuple[str, bool, str]]) -> None:
        super().__init__(ERR_OTHER, detail)
        self.verdicts = verdicts

    def __reduce__(self) -> tuple[type[UnreachableError], tuple[str, list[tuple[str, bool, str]]]]:
        return type(self), (self.detail, self.verdicts)


def suggestion(name: str, known: list[str]) -> str:
    """` Did you mean X?`, or nothing when no known name is near."""
    from difflib import get_close_matches  # only on the way to an error: it imports `re` and `collections`

    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""
