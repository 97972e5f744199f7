from ompy.mca.epochs import Epochs

class Ways(Epochs):
    def close(self) -> None: ...
