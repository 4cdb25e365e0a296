"""The logger of the package. It gets notes about what was assumed or ignored."""

import logging

log = logging.getLogger("fastpart")
