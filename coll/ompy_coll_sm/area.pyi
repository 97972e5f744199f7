from ompy.core.progress import ProgressSource

class Area(ProgressSource):
    rank: int
    size: int
    chunk: int
