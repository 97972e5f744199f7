from ompy_btl_tcp.traffic import TrafficSecret

class Cipher:
    def __init__(self, secret: TrafficSecret, seals: bool, number: int) -> None: ...
