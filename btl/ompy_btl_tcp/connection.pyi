class Outgoing: ...

class Connection:
    name: bytes
    where: str
