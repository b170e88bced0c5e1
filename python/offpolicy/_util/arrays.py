"""Types of the arrays that domains, policies and models take and return; `offpolicy.protocols` describes them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

States: TypeAlias = NDArray[Any]
Actions: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.float64]
Step: TypeAlias = int | NDArray[np.integer[Any]]
