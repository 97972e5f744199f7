from ompy_osc_pt2pt.accesses import Accesses

interface: int

class Pt2pt(Accesses): ...
