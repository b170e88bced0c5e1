"""Make the helpers of the tests importable; to be imported first by the tools that need them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
