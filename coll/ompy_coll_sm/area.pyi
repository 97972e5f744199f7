from ompy.core.progress_source import ProgressSource

class Area(ProgressSource):
    rank: int
    size: int
    chunk: int
