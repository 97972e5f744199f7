"""mpi4py's own tests, run on ompy in mpi4py's place; `tools/suite` and `ompy conformance --suite` are the ways in."""
