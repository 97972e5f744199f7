"""One request for several operations: a send and a receive (MPI-4.1, 3.7.2), the messages of a flush (3.6)."""

from ompy.core.request import Request as CoreRequest

class CombinedRequest(CoreRequest): ...
