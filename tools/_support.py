"""Make the helpers of the tests importable, for the tools that need them; import this first."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
