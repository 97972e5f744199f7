from ompy.mca.rpi import MpiLayer, Outgoing, Rpi

class Confirmed(Outgoing): ...

class Layer(MpiLayer):
    rpi: Rpi
    def __init__(self, rpi: Rpi, rank: int) -> None: ...
