from ompy_pml_dr.channel import Channel, PathRecord

class Path(PathRecord):
    channel: Channel
    is_lost: bool
