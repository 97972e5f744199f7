from ompy.mca.btl_wrapper import WrapperEndpoint
from ompy_pml_dr.channel import Channel

class Path(WrapperEndpoint):
    channel: Channel
    is_lost: bool
