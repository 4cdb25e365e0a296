"""The verb that brings partition directories to the present schema."""

from __future__ import annotations

import argparse
import json

from .. import store
from ..errors import ParameterError
from ..parameters import shown


def upgrade(options: argparse.Namespace, rest: list[str]) -> None:
    """``fastpart upgrade``."""
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")
    upgraded = store.upgrade(options.source)
    if options.json:
        print(json.dumps({"source": options.source, "schema": store.SCHEMA, "upgraded": upgraded}))
    elif not options.quiet:
        print(f"{shown(options.source)}: {'rewritten to' if upgraded else 'already'} schema {store.SCHEMA}")
