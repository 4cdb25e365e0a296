"""The command line on the site: one section per command with what its ``--help`` prints.

The build of the site puts it into the page of the command line, so that the page has what the commands take.
"""

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from unittest.mock import patch

from fastpart.cli.app import make_app
from fastpart.cli.verbs import Family, verbs

PLACE = "<!-- commands -->"
"""What the page has where the sections go."""

WIDTH = 88
"""Columns that fit beside the table of contents."""


def page(source: str) -> str:
    """Return the source of the page with a table of all commands, and a section for each."""
    known = verbs(["partition"])
    table = ["| command | what it does |", "|---|---|"]
    table += [f"| [`{name}`](#{name}) | {escaped(verb.line)} |" for name, verb in known.items()]
    sections = [section for name, verb in known.items() for section in of_command(name, verb)]
    assert PLACE in source
    return source.replace(PLACE, "\n\n".join(["\n".join(table), *sections]))


def of_command(name: str, verb) -> Iterator[str]:
    """Yield the section of a command, and those of the commands below it."""
    if isinstance(verb, Family):
        yield f"### {name}\n\n{escaped(verb.line)}"
        for member, each in verb.members().items():
            yield f"#### {name} {member}\n\n{escaped(each.line)}\n\n{folded(name, member)}"
    else:
        yield f"### {name}\n\n{escaped(verb.line)}\n\n{folded(name)}"


def folded(*words: str) -> str:
    """Return the help of a command, which unfolds on a click."""
    called = " ".join(["fastpart", *words])
    return f"<details><summary><code>{called} --help</code></summary>\n\n```text\n{text_of(words)}\n```\n\n</details>"


def text_of(words: tuple[str, ...]) -> str:
    """Return what ``--help`` prints."""
    with patch.dict(os.environ, COLUMNS=str(WIDTH)), redirect_stdout(io.StringIO()) as printed:
        make_app([*words, "--help"]).help_print(words)
    return printed.getvalue().strip()


def escaped(line: str) -> str:
    """Return a line of plain text as Markdown."""
    return line.replace("*", "\\*").replace("|", "\\|").replace("<", "&lt;")
