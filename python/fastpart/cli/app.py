"""The application of cyclopts: its commands, and how its help looks."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from inspect import Parameter as Slot
from inspect import Signature
from itertools import chain
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from cyclopts import App, ArgumentCollection, Group, Parameter

from .. import _core
from ..core.options import NAMES, config
from ..core.parameters import choice, from_text, seconds
from .call import Call, Option
from .verbs import GROUPS, TITLES, Family, Verb, verbs

_EXAMPLES = """\
generate rmat g.bin --n 1000000 --m 10000000
partition g.bin -k 8 --algorithm spring -o parts/
evaluate g.bin parts/"""

_INDENT = 28
"""Width of the column of names."""

STANDARD_INPUT = "\0stdin"
"""Stands for the argument - while words are parsed."""

_SHORT = {"out": "-o", "quiet": "-q"}

_GROUPS = {title: Group.create_ordered(title) for title in TITLES}
_GROUPS_OF_VERBS = {title: Group.create_ordered(title) for title in (*GROUPS, "Options")}


class _Listed(App):
    """An application that lists its arguments once. A page of help asks three times, which takes most of its time."""

    @cached_property
    def _arguments(self) -> ArgumentCollection:
        return super().assemble_argument_collection()

    def assemble_argument_collection(self, **_: Any) -> ArgumentCollection:
        """Return the arguments. A command has no docstring that they could be read from."""
        return self._arguments


def make_app(words: Sequence[str]) -> App:
    """Return the application with all verbs. Only the verb that the words name gets its options, to save time."""
    app = _Listed(
        name="fastpart",
        help="Partition graphs larger than memory for distributed GNN training.",
        help_epilogue=_examples(_EXAMPLES) + "\n\n`fastpart VERB --help` has more.",
        help_format="plaintext",
        help_formatter=_Columns(),
        version=f"fastpart {_core.__version__}",
        verbose=False,
        group_commands=_GROUPS_OF_VERBS["Options"],
    )
    if not {"--help", "-h"}.isdisjoint(words):
        from rich.console import Console

        app.console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    app.register_install_completion_command()
    called = None if "--install-completion" in words else [word for word in words if not word.startswith("-")]
    groups = {name: _GROUPS_OF_VERBS[title] for title, names in GROUPS.items() for name in names.split()}
    for place, (name, verb) in enumerate(verbs(words).items()):
        app.command(_app(name, verb, called, place, groups[name]))
    return app


def _app(
    name: str, verb: Verb | Family, called: list[str] | None, place: int = 0, group: Group | None = None
) -> App:
    """Return the application of a verb. It has options only if it is the one that is called."""
    app = _Listed(name=name, help=verb.line, sort_key=place, group=group, group_commands="Commands")
    if called is None or called[:1] == [name]:
        if isinstance(verb, Family):
            app.help_epilogue = f"`fastpart {name} COMMAND --help` has more."
            for order, (member, each) in enumerate(verb.members().items()):
                app.command(_app(member, each, None if called is None else called[1:], order))
        else:
            app.help_epilogue = _wrapped(verb.more) + _examples(verb.examples)
            app.default(_command(name, verb))
    return app


def _examples(text: str) -> str:
    lines = [f"fastpart {line}" for line in text.split("\n")]
    return "\n  ".join(["examples:", *chain.from_iterable(map(_broken, lines))])


def _broken(line: str) -> list[str]:
    """Return an example in lines that fit: a comment goes before its command, which is broken by backslashes."""
    width = get_terminal_size().columns - 2
    if len(line) <= width:
        return [line]
    command, *comment = re.split(r"\s{2,}(?=# )", line, maxsplit=1)
    together = re.sub(r"(?<= )(-\S+) (?!-)", "\\1\N{NO-BREAK SPACE}", command)  # an option and its value
    broken = textwrap.wrap(
        together, width - 2, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    lines = [each.replace("\N{NO-BREAK SPACE}", " ") for each in broken]
    return [*comment, *(f"{each} \\" for each in lines[:-1]), lines[-1]]


def _wrapped(text: str) -> str:
    """Return text whose lines fit. Lines of a list go on under their descriptions."""
    width = get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        item = re.match(r"  \S+ +", line)
        lines += textwrap.wrap(line, width, subsequent_indent=" " * len(item[0]) if item else "") or [""]
    return "\n".join(lines)


def _command(name: str, verb: Verb) -> Callable[..., None]:
    """Return the function of a verb. Its signature lists the arguments and options."""
    module, _, function = verb.run.partition(":")

    def command(*given: Any, **named: Any) -> None:
        from ..core.outputs import owning

        names = list(verb.arguments)
        given = tuple("-" if value == STANDARD_INPUT else value for value in given)
        values = dict(zip(names, given, strict=False))
        if verb.several:
            values[names[-1]] = given[len(names) - 1 :]
        values |= named
        running: Any = {each: values.pop(each) for each in NAMES if each in values}
        running["progress"] = sys.stderr.isatty() and not values.get("quiet")
        outputs = {each: Path(values[each]) for each in verb.outputs if values.get(each)}
        with config(**running), owning(**outputs):
            getattr(import_module(f"fastpart.cli.{module}"), function)(Call(name, values, running))

    slots = [
        Slot(
            argument,
            Slot.VAR_POSITIONAL
            if verb.several and argument == list(verb.arguments)[-1]
            else Slot.POSITIONAL_ONLY,
            annotation=Annotated[str, Parameter(help=text)],
        )
        for argument, text in verb.arguments.items()
    ]
    slots += [_slot(option, _GROUPS[title]) for title, option in verb.options().values()]
    command.__signature__ = Signature(slots)  # type: ignore[attr-defined]
    return command


def _slot(option: Option, group: Group) -> Slot:
    """Return the parameter of cyclopts for an option."""
    given: dict[str, Any] = {"metavar": option.metavar}
    if "bool" in option.words:
        given = {"negative": None if option.default or option.name == "peers" else ()}
    else:
        given["converter"] = lambda _, tokens: _value(option, tokens[0].value)
        if option.choices and not option.listed:
            given["choices"] = option.choices  # for completion
    names = [option.flag, *([_SHORT[option.name]] if option.name in _SHORT else [])]
    parameter = Parameter(name=names, help=option.doc, group=group, allow_repeating=True, **given)
    default = ",".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
    type_ = Any if "bool" not in option.words else bool if option.default is not None else bool | None
    return Slot(option.name, Slot.KEYWORD_ONLY, default=default, annotation=Annotated[type_, parameter])


def _value(option: Option, text: str) -> Any:
    value = seconds(option.flag, text) if option.is_time else from_text(option.flag, text, option.annotation)
    for word in value if isinstance(value, list) else [value]:
        if option.choices and option.listed:
            choice(option.flag, word, option.choices)
    return value


class _Columns:
    """Help in two columns of plain text."""

    def render_usage(self, console: Any, _: Any, usage: Any) -> None:
        """Print how to write the command."""
        console.print(f"usage: {_plain(usage)}\n")

    def render_description(self, console: Any, _: Any, description: Any) -> None:
        """Print what the command does."""
        console.print(textwrap.fill(_plain(description), console.width), end="\n\n")

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one group of options or commands."""
        if not panel.entries:
            return
        lines = [f"{panel.title}:"]
        for entry in panel.entries:
            label = "  " + ", ".join(entry.display_labels_with_metavar)
            text = _plain(entry.description)
            if entry.default is not None:
                text += f" [default: {entry.default}]"
            elif entry.required and entry.positional_label is None:
                text += " [required]"
            if len(label) >= _INDENT:
                lines.append(label)
                label = ""
            lines += _hanging(label.ljust(_INDENT), text, console.width)
        console.print("\n".join(lines), end="\n\n")


def _hanging(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, max(width, 2 * _INDENT), initial_indent=label, subsequent_indent=" " * len(label)
    )


def _plain(text: Any) -> str:
    """Return the plain text of what cyclopts formatted for rich."""
    return str(getattr(getattr(text, "primary_renderable", text), "plain", "")).strip()
