"""Messages in the words of the shell.

Functions speak of their parameters, since they are called from Python. The texts of errors, warnings and notes mark
what the shell spells differently (see :mod:`fastpart.errors`): ``pass objective="halo"`` becomes ``pass --objective
halo``. The parameter that a text begins with becomes its option, too. What has no marks, such as texts of the core, is
searched for parameters of the command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from os.path import normpath

from ..core.parameters import meant_parameter
from ..errors import ParameterError, named, spelled
from .call import in_shell, option
from .verbs import Family, Verb, verbs

_CALL = r"[\w.]+\([^()]*\)"
"""Python code, which stays as it is. A word and a parenthesis of a sentence have a space between."""

_SUBJECTS = {"source", "partition", "graph"}
"""What functions call the object that the first argument of a command names."""


def _flags_of(verb: Verb) -> dict[str, str]:
    return {name: option.flag for name, (_, option) in verb.options().items()}


class Wording:
    """The messages of one command."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    @cached_property
    def _verb(self) -> Verb | None:
        """The verb that the words name."""
        try:
            known: Mapping[str, Verb | Family] = verbs(self._words)
        except ParameterError:  # an unknown algorithm, which has no options
            return None
        for word in self._words:
            verb = known.get(word)
            if isinstance(verb, Verb):
                return verb
            known = verb.members() if isinstance(verb, Family) else known
        return None

    @cached_property
    def _flags(self) -> dict[str, str]:
        """The options of the verb, by the names of the parameters."""
        return {} if self._verb is None else _flags_of(self._verb)

    @cached_property
    def _known(self) -> dict[str, str]:
        """The options of the verb, and those of the verb that saves partitions, which messages recommend."""
        saving = verbs(["partition"])["partition"]
        assert isinstance(saving, Verb)
        return _flags_of(saving) | self._flags

    def _subject(self, name: str) -> str:
        """Return how the shell calls what a message begins with."""
        arguments = list(self._verb.arguments) if self._verb else []
        if name in self._flags:
            return self._flags[name]
        if name in _SUBJECTS and arguments:
            return (name if name in arguments else arguments[0]).upper()
        return name.upper() if name in arguments else name

    def unknown(self, word: str) -> str:
        """Return the message for an unknown option."""
        return f"unknown option {word!r}{meant_parameter(word, self._flags)}"

    def means(self, word: str, option: str) -> bool:
        """Return whether a word is no option, but close to that one."""
        return word not in self._flags.values() and f"{option!r}?" in self.unknown(word)

    @cached_property
    def _files(self) -> set[str]:
        """The words that may name files, as they are and as paths are shown."""
        values = [word.partition("=")[2] if word.startswith("-") else word for word in self._words]
        return {file for value in values if value for file in (value, normpath(value))}

    @cached_property
    def _kept(self) -> re.Pattern[str]:
        """What stays as it is: code, the files that the words name, and files below these."""
        files = [re.escape(file) for file in self._files if re.search(r"[=/._]", file)]
        return re.compile("|".join([_CALL, *(rf"(?<!\w){file}(?:/\S*)?" for file in files)]))

    def of_shell(self, text: str) -> str:
        """Return a text, with its marks, in the words of the shell."""
        names, rest = named(text)
        if names and names[0] not in self._files:
            text = ", ".join(map(self._subject, names)) + rest
        return spelled(text, lambda python, shell: option(python) if shell is None else shell, self._searched)

    def _searched(self, text: str) -> str:
        """Return a text without marks in the words of the shell."""
        translated, end = "", 0
        for kept in self._kept.finditer(text):
            translated += self._translated(text[end : kept.start()]) + kept[0]
            end = kept.end()
        return translated + self._translated(text[end:])

    def _translated(self, text: str) -> str:
        text = in_shell(text, self._known)
        for name, spelling in self._flags.items():
            if "_" in name and name in text:
                text = re.sub(rf"(?<![\w\"'./\-:]){name}(?![\w\"'/(=-]|\.\w)", spelling, text)
        return text
