from ompy.mca.pml import Pml
from ompy.mca.rpi import Rpi

interface: int

class RpiPml(Pml):
    rpi: Rpi
    def __init__(self, rpi: Rpi, rank: int) -> None: ...
