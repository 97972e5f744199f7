"""Partitioned communication (MPI-4.1, chapter 4)."""

from ompy.core.request import Request as CoreRequest

class PartitionedRequest(CoreRequest): ...
