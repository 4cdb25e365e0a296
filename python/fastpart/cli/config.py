"""``--config run.toml``: options from a file, and the file that is saved beside a result.

The options of the file become words of the command line, before anything else reads it. So they are checked, and
refused, as if they had been typed. What is typed stands instead of what the file says.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..core.notes import log
from ..core.parameters import meant_parameter, regular, shown
from ..errors import GraphFormatError, ParameterError
from .call import Call, flag
from .verbs import Family, Verb, verbs

FLAG = "--config"

_VERSION = "fastpart"
"""The key of the version that wrote a file. It is not an option."""

_HEAD = "# Options of a run of fastpart."
"""The first line of a file that may be replaced."""

_UNSAVED = {
    "log",
    "out",
    "resume",
    "overwrite",
    "json",
    "quiet",
    "debug",
    "cluster",
    "shared",
    "threads",
    "tmp_dir",
    "progress",
}
"""Options that do not decide on the result, but where and on what it is made."""


def expanded(words: Sequence[str]) -> list[str]:
    """Return a command line with the options of its ``--config`` among the words.

    Raises
    ------
    ParameterError
        The file is not TOML, or has a key that is not an option of the verb.
    OSError
        The file cannot be read.
    """
    kept, file = _taken(words)
    if file is None or not {"--help", "-h"}.isdisjoint(kept):
        return kept
    content = _read(file)
    content.pop(_VERSION, None)
    path = _path(kept)
    if not path:
        return kept
    given = _entries(content, path)
    if "algorithm" in given and not any(word.partition("=")[0] == "--algorithm" for word in kept):
        kept = [*kept, f"--algorithm={given['algorithm']}"]
    *_, (_, verb) = _path(kept)
    assert isinstance(verb, Verb)
    called = " ".join(name for name, _ in path)
    if path[0][0] == "partition" and verb.takes[0] != "partition":
        called += f" --algorithm {verb.takes[0]}"
    return [*kept, *_words(kept[len(path) :], verb, given, f"{shown(file)}: ", called)]


def _taken(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the words without ``--config``, and the file that it names."""
    kept, file, rest = [], None, iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name != FLAG:
            kept.append(word)
            continue
        file = value if equals else next(rest, "")
        if not file:
            raise ParameterError(f"{FLAG} needs a value")
    return kept, file


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(regular(Path(file)).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParameterError(f"{FLAG}: {shown(file)} is not TOML: {error}") from None


def _path(words: Sequence[str]) -> list[tuple[str, Verb | Family]]:
    """Return the names of the verb that the words begin with, such as ``train`` and ``full``. None if it is unknown."""
    known: Mapping[str, Verb | Family] = verbs(words)
    path: list[tuple[str, Verb | Family]] = []
    for word in words:
        if word not in known:
            return []
        path.append((word, known[word]))
        verb = known[word]
        if isinstance(verb, Verb):
            return path
        known = verb.members()
    return []


def _entries(content: Mapping[str, Any], path: Sequence[tuple[str, Verb | Family]]) -> dict[str, Any]:
    """Return the keys of the file, and those of the table of the verb, which count more."""
    known: Mapping[str, Any] = verbs(())
    given: dict[str, Any] = {}
    for name, verb in path:
        given |= _without_tables(content, known)
        content = content.get(name, {}) if isinstance(content.get(name), dict) else {}
        known = verb.members() if isinstance(verb, Family) else {}
    return {**given, **content}


def _without_tables(content: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if not (name in known and isinstance(value, dict))}


def _words(typed: Sequence[str], verb: Verb, given: Mapping[str, Any], where: str, called: str) -> list[str]:
    """Return the words for the keys of a file, without those that are typed. Refuse a key that is unknown."""
    options = {
        option.flag.lstrip("-"): option for _, option in verb.options().values() if option.flag != FLAG
    }
    for key in given:
        if key not in options and key not in verb.arguments:
            known = {name.replace("-", "_"): name for name in (*options, *verb.arguments)}
            raise ParameterError(f"{where}unknown key {key!r} of {called}{meant_parameter(key, known)}")
    arguments, flags = _typed(typed, {each.flag for each in options.values() if "bool" not in each.words})
    words = []
    for name in list(verb.arguments)[arguments:]:
        if name not in given:
            break
        words += [_text(each) for each in (given[name] if isinstance(given[name], list) else [given[name]])]
    for key, value in given.items():
        if key not in options or options[key].flag in flags:
            continue
        option, text = options[key], _text(value)
        if "bool" in option.words and isinstance(value, bool):
            negative = bool(option.default) or option.name == "peers"
            words += [option.flag] if value else [f"--no-{key}"] if negative else []
        else:
            words += [option.flag, text] if option.flag == "-k" else [f"{option.flag}={text}"]
    return words


def _typed(words: Sequence[str], with_value: set[str]) -> tuple[int, set[str]]:
    """Return how many arguments are typed, and which options, by their long names."""
    arguments, flags, rest = 0, set(), iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            arguments += 1
            continue
        name = {"-o": "--out", "-q": "--quiet"}.get(word, word.partition("=")[0])
        flags |= {name, f"--{name.removeprefix('--no-')}"}
        if name in with_value and "=" not in word:
            next(rest, None)
    return arguments, flags


def _text(value: Any) -> str:
    """Return a value of TOML as the shell takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        return ",".join(f"{key}={_text(item).replace(',', ':')}" for key, item in value.items())
    return str(value)


# The file beside a result.


def options_file(call: Call, *families: str) -> bytes:
    """Return the file with the options of a command that decide on its result."""
    given = {
        **call.values,
        **{name: call.running[name] for name in ("memory_limit",) if name in call.running},
    }
    saved = {name: value for name, value in given.items() if name not in _UNSAVED}
    called = [*families, call.name.replace("_", "-")]
    lines = [
        f"{_HEAD} To repeat it: fastpart {' '.join(called)} {FLAG} THIS_FILE -o OUT",
        f"{_VERSION} = {_toml(_core.__version__)}",
        "",
        f"[{'.'.join(called)}]",
        *(f"{flag(name).lstrip('-')} = {_toml(value)}" for name, value in saved.items()),
    ]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def save_options(call: Call, target: Path, *families: str) -> None:
    """Write the options of a command beside its output, ``OUT.run.toml``. Another file of that name stays."""
    file = target.with_name(f"{target.name}.run.toml")
    try:
        if file.is_symlink() or (file.exists() and not regular(file).read_bytes().startswith(_HEAD.encode())):
            log.info("%s was not written by fastpart. The options of this run are not saved", shown(file))
            return
        _core.write_file(file, options_file(call, *families))
    except GraphFormatError as error:  # the result is complete
        log.warning("%s. The options of this run are not saved", error)
    except OSError as error:
        log.warning("%s: the options of this run cannot be saved: %s", shown(file), error.strerror or error)


def _toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(str(key))} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    text = "none" if value is None else str(value)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
