"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from . import __version__, _core, parameters
from .edges import Edges, open_edges
from .errors import FastpartError, GraphFormatError, ParameterError
from .metrics import Evaluation, evaluate
from .parameters import Progress, RunOptions, StrPath, run_options, shown
from .partition import EdgePartition, Partition, VertexPartition

SCHEMA = 1
MANIFEST = "manifest.json"
FORMATS = {".npy": "npy", ".txt": "txt", ".parquet": "parquet", "": "directory"}
_CLASSES: dict[str, type[Partition]] = {"vertex": VertexPartition, "edge": EdgePartition}


def save(
    part: Partition,
    out: StrPath,
    *,
    edges: Any = None,
    labels: Any = None,
    splits: Any = None,
    split: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> None:
    """Write a partition, atomically: the file or directory appears whole, or the old one stays.

    Parameters
    ----------
    part : VertexPartition or EdgePartition
        What to write.
    out : path
        By suffix: ``.npy`` (an array), ``.txt`` (line v holds the part of vertex v, or of record v), ``.parquet`` (a
        column ``part``; number of parts and identity of the graph in the metadata), or no suffix or a trailing ``/``
        for a partition directory with ``manifest.json``, ``assignment.npy`` and ``metrics.parquet``. The parent must
        exist. A file is replaced; a directory only if it is empty or holds our ``manifest.json``.
    edges : path, array or Edges, optional
        The graph: it is checked that the partition is of it, and a directory gets its measures.
    labels, splits, split : optional
        For the measures, as in :func:`fastpart.evaluate`.
    threads, memory_limit, progress
        As in :func:`fastpart.spring`.

    Raises
    ------
    ParameterError
        An unknown suffix, or an output that is the input.
    GraphFormatError
        The partition belongs to another graph.
    OSError
        With path and errno; the old output is intact.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, pathlib
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    >>> part = fp.spring(graph, k=2)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> part.save(folder / "part.npy")
    >>> part.save(folder / "parts", edges=graph)
    >>> fp.load(folder / "parts", edges=graph)
    <VertexPartition: spring, k=2, 6 vertices, loads 3..3>
    """
    target, form = output(out)
    options = run_options(threads, memory_limit, progress)
    opened = None
    if edges is not None:
        opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    refuse_unwritable(target, form, opened)
    evaluation = None
    if opened is not None and form == "directory":
        evaluation = evaluate(
            opened, part, labels, splits, split=split,
            threads=threads, memory_limit=memory_limit, progress=progress,
        )  # fmt: skip
    elif opened is not None:
        part.refuse_other_graph(opened.num_vertices, opened.num_edges, opened.identify(options)[1])
    write(part, target, form, options, evaluation, opened)


def write(
    part: Partition,
    target: Path,
    form: str,
    options: RunOptions,
    evaluation: Evaluation | None = None,
    edges: Edges | None = None,
) -> None:
    """Write a partition whose measures are known to a target that :func:`output` accepted."""
    match form:
        case "npy":
            _core.write_npy(target, part.assignment, options)
        case "txt":
            _core.write_lines(target, part.assignment, options)
        case "parquet":
            _write_parquet(target, part)
        case _:
            _write_directory(target, part, options, evaluation, edges)


def output(out: object) -> tuple[Path, str]:
    """Return the target of ``-o`` or ``save``, and its format: npy, txt, parquet or directory."""
    target = parameters.path("out", out)
    as_directory = os.fsdecode(out).endswith("/")  # type: ignore[arg-type]
    suffix = "" if as_directory else target.suffix
    if suffix not in FORMATS:
        raise ParameterError(
            f"out: unknown suffix {suffix!r} of {shown(target)}; use .npy, .txt, .parquet, "
            "or no suffix (or a trailing /) for a partition directory"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the folder of the output does not exist; make it first", str(target.parent)
        )
    return target, FORMATS[suffix]


def refuse_unwritable(target: Path, form: str, edges: Edges | None) -> None:
    """Refuse, before any work, an output that is the input or that cannot be written."""
    if edges is not None and edges.path is not None and target.exists() and target.samefile(edges.path):
        raise ParameterError(f"out: {shown(target)} is the input; choose another name")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the folder of the output is not writable", str(target.parent))
    if form != "directory":
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    elif target.exists() and not (
        target.is_dir() and ((target / MANIFEST).is_file() or not any(target.iterdir()))
    ):
        raise FileExistsError(
            errno.EEXIST,
            f"exists, and is no partition directory (no {MANIFEST} in it); choose another name",
            str(target),
        )


def _identity(part: Partition) -> dict[str, Any]:
    identity = {
        "kind": part.kind,
        "algorithm": part.algorithm,
        "parameters": part.parameters,
        "k": part.k,
        "cap": part.cap,
        "n": part.n,
        "m": part.m,
        "loops": part.loops,
        "checksum": part.checksum,
    }
    if part.weight_loads is not None:
        identity |= {"weight_cap": part.weight_cap, "weight_loads": part.weight_loads.tolist()}
    return identity


def _write_parquet(target: Path, part: Partition) -> None:
    frame = pl.DataFrame({"part": part.assignment})
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"fastpart": json.dumps({"schema": SCHEMA, **_identity(part)})})
    _core.write_file(target, buffer.getvalue())


def _write_directory(
    target: Path, part: Partition, options: RunOptions, evaluation: Evaluation | None, edges: Edges | None
) -> None:
    manifest: dict[str, Any] = {"schema": SCHEMA, "fastpart": __version__, **_identity(part)}
    if edges is not None:
        loops, checksum = edges.identify(options)
        manifest |= {"n": edges.num_vertices, "m": edges.num_edges, "loops": loops, "checksum": checksum}
        if edges.path is not None:
            name = os.fsencode(edges.path).decode(errors="replace")
            manifest["input"] = {"path": name, "bytes": edges.path.stat().st_size}
    directory = _core.AtomicDir(target, MANIFEST)
    try:
        inside = Path(directory.path)
        _core.write_npy(inside / "assignment.npy", part.assignment, options)
        if evaluation is not None:
            buffer = io.BytesIO()
            evaluation.parts.write_parquet(buffer)
            _core.write_file(inside / "metrics.parquet", buffer.getvalue())
            manifest["metrics"] = evaluation.totals.row(0, named=True)
        text = json.dumps(manifest, indent=1, default=_plain)
        _core.write_file(inside / MANIFEST, (text + "\n").encode())
        directory.commit()
    finally:
        directory.discard()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in a manifest")


def load(
    source: StrPath,
    edges: Any = None,
    *,
    k: int | None = None,
    kind: str | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Partition:
    """Read a partition that :meth:`Partition.save` wrote, or any ``.npy``, ``.txt`` or ``.parquet`` of parts.

    Parameters
    ----------
    source : path
        A file, by suffix, or a partition directory.
    edges : path, array or Edges, optional
        The graph: a partition of another one is refused.
    k : int, optional
        Number of parts, for ``.npy`` and ``.txt``, which do not store it. Default: the largest part + 1.
    kind : {"vertex", "edge"}, optional
        For ``.npy`` and ``.txt``. Default "vertex"; "edge" if the array holds uint8 or int16, as edge partitions do.
    threads, memory_limit, progress
        As in :func:`fastpart.spring`.

    Returns
    -------
    VertexPartition or EdgePartition

    Raises
    ------
    GraphFormatError
        The content is not a partition, contradicts itself, or belongs to another graph.
    FileNotFoundError
        With the path; if only ``.NAME.old-*`` is left of an interrupted replacement, the text says how to restore it.

    Notes
    -----
    Nothing in a file is executed or believed unchecked. One limit: Polars reads Parquet, and some damaged pages make it
    abort the process; for files that others may have tampered with, use the other formats.

    Examples
    --------
    See :meth:`Partition.save`.
    """
    file = parameters.path("source", source)
    if kind is not None:
        parameters.choice("kind", kind, _CLASSES)
    if k is not None:
        k = parameters.parts(k)
    if file.is_dir():
        part = _read_directory(file)
    elif not parameters.regular(file).exists():
        _refuse_missing(file)
    elif file.suffix == ".parquet":
        part = _read_parquet(file, k, kind)
    elif file.suffix == ".npy":
        part = _wrap(file, _read_npy(file), k, kind)
    elif file.suffix == ".txt":
        part = _wrap(file, _read_lines(file), k, kind)
    else:
        raise ParameterError(
            f"source: {shown(file)} is no partition directory, and not .npy, .txt or .parquet"
        )
    if k is not None and part.k != k:
        raise ParameterError(f"k: {k}, but {shown(file)} holds {part.k} parts")
    if kind is not None and part.kind != kind:
        raise ParameterError(f"kind: {kind!r}, but {shown(file)} holds a partition of kind {part.kind!r}")
    if edges is not None:
        options = run_options(threads, memory_limit, progress)
        opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
        checksum = opened.identify(options)[1] if part.checksum is not None else None
        part.refuse_other_graph(opened.num_vertices, opened.num_edges, checksum)
    return part


def _refuse_missing(file: Path) -> NoReturn:
    old = sorted(file.parent.glob(f".{file.name}.old-*")) if file.parent.is_dir() else []
    if old:
        raise FileNotFoundError(
            errno.ENOENT,
            f"an interrupted replacement left only {old[-1].name}; rename it to {file.name} to restore it",
            str(file),
        )
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))


def _read_npy(file: Path) -> npt.NDArray[Any]:
    """Read an array, without pickles, and without believing a header that claims more than the file holds."""
    try:
        return np.array(np.lib.format.open_memmap(file, mode="r"))
    except OSError:
        raise
    except Exception as error:  # numpy's parser raises whatever the bytes provoke
        raise GraphFormatError(f"{shown(file)}: not a .npy array of parts ({_first_line(error)})") from None


def _read_lines(file: Path) -> npt.NDArray[Any]:
    if file.stat().st_size == 0:
        return np.zeros(0, dtype=np.int32)
    try:
        with file.open("rb") as opened:  # Polars knows no paths that are not UTF-8
            frame = pl.read_csv(opened, has_header=False, schema={"part": pl.Int32})
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # what damaged text raises
        raise GraphFormatError(f"{shown(file)}: not one part per line ({_first_line(error)})") from None
    if frame["part"].null_count():
        line = frame["part"].is_null().arg_max() or 0
        raise GraphFormatError(f"{shown(file)}: line {line + 1} holds no part")
    return frame["part"].to_numpy()


def _read_parquet(file: Path, k: int | None, kind: str | None) -> Partition:
    try:
        with file.open("rb") as opened:  # Polars knows no paths that are not UTF-8
            metadata = pl.read_parquet_metadata(opened).get("fastpart")
            opened.seek(0)
            frame = pl.read_parquet(opened, columns=["part"])
        array = frame["part"].to_numpy()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # what damaged pages raise
        raise GraphFormatError(
            f"{shown(file)}: no Parquet file with a column 'part' ({_first_line(error)})"
        ) from None
    if metadata is None:
        return _wrap(file, array, k, kind)
    return _restore(file, array, _json(file, metadata))


def _read_directory(folder: Path) -> Partition:
    manifest_file = folder / MANIFEST
    if not manifest_file.is_file():
        raise GraphFormatError(f"{shown(folder)}: no {MANIFEST} in it; not a partition directory")
    assignment = _read_npy(parameters.regular(folder / "assignment.npy"))
    return _restore(folder, assignment, _json(manifest_file, manifest_file.read_bytes()))


def _json(file: Path, text: str | bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphFormatError(f"{shown(file)}: not JSON ({_first_line(error)})") from None
    if not isinstance(content, dict):
        raise GraphFormatError(f"{shown(file)}: expected a JSON object")
    return content


def _restore(origin: Path, array: npt.NDArray[Any], stored: dict[str, Any]) -> Partition:
    """Make a partition of an array and what a manifest says of it, believing neither."""
    if stored.get("schema") != SCHEMA:
        raise GraphFormatError(
            f"{shown(origin)}: schema {stored.get('schema')!r}; this fastpart ({__version__}) reads schema {SCHEMA}"
        )
    try:
        cls = _CLASSES[parameters.choice("kind", stored.get("kind"), _CLASSES)]
        part = cls(array, parameters.parts(stored.get("k")))
        for name in ("n", "m", "loops", "cap", "weight_cap"):
            if (value := stored.get(name)) is not None:
                setattr(part, name, parameters.integer(name, value, 0, 2**63))
        for name, kind in (("algorithm", str), ("parameters", dict), ("checksum", str)):
            if (value := stored.get(name)) is not None:
                if not isinstance(value, kind):
                    raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")
                setattr(part, name, value)
        if (loads := stored.get("weight_loads")) is not None:
            part.weight_loads = _weight_loads(loads, part.k)
        items = part.n if cls is VertexPartition else part.m
        if items is not None and items != len(part):
            raise ParameterError(f"assignment: {len(part)} {part.items}, but the manifest says {items}")
    except (FastpartError, TypeError) as error:
        raise GraphFormatError(f"{shown(origin)}: {error}") from None
    return part


def _weight_loads(loads: Any, k: int) -> npt.NDArray[np.int64]:
    if not isinstance(loads, list) or len(loads) != k:
        raise ParameterError(f"weight_loads: expected a list of {k} integers, one per part")
    array = np.array(
        [parameters.integer("weight_loads", load, 0, 2**63 - 1) for load in loads], dtype=np.int64
    )
    array.flags.writeable = False
    return array


def _wrap(file: Path, array: npt.NDArray[Any], k: int | None, kind: str | None) -> Partition:
    if kind is None:
        kind = "edge" if array.dtype in (np.uint8, np.int16) else "vertex"
    try:
        if k is None:
            k = int(array.max()) + 1 if array.size and array.dtype.kind in "iu" else 1
        return _CLASSES[kind](array, k)
    except (FastpartError, TypeError) as error:
        raise GraphFormatError(f"{shown(file)}: {error}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
