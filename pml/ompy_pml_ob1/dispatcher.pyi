from ompy.mca.btl import Receiver
from ompy_pml_ob1.engine import Engine

class Dispatcher(Receiver):
    def __init__(self, engine: Engine) -> None: ...
