from ompy.mca.btl import Btl

interface: int

class SelfBtl(Btl): ...
