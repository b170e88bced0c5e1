"""`python -m offpolicy` is the command line."""

import sys

from offpolicy.cli import main

sys.exit(main())
