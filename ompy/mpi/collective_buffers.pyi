"""The buffer arguments of collectives."""
