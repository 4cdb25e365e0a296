"""What the verbs of the command line have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import ParameterError
from ..graph import DIRECTEDNESS, LAYOUTS


class Parser(argparse.ArgumentParser):
    """A parser that refuses with an exception, so that every refusal looks the same."""

    def error(self, message: str) -> NoReturn:
        """Refuse a command line."""
        raise ParameterError(f"{message} (see `{self.prog} --help`)")


def add_verb(verbs: Any, name: str, run: Callable[..., None], summary: str, examples: str) -> Parser:
    """Add a verb with the options that all have."""
    verb: Parser = verbs.add_parser(
        name,
        help=summary[0].lower() + summary[1:].rstrip("."),
        description=summary,
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.split("\n")),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.set_defaults(run=run)
    common = verb.add_argument_group("common options")
    common.add_argument("--threads", type=int, metavar="T", help="number of threads (default: all CPUs)")
    common.add_argument(
        "--memory-limit", metavar="SIZE", help="as 4G or 512M (default: 80%% of what is available)"
    )
    common.add_argument("--json", action="store_true", help="print JSON instead of tables")
    common.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no notes")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return verb


def count(text: str) -> int:
    """Read an integer, also as 1_000_000 or 1e9."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


count.__name__ = "integer"


def add_input(verb: Parser) -> None:
    """Add the file of edges, and how to read it."""
    verb.add_argument("file", metavar="FILE", help="edges: raw u32 or u64 pairs, or .npy")
    group = verb.add_argument_group("how to read FILE")
    group.add_argument(
        "--dtype", metavar="TYPE", help="u32 or u64, for raw files (default: the sidecar's, or u32)"
    )
    group.add_argument(
        "--num-vertices", type=count, metavar="N", help="n (default: the sidecar's, or max id + 1)"
    )
    group.add_argument(
        "--directedness", choices=DIRECTEDNESS, help="what a record means for training (default: undirected)"
    )
    group.add_argument("--io", choices=("mmap", "read"), default="mmap", help="'read' never maps the file")
    group.add_argument("--layout", choices=LAYOUTS, help="which axis of a .npy counts the records")
    group.add_argument("--max-vertices", type=count, metavar="N", help="the largest n to accept from the ids")
