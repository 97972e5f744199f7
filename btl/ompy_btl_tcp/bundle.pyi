class Transfer: ...
class Parcel: ...

class Link:
    number: int

class Bundle:
    name: bytes
    me: bytes
    links: dict[int, Link]
    turns: dict[int, int]
    sent_again: int
