"""What a component offers to communicators."""

from __future__ import annotations

from ompy.mca.coll import FUNCTIONS, CollModule
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.rank import CollRank

check = Collection()


@check("offer")
def the_offer_is_the_same_on_every_rank(rank: CollRank) -> None:
    for size, comm in rank.groups.items():
        offer = rank.offer(comm)
        functions = None if offer is None else offer.functions or FUNCTIONS
        said = rank.exchange(functions) if size == rank.size else None
        if said and any(other != said[0] for other in said):
            raise Breach("offer", f"rank {rank.rank} offers {functions}, rank 0 {said[0]}")
        if offer is None:
            continue
        if unknown := set(functions or ()) - set(FUNCTIONS):
            raise Breach("offer", f"{sorted(unknown)} are no functions")
        module = offer.modules[0]
        for form in rank.forms:
            if getattr(type(module), form) is getattr(CollModule, form):
                raise Breach("offer", f"the component declares the form of `{form}`, which its module does not override")
        module.free()
    if rank.size > 1 and all(rank.offer(comm) is None for comm in rank.groups.values()):
        raise Breach("offer", f"the component serves no communicator of 1 to {rank.size} ranks")
