from ompy.core.communicator import Communicator

class Tally:
    def __init__(self, communicator: Communicator, gone: dict[int, BaseException]) -> None: ...
