"""Datasets of other libraries as schemas: the raw folders of OGB, CSVDataset of DGL, and the single file of neo4j.

The formats are those that their readers and documentation describe: ``ogb/io/read_graph_raw.py`` of OGB, "Loading data
from CSV files" of DGL's user guide (version 1.0.0), and ``apoc.export.csv.all`` of neo4j's APOC library.

Their tables lack columns of ids, or have rows of several types in one file. So a schema gets frames that are computed
from the files while these are read. A label, a split and a type of each vertex are kept in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....core.frames import before_polars_threads, pl
from ....core.notes import log
from ....core.parameters import one_line, shown
from ....errors import GraphFormatError, ParameterError
from ..tables.tablefiles import ComputedTable
from .ogb import is_ogb, ogb_translated
from .texts import collected, header_of, name_of, names_of, scanned


def translated(path: Path) -> dict[str, Any] | None:
    """Return what a folder or a .csv holds as the content of a schema. None: it is of no known kind."""
    before_polars_threads(shown(path))
    if path.is_dir():
        raw = path / "raw" if (path / "raw").is_dir() else path
        if is_ogb(raw):
            return _told(
                path, "a raw dataset of OGB", ogb_translated(raw, raw.parent if raw != path else path)
            )
        files = [each for each in sorted(path.glob("*.csv*")) if _is_export(each)]
        if len(files) != 1:
            return None
        path = files[0]
    return _told(path, "an export of neo4j by APOC", _apoc(path)) if _is_export(path) else None


def _told(path: Path, what: str, content: dict[str, Any]) -> dict[str, Any]:
    types, relations = content["vertices"], content["relations"]
    log.info(
        "%s: %s, with the types %s, and the relations %s",
        shown(path),
        what,
        ", ".join(types),
        ", ".join(relations),
    )
    return {"directedness": "directed", **content}


# DGL.


def is_dgl(content: Mapping[str, Any]) -> bool:
    """Whether a document is the ``meta.yaml`` of a CSVDataset of DGL."""
    return isinstance(content.get("node_data"), list) and isinstance(content.get("edge_data"), list)


def dgl_translated(content: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return a ``meta.yaml`` as the content of a schema."""
    before_polars_threads(folder)
    separator = content.get("separator", ",")
    nodes = [(f"node_data[{place}]", each) for place, each in enumerate(content["node_data"])]
    edges = [(f"edge_data[{place}]", each) for place, each in enumerate(content["edge_data"])]
    for place, entry in (*nodes, *edges):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("file_name"), str):
            raise ParameterError(f"{place}: `file_name` is missing")
    if content.get("graph_data"):
        log.info("left out %s: features of the graph as a whole", content["graph_data"].get("file_name"))
    vertices: dict[str, Any] = {}
    for place, entry in nodes:
        name, file = name_of(entry.get("ntype", "_V")), Path(folder, entry["file_name"])
        id = entry.get("node_id_field", "node_id")
        if name in vertices:
            raise ParameterError(f"{place}: the type {name!r} has two entries")
        vertices[name] = _dgl_table(file, separator, entry, (id,)) | {"id": id}
        vertices[name]["id"] = {"column": id, "as": "int"} if _are_whole(file, separator, id) else id
    triples = {tuple(entry.get("etype", ("_V", "_E", "_V"))): entry for _, entry in edges}
    if len(triples) < len(edges) or any(len(each) != 3 for each in triples):
        raise ParameterError("edge_data: expected another `etype` of three names in each entry")
    relations: dict[str, Any] = {}
    for each, name in names_of(triples).items():
        entry = triples[each]
        ends = entry.get("src_id_field", "src_id"), entry.get("dst_id_field", "dst_id")
        relations[name] = _dgl_table(Path(folder, entry["file_name"]), separator, entry, ends)
        for end, type_, column in zip(("source", "target"), (each[0], each[2]), ends, strict=True):
            whole = isinstance(vertices.get(name_of(type_), {}).get("id"), dict)
            relations[name][end] = {name_of(type_): {"column": column, "as": "int"} if whole else column}
    return _told(Path(folder), "a CSVDataset of DGL", {"vertices": vertices, "relations": relations})


def _are_whole(file: Path, separator: str, column: str) -> bool:
    """Whether all ids of a column are whole numbers, which DGL sorts by their values."""
    ids = pl.col(column)
    frame = scanned(file, separator).select(wrong=(ids.cast(pl.Int64, strict=False).is_null()).sum())
    return bool(collected(file, frame).item() == 0)


_MASKS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}


def _dgl_table(file: Path, separator: str, entry: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a table: its frame, features, label and split."""
    names = header_of(file, separator)
    for id in ids:
        if id not in names:
            raise GraphFormatError(f"{shown(file)}: there is no column {id!r}. It has {', '.join(names)}")
    frame = scanned(file, separator)
    graph = entry.get("graph_id_field", "graph_id")
    if graph in names and collected(file, frame.select(pl.col(graph).n_unique())).item() > 1:
        raise GraphFormatError(
            f"{shown(file)}: several graphs, by {graph!r}. Only datasets of one graph are read"
        )
    first = collected(file, frame.head(1))
    made, masks = [pl.col(id) for id in ids], [name for name in _MASKS if name in names]
    table: dict[str, Any] = {}
    features = []
    for name in names:
        if name in (*ids, graph, *masks) or not name:
            continue
        value = first[name][0] if len(first) else "0"
        column = _dgl_column(name, value)
        if column is None:
            log.info("left out %s of %s: text", name, shown(file))
            continue
        if name == "label":
            table["label"], column = name, _dgl_label(file, frame, column)
        else:
            features.append(name)
        made.append(column)
    if masks:
        inside: Any = pl.lit(None, pl.String)
        for name in reversed(masks):
            yes = pl.col(name).str.to_lowercase().is_in(["1", "1.0", "true"])
            inside = pl.when(yes).then(pl.lit(_MASKS[name])).otherwise(inside)
        made.append(inside.alias("split"))
        table["split"] = "split"
    if features:
        table["features"] = features
    return table | {"files": ComputedTable(frame.select(made), [file], first_line=2)}


def _dgl_column(name: str, value: str | None) -> pl.Expr | None:
    """Return a column as numbers, or as lists of numbers if its first value is one. None if it is neither."""
    text, value = pl.col(name).str.strip_chars(), (value or "0").strip()
    plain = value.strip("[]() ").removesuffix(",")
    if not all(_is_number(each) for each in plain.split(",")):
        return text if name == "label" and plain == value else None
    if "," not in plain and plain == value:
        return text
    inner = pl.element().str.strip_chars().cast(pl.Float64, strict=False)
    return text.str.strip_chars("[]() ").str.strip_suffix(",").str.split(",").list.eval(inner)


def _dgl_label(file: Path, frame: pl.LazyFrame, column: pl.Expr) -> pl.Expr:
    """Return labels as whole numbers if all are."""
    found = collected(file, frame.select(column))[:, 0]
    if found.dtype == pl.List:
        flat = found.explode().drop_nulls()
        return column.cast(pl.List(pl.Int64)) if (flat == flat.floor()).all() else column
    return column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# neo4j.

_ENDS = ("_start", "_end")
_OWN = ("_id", "_labels", *_ENDS, "_type")
"""Columns of an export that are no properties."""

_LINE = "__line"


def _is_export(file: Path) -> bool:
    """Whether a file is one of ``apoc.export.csv``, by its first line."""
    name = file.name.removesuffix(".gz")
    return file.is_file() and name.endswith(".csv") and set(_OWN) <= set(header_of(file))


def _apoc(file: Path) -> dict[str, Any]:
    """Return an export as the content of a schema. All labels of a vertex are its type."""
    own = pl.col("_labels").str.strip_chars(":").str.replace_all(":", "-")
    rows = scanned(file).with_row_index(_LINE).with_columns(_labels=own.replace("", None).fill_null("node"))
    vertices_ = rows.filter(pl.col("_id").is_not_null() & (pl.col("_id") != ""))
    records = rows.filter(pl.col("_type").is_not_null() & (pl.col("_type") != ""))
    of = collected(file, vertices_.select("_id", "_labels")).unique("_id", keep="first")
    for end in _ENDS:
        types = of.lazy().rename({"_id": end, "_labels": f"{end}_type"})
        records = records.join(types, on=end, how="left", maintain_order="left")
    known = collected(file, records.select("_start_type", "_type", "_end_type").unique())
    if (lost := known.filter(pl.any_horizontal(pl.all().is_null()))).height:
        raise GraphFormatError(
            f"{shown(file)}: relationships {', '.join(lost['_type'].unique().sort())} name a node that is not in the "
            "file. Export both"
        )
    whole = of["_id"].cast(pl.Int64, strict=False).null_count() == 0

    def key(column: str) -> Any:
        return {"column": column, "as": "int"} if whole else column

    content: dict[str, Any] = {"vertices": {}, "relations": {}}
    properties = [name for name in rows.collect_schema() if name not in (*_OWN, _LINE)]
    for type_ in of["_labels"].unique().sort():
        frame = vertices_.filter(pl.col("_labels") == type_)
        content["vertices"][name_of(type_)] = _properties(file, type_, frame, properties) | {"id": key("_id")}
    for (source, relation, target), name in names_of(sorted(known.iter_rows())).items():
        frame = records.filter(
            (pl.col("_type") == relation)
            & (pl.col("_start_type") == source)
            & (pl.col("_end_type") == target)
        )
        ends = {"source": {name_of(source): key("_start")}, "target": {name_of(target): key("_end")}}
        content["relations"][name] = _properties(file, relation, frame, properties) | ends
    return content


def _properties(file: Path, name: str, frame: pl.LazyFrame, properties: Sequence[str]) -> dict[str, Any]:
    """Return the table of a type or relation. Properties that all rows have as numbers are features."""
    given = [pl.col(each).replace("", None) for each in properties]
    counts = collected(
        file,
        frame.select(
            rows=pl.len(),
            **{
                f"given {each}": column.is_not_null().sum()
                for each, column in zip(properties, given, strict=True)
            },
            **{
                f"numbers {each}": column.cast(pl.Float64, strict=False).is_not_null().sum()
                for each, column in zip(properties, given, strict=True)
            },
        ),
    ).row(0, named=True)
    features = []
    for each in properties:
        have, numbers = counts[f"given {each}"], counts[f"numbers {each}"]
        if numbers == counts["rows"] and numbers:
            features.append(each)
        elif have:
            lacking = counts["rows"] - have
            why = "text" if numbers < have else f"{lacking:,} rows lack it"
            log.info("left out %s of %s: %s", one_line(each, 60), name, why)
    table = ComputedTable(frame, [file], rows=_LINE, first_line=2)
    return {"files": table} | ({"features": features} if features else {})
