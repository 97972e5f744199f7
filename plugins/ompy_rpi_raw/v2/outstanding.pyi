class OutstandingMessages:
    compared: int
