class Room:
    size: int
    chunk: int
