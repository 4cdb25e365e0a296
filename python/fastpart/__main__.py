"""``python -m fastpart``: the same as the command ``fastpart``."""

import sys

from .cli import main

sys.exit(main())
