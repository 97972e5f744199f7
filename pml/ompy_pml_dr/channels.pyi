from ompy.core.progress_source import ProgressSource
from ompy_pml_dr.helper import Helper
from ompy_pml_dr.module import ReliableBtl

class Channels(ProgressSource):
    btls: list[ReliableBtl]
    def __init__(
        self,
        helper: Helper | None = None,
        *,
        ack_delay: float = 1.0,
        timeout: float = 50.0,
        timeout_min: float = 10.0,
        timeout_max: float = 1000.0,
        failover_timeout: float = 0.0,
        retry_limit: int = 300,
    ) -> None: ...
    def statistics(self) -> dict[str, int]: ...
    def close(self) -> None: ...
