"""Processes that are joined by btl/zmq alone."""

from functools import partial

import network_ranks
from network_ranks import SECRET, TAG, Rank

__all__ = ["SECRET", "TAG", "Rank", "open_btl", "run"]

open_btl = partial(network_ranks.open_btl, "zmq")
run = partial(network_ranks.run, "zmq")
