class IncomingTable:
    count: int
