# The chip of a job: its ranks are processes of one host that share the chip's state; rank r's program runs on tile r.
from ompy_raw.tile cimport Tile

# The tile of this rank, from the query of a component (`context`).  The program's clock is then the tile's.
cpdef Tile join(object context)
# This rank needs the chip no more; the others go on without it.  Again is harmless.
cpdef int leave(Tile tile, object context) except -1
