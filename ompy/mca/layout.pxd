# What a compiled component was built with: a number that everything declared in `ompy/{core,mca}/*.pxd` goes into.
# `INTERFACE` tells contracts apart, this tells memory layouts apart.  Written by `tools/build.py`.
cdef enum:
    LAYOUT = 0x4d818d43
