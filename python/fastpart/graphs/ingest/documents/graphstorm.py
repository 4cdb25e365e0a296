"""Configurations of GraphStorm (GConstruct and GSProcessing) as schemas.

What is read: files, columns of ids, features (numbers and categories), labels, and splits by shares. Transformations
beyond that belong to the training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import ParameterError
from .texts import Triple, name_of, names_of

_CATEGORIES = ("to_categorical", "categorical", "multi-categorical")

_SCALED = ("standard", "max_min_norm", "numerical")


def recognised(content: Mapping[str, Any]) -> bool:
    """Whether a document is a configuration of GraphStorm."""
    graph = content.get("graph", content)
    return isinstance(graph, Mapping) and isinstance(graph.get("edges"), list)


def translated(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration of GraphStorm as the content of a schema."""
    graph = content.get("graph", content)
    vertices: dict[str, Any] = {}
    for place, node in _listed(graph, "nodes"):
        name = name_of(_of(node, place, "node_type", "type"))
        entry = _table(node, place) | {"id": _of(node, place, "node_id_col", "column")}
        if name in vertices:
            raise ParameterError(f"{place}: the type {name!r} has two entries. Put the files into one")
        vertices[name] = entry | _labels(node, place)
    edges = [(place, edge, _triple(edge, place)) for place, edge in _listed(graph, "edges")]
    names = names_of(triple for _, _, triple in edges)
    relations: dict[str, Any] = {}
    for place, edge, triple in edges:
        source, _, target = triple
        vertices.setdefault(source, {})
        vertices.setdefault(target, {})
        name = names[triple]
        from_, to = _ends(edge, place)
        ends = {"source": {source: from_}, "target": {target: to}}
        relations[name] = _table(edge, place) | ends | _labels(edge, place)
    return {"fastpart": 1, "directedness": "directed", "vertices": vertices, "relations": relations}


def _listed(graph: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    entries = graph.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(each, Mapping) for each in entries):
        raise ParameterError(f"{key}: expected a list of entries, as GraphStorm has it")
    return [(f"{key}[{place}]", each) for place, each in enumerate(entries)]


def _of(entry: Mapping[str, Any], place: str, *keys: str) -> Any:
    """Return the value of the first of these keys: the two programs name them differently."""
    for key in keys:
        if key in entry:
            return entry[key]
    raise ParameterError(f"{place}: {' or '.join(map(repr, keys))} is missing")


def _triple(edge: Mapping[str, Any], place: str) -> Triple:
    relation = _of(edge, place, "relation")
    if isinstance(relation, list) and len(relation) == 3:
        source, name, target = map(name_of, relation)
        return source, name, target
    if not isinstance(relation, Mapping):
        raise ParameterError(f"{place}.relation: expected [source, relation, target]")
    ends = [_of(_of(edge, place, end), f"{place}.{end}", "type") for end in ("source", "dest")]
    return name_of(ends[0]), name_of(_of(relation, f"{place}.relation", "type")), name_of(ends[1])


def _ends(edge: Mapping[str, Any], place: str) -> tuple[str, str]:
    if "source_id_col" in edge:
        return edge["source_id_col"], _of(edge, place, "dest_id_col")
    return (
        _of(_of(edge, place, "source"), f"{place}.source", "column"),
        _of(_of(edge, place, "dest"), f"{place}.dest", "column"),
    )


def _table(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    data = entry.get("data", entry)
    form = data.get("format", "parquet")
    kind = form.get("name", "parquet") if isinstance(form, Mapping) else form
    table: dict[str, Any] = {"files": _of(data, place, "files")}
    if kind == "csv":
        where = form if isinstance(form, Mapping) else data
        table["format"] = {"csv": {"separator": where.get("separator", ",")}}
    elif kind not in ("parquet",):
        raise ParameterError(f"{place}: the format {kind!r} is not read. Write Parquet or CSV")
    features = [_feature(each, f"{place}.features") for each in entry.get("features", [])]
    return table | ({"features": features} if features else {})


def _feature(feature: Mapping[str, Any], place: str) -> dict[str, Any]:
    column = _of(feature, place, "feature_col", "column")
    if isinstance(column, list):
        (column,) = column if len(column) == 1 else (None,)
    if not isinstance(column, str):
        raise ParameterError(f"{place}: expected one column a feature")
    transform = feature.get("transform", feature.get("transformation", {"name": "no-op"}))
    name = transform.get("name", "no-op")
    if name in _CATEGORIES:
        if "separator" in transform or "separator" in transform.get("kwargs", {}):
            raise ParameterError(f"{place}: {column!r} has a separator. Store lists of text in the table")
        return {"column": column, "as": "onehot"}
    if name not in ("no-op", *_SCALED):
        raise ParameterError(
            f"{place}: the transformation {name!r} of {column!r} is not known. Store its result in the table"
        )
    scaled = name == "standard" or transform.get("kwargs", {}).get("normalizer") == "standard"
    return {"column": column, "standardise": scaled}


def _labels(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return label and split of an entry. A task of links has none: its edges are split by :func:`split_edges`."""
    labels = [
        each
        for each in entry.get("labels") or []
        if "link_prediction" not in (each.get("task_type"), each.get("type"))
    ]
    if len(labels) > 1:
        raise ParameterError(f"{place}.labels: only one label a type or relation is read")
    if not labels:
        return {}
    label = labels[0]
    rates = label.get("split_pct", label.get("split_rate"))
    if isinstance(rates, Mapping):
        rates = [rates.get("train", 0), rates.get("val", 0), rates.get("test", 0)]
    found = {"label": _of(label, place, "label_col", "column")}
    if rates:
        found["split"] = {"by": "random", **dict(zip(("train", "val", "test"), rates, strict=False))}
    if "custom_split_filenames" in label:
        raise ParameterError(
            f"{place}.labels: splits by files of ids are not read. Add a column with train, val and test"
        )
    return found
