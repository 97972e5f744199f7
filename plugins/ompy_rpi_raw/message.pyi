from ompy.mca.rpi import Detached

class Stored(Detached): ...

class PacketPool:
    made: int
    used: int

class PooledMessage(Stored):
    def __init__(self, pool: PacketPool) -> None: ...

class BufferedMessage(Stored): ...
