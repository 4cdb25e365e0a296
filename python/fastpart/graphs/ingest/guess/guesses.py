"""Guesses as YAML, with a comment for each."""

from __future__ import annotations

import json
import re
from typing import Any

from ....core.parameters import one_line
from .looks import Guess, Look, RelationGuess, VertexGuess

_COLUMN = 34
"""Where comments begin."""

_LABEL = re.compile(r"^(label|labels|y|target|class)$", re.IGNORECASE)
_TIME = re.compile(r"(_at|^time|_time|timestamp|^year|_year|^date|_date)$", re.IGNORECASE)
_WEIGHT = re.compile(r"^(weight|w|score|rating)$", re.IGNORECASE)
_SPLITS = {"train", "val", "test"}


def written(found: Guess) -> str:
    """Return what was found as the text of a schema."""
    lines = [
        "# Guessed from names, types and first rows of the tables. Look over the lines with `# ?`.",
        "fastpart: 1",
        f"root: {quoted(found.folder)}",
        "vertices:",
    ]
    for each in found.vertices:
        lines += _vertices(each)
    declared = {each.name for each in found.vertices}
    others = {end.type for each in found.relations for end in (each.source, each.target)} - declared
    lines += [
        _line(f"  {quoted(name)}: {{}}", "no table: its ids are those that relations name")
        for name in sorted(others)
    ]
    if lines[-1] == "vertices:":
        lines[-1] = _line("vertices: {}", "? no table of vertices was found")
    lines.append(
        "relations:" if found.relations else _line("relations: {}", "? no table of records was found")
    )
    starred = False
    for relation in found.relations:
        star = relation.predicate is not None and not starred
        starred |= star
        lines += _relation(relation, star)
    lines += [f"# left out: {one_line(each)}" for each in found.left]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return text as YAML writes it."""
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", text)
    words = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return text if plain and text.lower() not in words else json.dumps(text, ensure_ascii=False)


def _line(text: str, note: str = "") -> str:
    if not note:
        return text
    return f"{text.ljust(_COLUMN)}{'  ' if len(text) >= _COLUMN else ''}# {one_line(note)}"


def _vertices(guess: VertexGuess) -> list[str]:
    table = guess.look
    lines = [f"  {quoted(guess.name)}:", *_files(table)]
    lines.append(_line(f"    id: {_key(guess.id, guess.numeric)}", guess.note))
    rest = [each for each in table.kinds if each != guess.id]
    lines += _label(table, rest) + _split(table, rest) + _time(table, rest) + _features(table, rest)
    return lines + _unused(table, rest)


def _relation(guess: RelationGuess, star: bool) -> list[str]:
    table = guess.look
    name = '"*"' if star else quoted(guess.name)
    lines = [f"  {name}:", *_files(table)]
    rest = [each for each in table.kinds if each not in (guess.source.column, guess.target.column)]
    if star and guess.predicate is not None:
        rest.remove(guess.predicate)
        lines.append(_line(f"    relation: {quoted(guess.predicate)}", "its values name the relations"))
    for end, column in (("source", guess.source), ("target", guess.target)):
        note = f"{guess.note}; {column.note}" if end == "source" else column.note
        note = f"? {note.replace('? ', '')}" if "?" in note else note
        lines.append(
            _line(f"    {end}: {{{quoted(column.type)}: {_key(column.column, column.numeric)}}}", note)
        )
    if min(guess.source.found, guess.target.found) < 1:
        lines.append(_line("    missing: drop", "? or add, since some ids are in no table"))
    weights = [each for each in rest if _WEIGHT.search(each) and table.kinds[each] in ("int", "number")]
    if weights:
        rest.remove(weights[0])
        lines.append(_line(f"    weight: {quoted(weights[0])}", "by its name"))
    return lines + _time(table, rest) + _features(table, rest) + _unused(table, rest)


def _files(table: Look) -> list[str]:
    note = "; ".join(table.notes)
    lines = [_line(f"    files: {quoted(table.files)}", note if table.format is None else "")]
    if table.format is not None and table.format.csv is not None:
        csv = table.format.csv
        keys = [] if csv.separator is None else [f"separator: {json.dumps(csv.separator)}"]
        keys += [] if csv.header else ["header: false"]
        lines.append(_line(f"    format: {{csv: {{{', '.join(keys)}}}}}", note or "by the first line"))
    return lines


def _key(column: str, numeric: bool) -> str:
    return f"{{column: {quoted(column)}, as: int}}" if numeric else quoted(column)


def _label(table: Look, rest: list[str]) -> list[str]:
    for each in rest:
        if _LABEL.match(each) and table.kinds[each] in ("int", "text", "number", "vector"):
            rest.remove(each)
            return [_line(f"    label: {quoted(each)}", "by its name")]
    return []


def _split(table: Look, rest: list[str]) -> list[str]:
    for each in rest:
        values = set(table.rows[each].drop_nulls().unique()) if table.kinds[each] == "text" else set()
        if values <= _SPLITS and "train" in values:
            rest.remove(each)
            return [_line(f"    split: {quoted(each)}", "holds train, val, test")]
    return []


def _time(table: Look, rest: list[str]) -> list[str]:
    times = [each for each in rest if table.kinds[each] == "time"]
    times += [each for each in rest if _TIME.search(each) and table.kinds[each] == "int"]
    if not times:
        return []
    rest.remove(times[0])
    note = "a date" if table.kinds[times[0]] == "time" else "by its name"
    return [_line(f"    time: {quoted(times[0])}", f"? or {', '.join(times[1:])}" if times[1:] else note)]


def _features(table: Look, rest: list[str]) -> list[str]:
    features = [each for each in rest if table.kinds[each] in ("number", "vector")]
    for each in features:
        rest.remove(each)
    shared = re.match(r"(.*[A-Za-z_])\d+$", features[0]) if len(features) > 8 else None
    if shared and all(re.fullmatch(rf"{re.escape(shared[1])}\d+", each) for each in features):
        features = [f"{shared[1]}*"]
    return [_line(f"    features: [{', '.join(map(quoted, features))}]", "numbers")] if features else []


def _unused(table: Look, rest: list[str]) -> list[str]:
    known: dict[Any, str] = {"int": "whole numbers", "other": "of no use"}
    shown = [f"{one_line(each, 60)} ({known.get(table.kinds[each], table.kinds[each])})" for each in rest]
    return [f"    # not used: {', '.join(shown)}"] if shown else []
