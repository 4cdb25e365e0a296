"""The progress bar of the command line: only where somebody looks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..progress import Bar


@contextmanager
def progress_bar(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Give what every long function takes, with a bar if stderr is a terminal; it is wiped in the end."""
    bar = Bar() if sys.stderr.isatty() and not options.quiet else None
    try:
        yield {"threads": options.threads, "memory_limit": options.memory_limit, "progress": bar}
    finally:
        if bar is not None:
            bar.close()
