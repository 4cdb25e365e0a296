"""The verb that hands a partition to other systems."""

from __future__ import annotations

import argparse
import json

from .. import export as exports
from ..errors import ParameterError
from ..parameters import shown
from .progress import progress_bar

FORMATS = ("dgl", "pyg", "text")


def export(options: argparse.Namespace, rest: list[str]) -> None:
    """``fastpart export``."""
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")
    named = {} if options.graph_name is None else {"graph_name": options.graph_name}
    if named and options.format != "dgl":
        raise ParameterError("--graph-name: belongs to `export dgl`")
    with progress_bar(options) as running:
        written = getattr(exports, options.format)(options.source, options.out, **named, **running)
    if options.json:
        print(json.dumps({"format": options.format, "out": str(written)}))
    elif not options.quiet:
        print(f"saved to {shown(written)}")
