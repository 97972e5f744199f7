from ompy.core.communicator import Communicator

class Tally:
    def __init__(self, communicator: Communicator) -> None: ...
