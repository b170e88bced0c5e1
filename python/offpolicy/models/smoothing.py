"""Smoothing on a grid by the exponential kernel, which is cut off beyond the neighbouring cells.

    S(x)(c) = Σ exp(-‖c - c'‖ / bandwidth) x(c') over the cells c' that differ by at most 1 in each coordinate

The sum of 3^D terms per cell is computed by a few one-dimensional sums, as `rust/core/src/models/kernel.rs` explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy.errors.kinds.of_models import smoothing_dimensions
from offpolicy.errors.kinds.of_simulation import values_not_finite
from offpolicy.protocols import Floats


def smooth(array: NDArray[Any], circular: Sequence[bool] = (), bandwidth: float = 0.25) -> Floats:
    """Return S(x) over the last `len(circular)` axes of an array, or over all; earlier axes hold several x at once.

    >>> import numpy as np
    >>> from offpolicy.models.smoothing import smooth
    >>> smooth(np.array([0.0, 1.0, 0.0, 0.0]), circular=[False], bandwidth=1.0).round(3)
    array([0.368, 1.   , 0.368, 0.   ])
    >>> smooth(np.array([1.0, 0.0, 0.0, 0.0]), circular=[True], bandwidth=1.0).round(3)
    array([1.   , 0.368, 0.   , 0.368])
    """
    x = np.ascontiguousarray(array, dtype=np.float64)
    around = list(circular) or [False] * x.ndim
    if not 0 < len(around) <= x.ndim:
        raise smoothing_dimensions(dimensions=x.ndim, asked=len(around))
    if not np.isfinite(x).all():
        raise values_not_finite(what="values to smooth")
    sizes = x.shape[x.ndim - len(around) :]
    axes = [(n, "circle" if wraps else "line") for n, wraps in zip(sizes, around, strict=True)]
    return _core.kernel_smooth(x.ravel(), axes, bandwidth).reshape(x.shape)
