"""Messages in the words of the shell.

Functions speak of their parameters, since they are called from Python. Where a command prints what they said, each
parameter becomes the option of the shell, and its value is written as the shell takes it: ``time_limit: -1 is ...``
becomes ``--time-limit: -1 is ...``, and ``pass objective="halo"`` becomes ``pass --objective halo``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from os.path import normpath

from ..core.parameters import meant_parameter
from ..errors import ParameterError
from .spelling import in_shell
from .verbs import Family, Verb, verbs

_CALL = r"[\w.]+\([^()]*\)"
"""Python code, which stays as it is. A word and a parenthesis of a sentence have a space between."""

_PHRASES = {
    "standardise=True": "--standardise",  # of another command
    "fp.open_partition opens it": "`fastpart evaluate GRAPH DIRECTORY` measures it, and `fastpart verify DIRECTORY` "
    "checks it",
    'fp.restore(p, graph=graph)["id"] lists': "`fastpart restore` lists",
    "fp.restore(result, graph=graph) brings": "-o with a .parquet and --restore, or `fastpart restore`, bring",
}
"""What a function does that the shell has a command for."""


class Wording:
    """The messages of one command."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    @cached_property
    def _flags(self) -> dict[str, str]:
        """The options of the verb that the words name, by the names of the parameters."""
        try:
            known: Mapping[str, Verb | Family] = verbs(self._words)
        except ParameterError:  # an unknown algorithm, which has no options
            return {}
        for word in self._words:
            verb = known.get(word)
            if isinstance(verb, Verb):
                return {name: option.flag for name, (_, option) in verb.options().items()}
            known = verb.members() if isinstance(verb, Family) else known
        return {}

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
        """Return a message with options instead of parameters."""
        for phrase, other in _PHRASES.items():
            text = text.replace(phrase, other)
        names = re.match(r"([a-z_]+(?:, [a-z_]+)*)(?=(?:\[\d+\])?: )", text)
        if names and names[1] not in self._files:
            flags = [self._flags.get(name, name) for name in names[1].split(", ")]
            text = ", ".join(flags) + text[names.end() :]
        translated, end = "", 0
        for kept in self._kept.finditer(text):
            translated += self._translated(text[end : kept.start()]) + kept[0]
            end = kept.end()
        return translated + self._translated(text[end:])

    def _translated(self, text: str) -> str:
        text = in_shell(text, self._flags)
        for name, option in self._flags.items():
            if "_" in name and name in text:
                text = re.sub(rf"(?<![\w\"'./\-:]){name}(?![\w\"'/(=-]|\.\w)", option, text)
        return text
