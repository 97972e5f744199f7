from ompy.core.communicator import Communicator

class PortalContext:
    communicator: Communicator
    number: int
    def __init__(self, communicator: Communicator, number: int) -> None: ...

class ContextTable: ...
