from ompy_btl_tcp.channel import Channel

class Seal:
    def __init__(self, number: int, channel: Channel) -> None: ...
