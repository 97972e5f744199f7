from ompy.mca.coll import CollModule

interface: int

class SmModule(CollModule):
    def __init__(self, chunk: int, spins: int, crowded: bool, backing: str, memory: int) -> None: ...
