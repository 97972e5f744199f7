"""DLPack (version 0 and 1) and the CUDA array interface (version 3), as sources of Py_buffer views."""
