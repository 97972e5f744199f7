class Wire:
    kernel: object

class Link:
    node: int
    packet_size: int
    eager_size: int
    can_fetch: bool
    fetch_limit: int
