"""What a rank that is about to end says."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """On standard error, as far as there is one, and out of both streams."""
    for stream, words in ((sys.stdout, ""), (sys.stderr, text)):
        try:
            stream.write(words)
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed, full or missing: no reason to stay
