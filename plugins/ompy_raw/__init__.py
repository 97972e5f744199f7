"""The Raw chip: tiles and their general dynamic network, word by word and cycle by cycle.  It knows no MPI."""

import ompy.core.compiled  # finds the modules of this package
