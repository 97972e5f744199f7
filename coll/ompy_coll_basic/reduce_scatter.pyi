from ompy_coll_basic.builder import Builder

BUILDERS: dict[tuple[str, str], Builder]
