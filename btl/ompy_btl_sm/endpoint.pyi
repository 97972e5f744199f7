from ompy.mca.btl import Endpoint

PROBE: bytes

class Card:
    pid: int
    host: str
    inbox: bytes
    doorbell: bytes
    slots: int
    probe_address: int
    def __init__(self, text: bytes) -> None: ...
    @staticmethod
    def write(inbox: bytes, slots: int, doorbell: bytes) -> bytes: ...

class Incoming: ...
class SmEndpoint(Endpoint): ...
