import ompy.core.compiled  # finds the modules of this package
