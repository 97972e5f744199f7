class Network:
    width: int
    height: int
    tiles: int
