"""Processes that are joined by btl/tcp alone."""

from functools import partial

import network_ranks
from network_ranks import SECRET, TAG, Rank

__all__ = ["SECRET", "TAG", "Rank", "open_btl", "run"]

open_btl = partial(network_ranks.open_btl, "tcp")
run = partial(network_ranks.run, "tcp")
