from ompy.core.communicator import Communicator

class Window:
    def __init__(self, communicator: Communicator, shared: bool) -> None: ...
