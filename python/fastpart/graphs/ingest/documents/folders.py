"""Datasets of other libraries as schemas: the raw folders of OGB, CSVDataset of DGL, and the single file of neo4j.

The formats are those that their readers and documentation describe: ``ogb/io/read_graph_raw.py`` of OGB, "Loading data
from CSV files" of DGL's user guide (version 1.0.0), and ``apoc.export.csv.all`` of neo4j's APOC library.

Their tables lack columns of ids, or have rows of several types in one file. So a schema gets frames that are computed
from the files while these are read. A label, a split and a type of each vertex are kept in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from ....core.frames import before_polars_threads, pl
from ....core.notes import log
from ....core.parameters import one_line, regular, shown
from ....errors import GraphFormatError, ParameterError
from ..schema import Csv
from ..tables.formats import Source, header, scan
from ..tables.tablefiles import ComputedTable, reading

Triple = tuple[str, str, str]
"""Type of the sources, relation, type of the targets."""


def translated(path: Path) -> dict[str, Any] | None:
    """Return what a folder or a .csv holds as the content of a schema. None: it is of no known kind."""
    before_polars_threads(shown(path))
    if path.is_dir():
        raw = path / "raw" if (path / "raw").is_dir() else path
        if _csv(raw, "num-node-dict") or _csv(raw, "num-node-list"):
            return _told(path, "a raw dataset of OGB", _ogb(raw, raw.parent if raw != path else path))
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


def name_of(name: object) -> str:
    """Return a name of another system as one that a folder may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", str(name)).lstrip(".-")[:64]


def names_of(triples: Iterable[Triple]) -> dict[Triple, str]:
    """Return a name for each triple: that of the relation, and of its types if several triples have the relation."""
    triples = list(triples)
    times = Counter(relation for _, relation, _ in triples)
    return {each: name_of(each[1] if times[each[1]] == 1 else "-".join(each)) for each in triples}


def _scan(file: Path, separator: str = ",", names: bool = True) -> pl.LazyFrame:
    with _reading(file):
        return scan(str(regular(file)), Csv(header=names), separator)


def _collected(file: Path, frame: pl.LazyFrame) -> pl.DataFrame:
    with _reading(file):
        return frame.collect(engine="streaming")


def _header(file: Path, separator: str = ",") -> list[str]:
    with _reading(file):
        return header(str(regular(file)), Csv(), separator)


def _reading(file: Path) -> AbstractContextManager[None]:
    return reading(str(file), Source("a text table in UTF-8", pl.LazyFrame))


# OGB.


def _csv(folder: Path, name: str) -> Path | None:
    files = (folder / f"{name}.csv.gz", folder / f"{name}.csv")
    return next((each for each in files if each.is_file()), None)


def _needed(folder: Path, name: str) -> Path:
    if (file := _csv(folder, name)) is None:
        raise FileNotFoundError(2, "no such file", str(folder / f"{name}.csv.gz"))
    return file


def _ogb(raw: Path, folder: Path) -> dict[str, Any]:
    if (counts := _csv(raw, "num-node-dict")) is None:
        n = _count(counts := _needed(raw, "num-node-list"), _rows(counts, False)["column_1"])
        vertices = {"node": _ogb_vertices(raw, raw, folder / "split", "", n, counts)}
        return {"vertices": vertices, "relations": {"edge": _ogb_relation(raw, "node", "node")}}
    table = _rows(counts, True)
    vertices = {}
    for name in table.columns:
        places = raw / "node-feat" / name, raw / "node-label" / name
        n = _count(counts, table[name])
        vertices[name_of(name)] = _ogb_vertices(*places, folder / "split", name, n, counts)
    triples: list[Any] = _rows(_needed(raw, "triplet-type-list"), False).rows()
    relations = {
        name: _ogb_relation(raw / "relations" / "___".join(each), name_of(each[0]), name_of(each[2]))
        for each, name in names_of(triples).items()
    }
    return {"vertices": vertices, "relations": relations}


def _rows(file: Path, names: bool) -> pl.DataFrame:
    return _collected(file, _scan(file, names=names))


def _count(file: Path, counts: pl.Series) -> int:
    if len(counts) != 1:
        raise GraphFormatError(f"{shown(file)}: {len(counts):,} graphs. Only datasets of one graph are read")
    try:
        return int(counts[0])
    except (TypeError, ValueError):
        raise GraphFormatError(f"{shown(file)}: {counts[0]!r} is no number of vertices") from None


def _ogb_vertices(
    features: Path, labels: Path, splits: Path, type_: str, n: int, counts: Path
) -> dict[str, Any]:
    """Return the entry of a type. Row i of its files describes vertex i."""
    columns: dict[Path, pl.LazyFrame] = {}
    entry: dict[str, Any] = {"id": "id"}
    for name, key in (("node-feat", "features"), ("node_year", "time")):
        if (file := _csv(features, name)) is not None:
            columns[file] = _numbers(file, key, pl.Float64 if key == "features" else pl.Int64)
            entry[key] = [key] if key == "features" else key
    if (file := _csv(labels, "node-label")) is not None:
        columns[file] = _labels(file).lazy()
        entry["label"] = "label"
    _left_out(features, "node_*.csv*", ("node_year",))
    if (schemes := _schemes(splits, type_)) is not None:
        columns[_needed(schemes, "train")] = pl.LazyFrame({"split": _split(schemes, n)})
        entry["split"] = "split"
    columns[counts] = pl.select(id=pl.int_range(n)).lazy()
    return entry | {"files": _beside(columns)}


def _ogb_relation(folder: Path, source: str, target: str) -> dict[str, Any]:
    edges = _needed(folder, "edge")
    columns = {edges: _scan(edges, names=False).rename({"column_1": "source", "column_2": "target"})}
    entry: dict[str, Any] = {}
    for end, type_ in (("source", source), ("target", target)):
        entry[end] = {type_: {"column": end, "as": "int"}}
    uses = (
        ("edge-feat", "features", pl.Float64),
        ("edge_weight", "weight", pl.Float64),
        ("edge_year", "time", pl.Int64),
    )
    for name, key, dtype in uses:
        if (file := _csv(folder, name)) is not None:
            columns[file] = _numbers(file, key, dtype)
            entry[key] = [key] if key == "features" else key
    _left_out(folder, "edge_*.csv*", ("edge_weight", "edge_year"))
    return entry | {"files": _beside(columns)}


def _beside(columns: Mapping[Path, pl.LazyFrame]) -> ComputedTable:
    """Return columns of several files as a table. Row i is row i of each."""

    def fault() -> str | None:
        rows = {file: frame.select(pl.len()).collect().item() for file, frame in columns.items()}
        told = ", ".join(f"{count:,} rows by {file.name}" for file, count in rows.items())
        return told if len(set(rows.values())) > 1 else None

    frame = pl.concat(columns.values(), how="horizontal")
    return ComputedTable(frame, [*columns], first_line=1, fault=fault)


def _numbers(file: Path, name: str, dtype: Any) -> pl.LazyFrame:
    """Return a file of numbers as one column, of lists if it has several."""
    width = len(_header(file))
    names = [f"column_{place}" for place in range(1, width + 1)]
    frame = pl.scan_csv(regular(file), has_header=False, schema=dict.fromkeys(names, dtype), glob=False)
    if name != "features":
        return frame.select(pl.col("column_1").alias(name))
    return frame.select(pl.concat_list(names).list.to_array(width).alias(name))


def _labels(file: Path) -> pl.DataFrame:
    """Return the labels of a type: whole numbers, numbers, or lists of them."""
    table = _rows(file, False)
    whole = [column.cast(pl.Int64, strict=False) for column in table]
    if any(one.null_count() > other.null_count() for one, other in zip(whole, table, strict=True)):
        whole = [column.cast(pl.Float64, strict=False).fill_nan(None) for column in table]
        if all(((each == each.floor()) | each.is_null()).all() for each in whole):
            whole = [each.cast(pl.Int64) for each in whole]
    return pl.DataFrame(whole).select(label=pl.first() if len(whole) == 1 else pl.concat_list(pl.all()))


def _left_out(folder: Path, glob: str, used: Sequence[str]) -> None:
    for file in sorted(folder.glob(glob)):
        if file.name.partition(".")[0] not in used:
            log.info("left out %s: a schema can say its use", shown(file))


def _schemes(splits: Path, type_: str) -> Path | None:
    """Return the folder with the lists of a split."""
    found = [each for each in sorted(splits.iterdir()) if each.is_dir()] if splits.is_dir() else []
    found = [each / type_ for each in found if _csv(each / type_, "train") is not None]
    if len(found) > 1:
        told = ", ".join(shown(each) for each in found)
        raise ParameterError(f"{shown(splits)}: there are several splits, {told}. Leave one of them there")
    return found[0] if found else None


def _split(folder: Path, n: int) -> pl.Series:
    """Return the split of each vertex, from the lists of the vertices in it."""
    codes = np.zeros(n, np.uint8)
    for code, name in enumerate(("train", "valid", "test"), 1):
        file = _needed(folder, name)
        text = _rows(file, False)["column_1"]
        ids = text.cast(pl.Int64, strict=False)
        wrong = ids.is_null() | (ids < 0) | (ids >= n)
        if wrong.any():
            row = wrong.arg_max() or 0
            raise GraphFormatError(
                f"{shown(file)}: line {row + 1}: {text[row]!r} is no vertex from 0 to {n - 1:,}"
            )
        if (twice := codes[ids.to_numpy()]).any():
            row = int(np.flatnonzero(twice)[0])
            raise GraphFormatError(
                f"{shown(file)}: line {row + 1}: vertex {ids[row]:,} is also in another split"
            )
        codes[ids.to_numpy()] = code
    names = pl.Series(["", "train", "val", "test"]).set(pl.Series([True, False, False, False]), None)
    return names.gather(codes).cast(pl.Enum(["train", "val", "test"]))


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
    frame = _scan(file, separator).select(wrong=(ids.cast(pl.Int64, strict=False).is_null()).sum())
    return bool(_collected(file, frame).item() == 0)


_MASKS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}


def _dgl_table(file: Path, separator: str, entry: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a table: its frame, features, label and split."""
    names = _header(file, separator)
    for id in ids:
        if id not in names:
            raise GraphFormatError(f"{shown(file)}: there is no column {id!r}. It has {', '.join(names)}")
    frame = _scan(file, separator)
    graph = entry.get("graph_id_field", "graph_id")
    if graph in names and _collected(file, frame.select(pl.col(graph).n_unique())).item() > 1:
        raise GraphFormatError(
            f"{shown(file)}: several graphs, by {graph!r}. Only datasets of one graph are read"
        )
    first = _collected(file, frame.head(1))
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
    found = _collected(file, frame.select(column))[:, 0]
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
    return file.is_file() and name.endswith(".csv") and set(_OWN) <= set(_header(file))


def _apoc(file: Path) -> dict[str, Any]:
    """Return an export as the content of a schema. All labels of a vertex are its type."""
    own = pl.col("_labels").str.strip_chars(":").str.replace_all(":", "-")
    rows = _scan(file).with_row_index(_LINE).with_columns(_labels=own.replace("", None).fill_null("node"))
    vertices_ = rows.filter(pl.col("_id").is_not_null() & (pl.col("_id") != ""))
    records = rows.filter(pl.col("_type").is_not_null() & (pl.col("_type") != ""))
    of = _collected(file, vertices_.select("_id", "_labels")).unique("_id", keep="first")
    for end in _ENDS:
        types = of.lazy().rename({"_id": end, "_labels": f"{end}_type"})
        records = records.join(types, on=end, how="left", maintain_order="left")
    known = _collected(file, records.select("_start_type", "_type", "_end_type").unique())
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
    counts = _collected(
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
