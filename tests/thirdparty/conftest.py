"""The distributions here are tested where they are installed."""

collect_ignore_glob = ["ompy-*"]
