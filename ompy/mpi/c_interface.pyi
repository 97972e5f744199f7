"""MPI objects for extension modules in C and Cython: the functions `PyMPI<Type>_New` and `PyMPI<Type>_Get` of mpi4py."""

c_interface: dict[str, object]
