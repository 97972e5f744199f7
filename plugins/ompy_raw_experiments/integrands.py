"""What is integrated (thesis, figures 5-6 and 5-9)."""

from __future__ import annotations

import numpy as np


def polynomial(x: np.ndarray) -> np.ndarray:
    """The integrand of figure 5-6."""
    square, cube = x * x, x * x * x
    return np.asarray(
        square * 9 * x
        + (8 - 2 * cube) / (x / 8 * x + 838387272 / 2.18 * x)
        + square * 9.19191 * x
        + (8 / (cube * 3717.121209) * square - 2 * square) / square * 9 * x
        + (8 - 2 / x) / (x + 8 + x + 838 / 387272 / 38388221 / x)
        + square * 9.19191
        - x
        + (8 / (cube * 3717.121209) * square - 2 * cube)
    )


def quarter_circle(x: np.ndarray) -> np.ndarray:
    """The integrand of figure 5-9: from 0 to 1 its integral is pi."""
    return np.asarray(4 / (1 + x * x))
