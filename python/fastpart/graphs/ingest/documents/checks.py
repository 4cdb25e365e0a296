"""What must hold between the entries of a schema, before any file is looked for."""

from __future__ import annotations

from ....core.parameters import meant
from ....errors import ParameterError
from ..schema import Rates, Relation, Schema, Table, Vertices


def check(schema: Schema) -> None:
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
