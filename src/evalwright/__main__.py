"""`python -m evalwright` is the command `evalwright`."""

import sys

from evalwright.cli import main

sys.exit(main())
