class OutstandingReceive: ...

class UnexpectedMessages:
    compared: int
