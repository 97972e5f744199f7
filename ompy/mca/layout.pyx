# cython: language_level=3, binding=False
"""The memory layouts that this ompy was built with; see `layout.pxd`."""

layout = LAYOUT
