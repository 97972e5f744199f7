"""Messages of the library's own between the members of a communicator."""

from typing import Any

from ompy.core.communicator import Communicator

def share_value(comm: Communicator, value: Any, root: int) -> Any: ...
def gather_values(comm: Communicator, value: Any, root: int) -> list[Any]: ...
