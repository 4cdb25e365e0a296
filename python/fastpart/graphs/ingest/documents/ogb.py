"""The raw folders of OGB's datasets as schemas: text tables of any number of types, or arrays of one type.

The files are those that ``ogb/io/read_graph_raw.py`` reads, and that ``DatasetSaver`` writes. Splits are lists in text
tables, or in a ``split_dict.pt`` of torch. Datasets of links have their pairs in files of torch, which are no part of
the graph: ``edge_splits=`` of ``save`` takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import regular, shown
from ....core.parsing import Archive
from ....core.tensors import arrays_in
from ....errors import GraphFormatError, ParameterError
from ..tables.tablefiles import ComputedTable
from .texts import header_of, name_of, names_of, rows_of, scanned


def is_ogb(raw: Path) -> bool:
    """Whether a folder is the raw one of a dataset."""
    return bool(_csv(raw, "num-node-dict") or _csv(raw, "num-node-list")) or (raw / _ARRAYS).is_file()


def _csv(folder: Path, name: str) -> Path | None:
    files = (folder / f"{name}.csv.gz", folder / f"{name}.csv")
    return next((each for each in files if each.is_file()), None)


def _needed(folder: Path, name: str) -> Path:
    if (file := _csv(folder, name)) is None:
        raise FileNotFoundError(2, "no such file", str(folder / f"{name}.csv.gz"))
    return file


_ARRAYS, _LABELS, _SPLIT = "data.npz", "node-label.npz", "split_dict.pt"
"""The files of a dataset of arrays, and those of a split of any dataset."""


def ogb_translated(raw: Path, folder: Path) -> dict[str, Any]:
    """Return a raw folder as the content of a schema. ``folder`` is that of the dataset, with its splits."""
    if (raw / _ARRAYS).is_file():
        return _ogb_arrays(raw, folder / "split")
    if (counts := _csv(raw, "num-node-dict")) is None:
        n = _count(counts := _needed(raw, "num-node-list"), rows_of(counts, False)["column_1"])
        vertices = {"node": _ogb_vertices(raw, raw, folder / "split", "", n, counts)}
        return {"vertices": vertices, "relations": {"edge": _ogb_relation(raw, "node", "node")}}
    table = rows_of(counts, True)
    vertices = {}
    for name in table.columns:
        places = raw / "node-feat" / name, raw / "node-label" / name
        n = _count(counts, table[name])
        vertices[name_of(name)] = _ogb_vertices(*places, folder / "split", name, n, counts)
    triples: list[Any] = rows_of(_needed(raw, "triplet-type-list"), False).rows()
    relations = {
        name: _ogb_relation(raw / "relations" / "___".join(each), name_of(each[0]), name_of(each[2]))
        for each, name in names_of(triples).items()
    }
    return {"vertices": vertices, "relations": relations}


def _ogb_arrays(raw: Path, splits: Path) -> dict[str, Any]:
    """Return a dataset of one type whose arrays are in a ``.npz``. They are in memory, since they are packed."""
    arrays = {raw / _ARRAYS: Archive(raw / _ARRAYS)}
    if (raw / _LABELS).is_file():
        arrays[raw / _LABELS] = Archive(raw / _LABELS)
    counts, ends = (_array(arrays, name) for name in ("num_nodes_list", "edge_index"))
    if counts is None or ends is None or ends.ndim != 2 or len(ends) != 2:
        raise GraphFormatError(f"{shown(raw / _ARRAYS)}: expected num_nodes_list, and edge_index of two rows")
    n = _count(raw / _ARRAYS, pl.Series(counts))
    uses = {"features": "node_feat", "time": "node_year", "label": "node_label"}
    vertices = _columns(arrays, uses) | {"id": pl.Series(range(n), dtype=pl.Int64)}
    files = [*arrays]
    if (scheme := _schemes(splits, "")) is not None:
        vertices["split"] = _split(scheme, n)
        files.append(_split_file(scheme))
    records = _columns(arrays, {"features": "edge_feat", "weight": "edge_weight", "time": "edge_year"})
    records |= {"source": pl.Series(ends[0]), "target": pl.Series(ends[1])}
    used = {"num_nodes_list", "num_edges_list", "edge_index", *uses.values()}
    for name in sorted(set(arrays[raw / _ARRAYS]) - used - {"edge_feat", "edge_weight", "edge_year"}):
        log.info("left out %s of %s: a schema can say its use", name, shown(raw / _ARRAYS))
    key = {"node": {"column": "source", "as": "int"}}, {"node": {"column": "target", "as": "int"}}
    return {
        "vertices": {"node": _entry(vertices, files) | {"id": "id"}},
        "relations": {
            "edge": _entry(records, [raw / _ARRAYS]) | dict(zip(("source", "target"), key, strict=True))
        },
    }


def _array(arrays: Mapping[Path, Archive], name: str) -> npt.NDArray[Any] | None:
    return next((each[name] for each in arrays.values() if name in each), None)


def _columns(arrays: Mapping[Path, Archive], uses: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return the arrays that are there as columns, by the keys of a schema. NaN is a label that is missing."""
    found = {key: array for key, name in uses.items() if (array := _array(arrays, name)) is not None}
    columns = {}
    for key, array in found.items():
        flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 and key != "features" else array
        if key == "label" and flat.dtype.kind == "f":
            column = pl.Series(flat).fill_nan(None) if flat.ndim == 1 else pl.Series(flat)
            whole = flat.ndim == 1 and ((column == column.floor()) | column.is_null()).all()
            columns[key] = column.cast(pl.Int64) if whole else column
        else:
            columns[key] = pl.Series(flat)
    return columns


def _entry(columns: dict[str, pl.Series], files: Sequence[Path]) -> dict[str, Any]:
    """Return the keys of a table of columns in memory. Row i is row i of each."""
    rows = {key: len(each) for key, each in columns.items()}
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{count:,} rows of {key}" for key, count in rows.items())
        raise GraphFormatError(f"{shown(files[0])}: {told}")
    keys: dict[str, Any] = {
        key: [key] if key == "features" else key for key in columns if key not in ("id", "source", "target")
    }
    return keys | {"files": ComputedTable(pl.LazyFrame(columns), files, first_line=0)}


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
        columns[_split_file(schemes)] = pl.LazyFrame({"split": _split(schemes, n)})
        entry["split"] = "split"
    columns[counts] = pl.select(id=pl.int_range(n)).lazy()
    return entry | {"files": _beside(columns)}


def _ogb_relation(folder: Path, source: str, target: str) -> dict[str, Any]:
    edges = _needed(folder, "edge")
    columns = {edges: scanned(edges, names=False).rename({"column_1": "source", "column_2": "target"})}
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
    width = len(header_of(file))
    names = [f"column_{place}" for place in range(1, width + 1)]
    frame = pl.scan_csv(regular(file), has_header=False, schema=dict.fromkeys(names, dtype), glob=False)
    if name != "features":
        return frame.select(pl.col("column_1").alias(name))
    return frame.select(pl.concat_list(names).list.to_array(width).alias(name))


def _labels(file: Path) -> pl.DataFrame:
    """Return the labels of a type: whole numbers, numbers, or lists of them."""
    table = rows_of(file, False)
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
    for folder in found:
        if (folder / "train.pt").is_file():
            log.info("left out %s: pairs of vertices, which edge_splits= of save takes", shown(folder))
    files = {each / type_: _split_file(each / type_) for each in found}
    found = [each for each, file in files.items() if file.is_file()]
    if len(found) > 1:
        told = ", ".join(shown(each) for each in found)
        raise ParameterError(f"{shown(splits)}: there are several splits, {told}. Leave one of them there")
    return found[0] if found else None


def _split_file(scheme: Path) -> Path:
    """Return the file of a split that is read first. It need not be there."""
    packed = scheme / _SPLIT
    return packed if packed.is_file() else _csv(scheme, "train") or scheme / "train.csv.gz"


def _lists(scheme: Path) -> Iterator[tuple[Path, str, pl.Series]]:
    """Yield the vertices of train, val and test, with their file and the word for a place there."""
    packed = scheme / _SPLIT
    content = arrays_in(packed) if packed.is_file() else None
    for name in ("train", "valid", "test"):
        if content is None:
            file = _needed(scheme, name)
            yield file, "line", rows_of(file, False)["column_1"]
            continue
        ids = content.get(name)
        if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise GraphFormatError(f"{shown(packed)}: {name}: expected the numbers of vertices")
        yield packed, f"{name}, entry", pl.Series(ids)


def _split(scheme: Path, n: int) -> pl.Series:
    """Return the split of each vertex, from the lists of the vertices in it."""
    codes = np.zeros(n, np.uint8)
    for code, (file, place, given) in enumerate(_lists(scheme), 1):
        ids = given.cast(pl.Int64, strict=False)
        wrong = ids.is_null() | (ids < 0) | (ids >= n)
        if wrong.any():
            row = wrong.arg_max() or 0
            raise GraphFormatError(
                f"{shown(file)}: {place} {row + 1}: {given[row]!r} is no vertex from 0 to {n - 1:,}"
            )
        if (twice := codes[ids.to_numpy()]).any():
            row = int(np.flatnonzero(twice)[0])
            raise GraphFormatError(
                f"{shown(file)}: {place} {row + 1}: vertex {ids[row]:,} is also in another split"
            )
        codes[ids.to_numpy()] = code
    names = pl.Series(["", "train", "val", "test"]).set(pl.Series([True, False, False, False]), None)
    return names.gather(codes).cast(pl.Enum(["train", "val", "test"]))
