from ompy.core.communicator import Communicator

class Arrival: ...

class OfiContext:
    communicator: Communicator
    base: int
    bits: int

class ContextTable:
    numbers: int
    def __init__(self, bits: int, world: int) -> None: ...
