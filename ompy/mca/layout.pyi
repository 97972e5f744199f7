layout: int
