"""The logger of the package. It gets notes about what was assumed or ignored."""

import logging

from ..errors import plain

log = logging.getLogger("fastpart")


def _as_python(record: logging.LogRecord) -> bool:
    """Take the marks from a note, as from an error. ``marked`` has them, for other fronts."""
    text = record.getMessage()
    if (python := plain(text)) != text:
        record.marked, record.msg, record.args = text, python, None
    return True


log.addFilter(_as_python)
