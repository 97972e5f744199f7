from typing import Any

from ompy.core.group import Group

class Communicator:
    context: int
    rank: int
    size: int
    remote_size: int
    is_inter: bool
    spans_jobs: bool
    group: Group
    remote_group: Group
    pml: Any
    coll: Any
    local_communicator: Communicator | None
    attributes: dict[Any, Any]
    whole: Communicator | None
    placement: int
    name: str
    freed: bool
    under_way: int
    def __init__(self, context: int, group: Group, remote_group: Group | None = None, name: str = "") -> None: ...
    def take_collective_tag(self) -> int: ...
    def shares_host(self, job_does: bool) -> bool: ...
    def all_local(self) -> bool: ...
    def mark_freed(self) -> None: ...

class Hold:
    def __init__(self, communicator: Communicator) -> None: ...
