"""Schemas of an ingest from YAML, TOML, JSON or a dict, with errors that name the entry."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from ....core.parameters import meant, one_line, regular, shown
from ....core.parameters import path as checked_path
from ....core.parsing import is_name
from ....errors import ParameterError
from ..schema import Column, Csv, Entry, Format, Key, Rates, Relation, Schema, Table, Vertices
from ..tables.listing import joined
from . import graphstorm, yamls

SUFFIXES = (".yaml", ".yml", ".toml", ".json")

_VERSION = 1

_NESTED: dict[str, type[Entry]] = {
    "format": Format,
    "csv": Csv,
    "features": Column,
    "split": Rates,
    "source": Key,
    "target": Key,
    "id": Key,
}
"""Types of what lies below a key of an entry."""

Made = TypeVar("Made", bound=Entry)


def read_schema(source: Any) -> tuple[Schema, str]:
    """Return a schema, and the folder or URL where its relative paths begin.

    Parameters
    ----------
    source : path, mapping or Schema
        A .yaml, .yml, .toml or .json file, also one of GraphStorm, or what such a file holds.

    Raises
    ------
    ParameterError
        With the entry that is wrong, as ``relations.cites.missing``.
    """
    if isinstance(source, Schema):
        _check(source)
        return source, joined(".", source.root or ".")
    if isinstance(source, Mapping):
        try:
            return _schema(source, ".")
        except RecursionError:
            raise ParameterError("schema: a value contains itself, or is nested too deeply") from None
    if not isinstance(source, str | bytes | os.PathLike):
        raise TypeError(f"schema: expected a path or a dict, got {type(source).__name__}")
    file = checked_path("schema", source)
    if file.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"schema: {shown(file)} does not end with one of {', '.join(SUFFIXES)}")
    with _naming(shown(file)):
        return _schema(_parsed(file), str(file.parent))


@contextmanager
def _naming(file: str) -> Any:
    """Name the file of the schema in front of what is wrong in it."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}") from None


def _parsed(file: Path) -> Any:
    content = regular(file).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ParameterError(f"line {line} is not UTF-8") from None
    if file.suffix.lower() in (".yaml", ".yml"):
        return yamls.read(text)
    try:
        return json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = file.suffix[1:].upper()
        raise ParameterError(f"not {kind}: {one_line(error, 200)}") from None


def _schema(content: Any, folder: str) -> tuple[Schema, str]:
    if not isinstance(content, Mapping):
        raise ParameterError(f"expected the keys `vertices` and `relations`, got {_kind(content)}")
    if graphstorm.recognised(content):
        content = graphstorm.translated(content)
    top = dict(content)
    version = top.pop("fastpart", _VERSION)
    if version != _VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > _VERSION
        what = "is newer than what this fastpart reads. Update it" if newer else "is no version. Write 1"
        raise ParameterError(f"fastpart: {version!r} {what}")
    vertices = _entries("vertices", top.pop("vertices", {}), Vertices)
    relations = _entries("relations", top.pop("relations", {}), Relation)
    rest = _converted("", {**top, "vertices": {}, "relations": {}}, Schema)
    schema = msgspec.structs.replace(rest, vertices=vertices, relations=relations)
    _check(schema)
    return schema, joined(folder, schema.root or ".")


def _entries(section: str, content: Any, kind: type[Made]) -> dict[str, Made]:
    """Return the entries of ``vertices`` or ``relations``, by name."""
    if not isinstance(content, Mapping):
        raise ParameterError(f"{section}: expected a mapping of names to entries, got {_kind(content)}")
    for name in content:
        _check_name(section, name)
    return {name: _converted(f"{section}.{name}", content[name], kind) for name in sorted(content)}


def _check_name(section: str, name: object) -> None:
    if not isinstance(name, str):
        read = "`no`, `off`, `yes` or `on`" if isinstance(name, bool) else f"`{name}`"
        raise ParameterError(f"{section}: a name is written as {read}, which is no text in YAML. Quote it")
    if not is_name(name) and not (section == "relations" and name == "*"):
        raise ParameterError(
            f"{section}: {name!r} is no name. Names become folders: they have at most 64 letters, digits and the signs "
            "_ . -, and do not begin with . or -"
        )


def _converted(place: str, content: Any, kind: type[Made]) -> Made:
    """Return an entry. Errors name the keys that lead to what is wrong."""
    if isinstance(content, Mapping):
        content = {key: _plain(key, value) for key, value in content.items()}
    files = content.pop("files", None) if isinstance(content, dict) else None
    try:
        entry = msgspec.convert(content, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise ParameterError(_told(place, str(error), kind)) from None
    return entry if files is None else msgspec.structs.replace(entry, files=files)


def _plain(key: object, value: Any) -> Any:
    """Return nested mappings as dicts with text as keys, so that no key of YAML is taken for a type."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ParameterError(f"{key}: {name!r} is no text. Quote it")
        return {name: _plain(name, each) for name, each in value.items()}
    return [_plain(key, each) for each in value] if isinstance(value, list | tuple) else value


def _told(place: str, error: str, kind: type[Entry]) -> str:
    """Put what msgspec says into words."""
    text, _, path = error.partition(" - at `$")
    path = path.removesuffix("`").replace("[...]", "").lstrip(".")
    where = ".".join(filter(None, [place, path]))
    where = f"{where}: " if where else ""
    keys = re.sub(r"\[\d+\]", "", path).split(".")
    if unknown := re.search(r"unknown field `(.*)`", text):
        names = [each.encode_name for each in _fields(keys, kind)]
        return f"{where}unknown key {unknown[1]!r}. Known are {', '.join(names)}{meant(unknown[1], names)}"
    if missing := re.search(r"missing required field `(.*)`", text):
        return f"{where}`{missing[1]}` is missing"
    if value := re.search(r"Invalid enum value ('.*')", text):
        types = [each.type for each in _fields(keys[:-1], kind) if each.encode_name == keys[-1]]
        valid = ", ".join(word for each in types for word in _choices(each))
        return f"{where}unknown value {value[1]}. Valid values are {valid}"
    return f"{where}{_words(text)}"


def _fields(keys: list[str], kind: type[Entry]) -> Any:
    """Return the fields of the entry that these keys lead to."""
    return msgspec.structs.fields(next((_NESTED[each] for each in reversed(keys) if each in _NESTED), kind))


def _choices(wanted: Any) -> list[str]:
    """Return the words that a field of this type takes."""
    if get_origin(wanted) is Literal:
        return list(get_args(wanted))
    if wanted is bool:
        return ["true", "false"]
    return [each for inner in get_args(wanted) for each in _choices(inner)]


def _words(text: str) -> str:
    """Return the type or value that msgspec expected in words of YAML."""
    if types := re.match(r"Expected `(.*)`, got `(.*)`", text):
        names = {"str": "text", "object": "a mapping", "array": "a list", "bool": "true or false"}
        names |= {"float": "a number", "int": "a whole number"}
        wanted = [names.get(each, each) for each in types[1].split(" | ") if each != "null"]
        quote = (
            ". Quote it" if "str" in types[1].split(" | ") and types[2] in ("bool", "int", "float") else ""
        )
        return f"expected {' or '.join(wanted)}, got {names.get(types[2], types[2])}{quote}"
    return text[:1].lower() + text[1:].replace("`float`", "a number").replace("`", "")


def _kind(value: object) -> str:
    kinds: dict[Any, str] = {list: "a list", str: "text", type(None): "nothing", date: "a date"}
    return kinds.get(type(value), type(value).__name__)


def _check(schema: Schema) -> None:
    """Refuse a schema whose entries do not fit together."""
    if not schema.relations:
        raise ParameterError("relations: there are none. A graph needs at least one table of edges")
    for name, entry in schema.vertices.items():
        _vertices(f"vertices.{name}", entry)
    for name, relation in schema.relations.items():
        _relation(f"relations.{name}", name, relation, schema)
    named = {kind for relation in schema.relations.values() for kind in (*relation.source, *relation.target)}
    for name, entry in schema.vertices.items():
        if entry.files is None and name not in named:
            raise ParameterError(
                f"vertices.{name}: it has no files, and no relation names it. Add `files` and `id`, or leave it out"
            )


def _vertices(place: str, entry: Vertices) -> None:
    _table(place, entry)
    if entry.files is not None and entry.id is None:
        raise ParameterError(f"{place}.id: name the column of the ids")
    if entry.files is None:
        for key in ("id", "features", "label", "time", "split"):
            if getattr(entry, key):
                raise ParameterError(f"{place}.{key}: it needs a table. Add `files`, or leave it out")


def _relation(place: str, name: str, relation: Relation, schema: Schema) -> None:
    _table(place, relation)
    if relation.files is None:
        raise ParameterError(f"{place}.files: name the files of its records")
    if (name == "*") != (relation.relation is not None):
        what = "`*` needs it" if name == "*" else "only the relation `*` may have it"
        raise ParameterError(f"{place}.relation: the column that names the relations. {what.capitalize()}")
    for end, ids in (("source", relation.source), ("target", relation.target)):
        if len(ids) != 1:
            raise ParameterError(
                f"{place}.{end}: expected one type and its column, as {{paper: paper_id}}, got {len(ids)}"
            )
        (kind,) = ids
        if kind not in schema.vertices:
            known = meant(kind, schema.vertices) or f". They are {', '.join(schema.vertices) or 'none'}."
            raise ParameterError(
                f"{place}.{end}: `vertices` has no type {kind!r}{known} If its ids are those that relations name, "
                f"add `{kind}: {{}}` to `vertices`"
            )
    if relation.reverse == "merged" and list(relation.source) != list(relation.target):
        raise ParameterError(
            f"{place}.reverse: only edges between vertices of one type can be merged with their reverse. Use true"
        )


def _table(place: str, entry: Table) -> None:
    split = entry.split
    if isinstance(split, Rates):
        if split.by == "time" and entry.time is None:
            raise ParameterError(f"{place}.split: `by: time` needs the column of the time. Add `time`")
        if (total := split.train + split.val + split.test) > 1 + 1e-9:
            raise ParameterError(f"{place}.split: the shares add up to {total:g}, more than 1")
    csv = entry.format.csv if entry.format is not None else None
    for key in ("separator", "quote"):
        sign = getattr(csv, key, None)
        if (sign and len(sign.encode()) != 1) or (key == "separator" and sign == ""):
            raise ParameterError(f"{place}.format.csv.{key}: expected one ASCII character, got {sign!r}")
