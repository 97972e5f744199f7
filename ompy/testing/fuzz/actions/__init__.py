"""The kinds of actions, one noun a file; importing this makes all of them known."""

from ompy.testing.fuzz.actions import (
    cancel,
    collective,
    communicator,
    completion,
    exchange,
    handles,
    message,
    neighbours,
    objects,
    persistent,
    process,
    synchronous,
    wildcards,
    window,
)

__all__ = [
    "cancel", "collective", "communicator", "completion", "exchange", "handles", "message", "neighbours", "objects",
    "persistent", "process", "synchronous", "wildcards", "window",
]  # fmt: skip
