from ompy_coll_tuned.algorithm import Builder

BUILDERS: dict[tuple[str, str], Builder]
