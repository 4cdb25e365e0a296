"""Guesses as YAML, with a comment for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ....core.parameters import one_line
from .looks import IDENTIFIER, Guess, Look, RelationGuess, VertexGuess

_COLUMN = 34
"""Where comments begin."""

_LABEL = re.compile(r"^(label|labels|y|target|class)$", re.IGNORECASE)
_TIME = re.compile(r"(_at|^time|_time|timestamp|^year|_year|^date|_date)$", re.IGNORECASE)
_WEIGHT = re.compile(r"^(weight|w|score|rating)$", re.IGNORECASE)
_SPLITS = {"train", "val", "test"}
_MASK = re.compile(
    r"^((train|val|valid|validation|test)_?mask|is_(train|val|valid|validation|test))$", re.IGNORECASE
)
_NO_FEATURE = re.compile(r":(LABEL|TYPE|IGNORE)(\(.*\))?$", re.IGNORECASE)
"""Headers of neo4j-admin that say what a row is."""


def written(found: Guess) -> str:
    """Return what was found as the text of a schema."""
    lines = [
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
    lines += [f"# ? left out: {one_line(each, 300)}" for each in found.left]
    look = " Look over the lines with `# ?`." if in_doubt(lines) else ""
    return "\n".join([f"# Guessed from names, types and first rows of the tables.{look}", *lines]) + "\n"


def in_doubt(lines: Iterable[str]) -> bool:
    """Whether any line of a schema is marked as one to look over."""
    return any("# ?" in line and "`# ?`" not in line for line in lines)


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
    if guess.duplicates:
        lines.append(_line("    duplicates: first", guess.duplicates))
    rest = [each for each in table.kinds if each != guess.id]
    split, time = _split(table, rest), _time(table, rest)
    lines += (_label(table, rest) or _few(table, rest)) + split + time + _features(table, rest)
    return lines + _masks(table, rest) + _unused(table, rest)


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
    lines += _label(table, rest) + _split(table, rest) + _time(table, rest) + _features(table, rest)
    return lines + _masks(table, rest) + _unused(table, rest)


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


def _few(table: Look, rest: list[str]) -> list[str]:
    """Return a comment that names the columns of few values, of which one may be the label."""
    few = [each for each in rest if table.kinds[each] in ("int", "text") and table.few(each) > 1]
    few = [each for each in few if not (_NO_FEATURE.search(each) or IDENTIFIER.search(each))]
    return (
        [f"    # ? label: {', or '.join(map(one_line, few))}. Then take it out of the features"]
        if few
        else []
    )


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
    """Return the line of the features, or a line for each if one needs more than its name."""
    found = {each: feature for each in rest if (feature := feature_of(table, each)) is not None}
    for each in found:
        rest.remove(each)
    plain = [each for each, (more, note) in found.items() if not more and not note]
    shared = re.match(r"(.*[A-Za-z_])\d+$", plain[0]) if len(plain) > 8 else None
    if shared and all(re.fullmatch(rf"{re.escape(shared[1])}\d+", each) for each in plain):
        plain = [f"{shared[1]}*"]
    if not any(more or note for more, note in found.values()):
        return [_line(f"    features: [{', '.join(map(quoted, plain))}]", "numbers")] if plain else []
    lines = [_line(f"      - {quoted(each)}", "numbers") for each in plain]
    for each, (more, note) in found.items():
        if more or note:
            keys = "".join(
                f", {key}: {quoted(value) if isinstance(value, str) else json.dumps(value)}"
                for key, value in more.items()
            )
            told = f"{{column: {quoted(each)}{keys}}}" if more else quoted(each)
            lines.append(_line(f"      - {told}", note))
    return ["    features:", *lines]


def feature_of(table: Look, column: str) -> tuple[dict[str, Any], str] | None:
    """Return the keys that a feature needs beside its name, and a comment. None for a column that is none."""
    kind, missing = table.kinds[column], table.missing(column)
    if _NO_FEATURE.search(column) or _MASK.match(column) or IDENTIFIER.search(column):
        return None
    if kind == "int" and table.unique(column, equal_rows=True):
        return None
    lacking = f"? {missing:,} of {len(table.rows):,} rows lack it" if missing else ""
    if kind in ("number", "vector"):
        return ({"fill": 0} if missing else {}), lacking
    few = table.few(column) if kind in ("int", "text", "texts") else 0
    if kind == "int":
        note = f"? or as: onehot, of {few} values" if few > 2 else "whole numbers"
        return ({"fill": 0} if missing else {}), lacking or note
    if few > 1:
        return {"as": "onehot", **({"fill": "unknown"} if missing else {})}, lacking or f"{few} values"
    if kind == "time" and not missing:
        return {"as": "days", "standardise": True}, "a date"
    return None


def _masks(table: Look, rest: list[str]) -> list[str]:
    """Return a line about columns that say of one split each whether a row is in it."""
    masks = [each for each in rest if _MASK.match(each)]
    for each in masks:
        rest.remove(each)
    told = ", ".join(one_line(each, 60) for each in masks)
    return [f"    # ? split: one column that holds train, val or test, for {told}"] if masks else []


def _unused(table: Look, rest: list[str]) -> list[str]:
    known: dict[Any, str] = {"int": "whole numbers", "texts": "lists of text", "other": "of no use"}
    shown = [f"{one_line(each, 60)} ({known.get(table.kinds[each], table.kinds[each])})" for each in rest]
    return [f"    # not used: {', '.join(shown)}"] if shown else []
