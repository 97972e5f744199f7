from ompy_osc_sm.waiting import Waits

class Sharing(Waits):
    def share(self, kernel: bool) -> str | None: ...
