"""Notes: what was assumed or ignored is told to the logger of the package."""

import logging

log = logging.getLogger("fastpart")
