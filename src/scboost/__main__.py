"""``python -m scboost``: the command line."""

import sys

from scboost.cli import main

sys.exit(main())
