from ompy.core.communicator import Communicator

class Scope:
    communicator: Communicator
    number: int
    def __init__(self, communicator: Communicator) -> None: ...
