"""Memory for received objects, recycled by size: a page that is new to the process costs more than the copy into it."""

class Block:
    def __len__(self) -> int: ...
