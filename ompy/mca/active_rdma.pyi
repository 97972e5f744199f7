from ompy.mca.btl import Btl

class ActiveRdma(Btl):
    inner: Btl
    def __init__(self, inner: Btl) -> None: ...
