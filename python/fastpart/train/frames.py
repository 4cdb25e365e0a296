"""Training from two data frames: one of edges, and one of vertices with features and labels."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from ..core import parameters
from ..core.frames import pl
from ..core.notes import log
from ..core.options import taking
from ..core.parameters import Directedness, one_line
from ..core.vertex_tables import Table, table_of
from ..errors import GraphFormatError, ParameterError, arg
from ..graphs.graph import Graph
from ..graphs.graph_directory import MOST_EMBEDDED, GraphDirectory
from ..graphs.ingest import ingest
from ..graphs.ingest.guess.guesses import Look, feature_of, look_at_frame
from ..graphs.tables import asked, ends_of, kinds_of
from ..partitions.partitioners.choosing import partition
from ..runtime.launch import HeldFolder
from .method_options import SampledOptions
from .options import DATA, GRAPH, PARTS
from .registry import of

if TYPE_CHECKING:
    from .runs.trained import TrainedModel

VERTICES, EDGES = "vertex", "edge"
"""The type and the relation of the graph."""

RANDOM = {"train": 0.6, "val": 0.2, "test": 0.2}
"""Shares of the labelled vertices, where no column says the split."""

_VERTICES_PER_PART = 50_000
_BATCHES = 10
"""Steps of an epoch, where batches are neither very small nor very large."""

_WITHOUT = {
    **dict.fromkeys(("target", "relation_fanouts"), "the graph has one type"),
    "temporal": "the graph has no times. Use fastpart.ingest, which reads them",
    "plan": "a plan is of a partition directory",
    "resume": "trained.resume(epochs=...) goes on with a training",
    "labels": "label= names a column of the vertices",
    "splits": "split= names a column of the vertices, or shares",
}


@taking(SampledOptions, defaults={"patience": 20, "batch_size": None}, without=_WITHOUT)
def nodes(
    edges: Any,
    vertices: Any,
    *,
    label: str,
    id: str | None = None,
    features: Sequence[str | Mapping[str, Any]] | None = None,
    split: str | Mapping[str, float] | None = None,
    columns: Sequence[int | str] | None = None,
    directedness: Directedness = "undirected",
    missing: Literal["error", "drop", "add"] = "error",
    k: int | None = None,
    options: SampledOptions,
) -> TrainedModel:
    """Train to tell a column of vertices, from a frame of edges and a frame of vertices.

    The frames become a graph (:func:`fastpart.ingest`), its partition is saved to a temporary folder with what belongs
    to the vertices, and :func:`fastpart.train.sampled` trains over that. ``to_frame()`` of the result has a row for
    each vertex: its id, the predicted class with its probability, and its part. The frame also has the vertices
    without a label.

    Parameters
    ----------
    edges : frame or path
        One row per edge, with the ids of both ends: a frame of Polars, pandas or Arrow, or the file of a table.
    vertices : frame or path
        One row per vertex, with its id.
    label : str
        The column to predict: text or whole numbers are classes, other numbers the targets of a regression. Rows
        without a value are not trained on.
    id : str, optional
        The column of ``vertices`` with the ids. Default: the index, if a frame of pandas has one.
    features : sequence of str or mapping, optional
        Columns of ``vertices``. Numbers and dates are standardised, and missing numbers are taken for the mean. Text
        with up to 32 values has a column of 0 and 1 for each value. Text with more values, each in two rows or more on
        average, has learned rows. Other text is refused. An entry of a schema says another encoding, as
        ``{"column": "city", "as": "embedding"}``. Default: all columns that fit.
    split : str or mapping, optional
        The column that holds ``train``, ``val`` or ``test``, or shares of the labelled vertices by chance, which
        depends on ``seed``. Default: ``{"train": 0.6, "val": 0.2, "test": 0.2}``.
    columns : pair of str or int, optional
        The columns of ``edges`` with both ends, as for :func:`fastpart.open_graph`.
    directedness : {"undirected", "symmetric", "directed"}
        Meaning of a row of ``edges``, as for :func:`fastpart.open_graph`.
    missing : {"error", "drop", "add"}
        An edge with an id that ``vertices`` lacks is refused or dropped, or its id is added as a vertex without
        features and label. A vertex without edges stays.
    k : int, optional
        Number of parts. Default: ``workers``, else one for each 50,000 vertices, and at most one per CPU.
    batch_size
        Default: a tenth of the training vertices, from 32 to 1,000.

    Returns
    -------
    TrainedModel
        With :meth:`~TrainedModel.to_frame`, :meth:`~fastpart.core.frames.Tabular.to_pandas` and
        :attr:`~TrainedModel.folder`. The folder has the graph, the parts and the training. It is removed with the
        result, unless :meth:`~TrainedModel.save` keeps it.

    Raises
    ------
    ParameterError
        A column that does not exist or is no feature, or an invalid parameter.
    GraphFormatError
        An id is missing or there twice, or an edge has an unknown id.

    Examples
    --------
    >>> import fastpart as fp, polars as pl
    >>> names = ["ann", "bob", "cat", "dan", "eve", "fay", "gil", "hal"]
    >>> edges = pl.DataFrame({"from": names, "to": names[1:4] + names[:1] + names[5:] + names[4:5]})
    >>> ages = [20, 22, 21, 20, 60, 61, 64, 66]
    >>> users = pl.DataFrame({"user": names, "age": ages, "club": [*"xxx", None, *"yyyy"]})
    >>> trained = fp.train.nodes(edges, users, id="user", label="club", split={"train": 1.0}, epochs=20, workers=1)
    >>> trained.to_frame().select("id", "label", "part").row(3)
    ('dan', 'x', 0)
    """
    if k is not None:
        k = parameters.parts(k)
    rows = _frame("vertices", vertices, id)
    columns_of_vertices = {
        "files": rows.frame,
        "id": _index_of(rows) if id is None else _existing("id", id, rows),
        "label": _existing("label", label, rows),
        "split": _split(split, rows, options.seed),
    }
    taken = {each for each in columns_of_vertices.values() if isinstance(each, str)}
    look = look_at_frame("vertices", rows.frame)
    schema = {
        "vertices": {VERTICES: {**columns_of_vertices, "features": _features(features, look, taken)}},
        "relations": {EDGES: {**_ends(edges, columns), "missing": missing}},
        "directedness": directedness,
    }
    run = vars(options.run)
    with HeldFolder(options.tmp_dir) as held:
        with _in_words_of_frames():
            graph = ingest(schema, held.path / GRAPH, **run)
        parts = _number_of_parts(graph, k, options.workers)
        partition(graph, parts, seed=options.seed, **run).save(held.path / PARTS, **run)
        return of("sampled").train(held, _fitted(options, graph))


_WORDS = {
    r"^vertices\.vertex\.(\w+)(\[\d+\])?": r"\1",
    r"\bvertices\.vertex \(data frame\)|^vertex(?=:)": "vertices",
    r"\brelations\.edge \(data frame\)|^edge(?=:)": "edges",
    r"Say `missing: drop` or `missing: add` for 'edge' in the schema": "Pass "
    f"{arg('missing', 'drop')} or {arg('missing', 'add')}",
    r"Say in the schema what stands for it: ": "Pass an entry of features that says what stands for it: ",
    r", or say `\w+: \w+`( for '\w+')? in the schema": "",
}
"""Words of a schema, which the user has not written, and what they are called here."""


@contextmanager
def _in_words_of_frames() -> Iterator[None]:
    """Name frames and parameters where ``ingest`` names entries of its schema."""
    try:
        yield
    except (GraphFormatError, ParameterError) as error:
        text = str(error)
        for words, others in _WORDS.items():
            text = re.sub(words, others, text)
        raise type(error)(text) from None


def _frame(name: str, given: Any, id: str | None = None) -> Table:
    """Return a frame of the user as one of Polars, with the index of pandas as a column if that is the id."""
    table = table_of(name, given)
    if table is None:
        raise TypeError(
            f"{name}: expected a frame of Polars, pandas or Arrow, or the file of a table, got {type(given).__name__}"
        )
    frame, index = table.frame, table.index
    if index is not None and index.name not in frame.columns and id in (None, index.name):
        frame = frame.with_columns(index)
    whole = [
        each.name
        for each in frame.get_columns()
        if each.dtype.is_float() and each.null_count() and _is_whole(each)
    ]
    # pandas writes whole numbers with gaps so, and has text of few values as categories
    frame = frame.with_columns(pl.col(whole).cast(pl.Int64), pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return replace(table, frame=frame)


def _is_whole(column: pl.Series) -> bool:
    known = column.drop_nulls()
    return bool((known.is_finite() & (known.floor() == known)).all())


def _index_of(table: Table) -> str:
    if table.index is None:
        raise ParameterError(
            f"id: which column of the vertices holds the ids? They are {_listed(table)}. Name it: {arg('id', 'user')}"
        )
    return table.index.name


def _existing(name: str, column: Any, table: Table) -> str:
    """Return a column of the vertices that the user names. Refuse one that does not exist."""
    names = table.frame.columns
    if not isinstance(column, str):
        raise TypeError(f"{name}: expected the name of a column, got {type(column).__name__}")
    if column not in names:
        close = parameters.meant(column, names) or f". They have {_listed(table)}"
        raise ParameterError(f"{name}: the vertices have no column {column!r}{close}")
    return column


def _listed(table: Table) -> str:
    return ", ".join(map(one_line, table.frame.columns)) or "no columns"


def _split(given: Any, table: Table, seed: int) -> Any:
    """Return the entry of a schema for the split."""
    if given is not None and not isinstance(given, Mapping):
        return _existing("split", given, table)
    shares = RANDOM if given is None else dict(given)
    if other := [name for name in shares if name not in RANDOM]:
        raise ParameterError(f"split: {other[0]!r} is no split. Pass the shares of train, val and test")
    return {"by": "random", "train": 0.0, **shares, "seed": seed % 2**63}


def _ends(edges: Any, columns: Any) -> dict[str, Any]:
    """Return the entry of a schema for a frame of edges. A lazy one stays lazy."""
    if not hasattr(edges, "collect_schema"):
        edges = _frame("edges", edges).frame
    kinds = kinds_of(edges.collect_schema())
    ends = ends_of("edges: the frame", kinds, asked(columns))
    source, target = ({VERTICES: kinds[end][0]} for end in ends)
    return {"files": edges, "source": source, "target": target}


def _features(given: Any, look: Look, taken: Container[str]) -> list[Mapping[str, Any]]:
    """Return the entries of a schema for features: those that the user names, or all columns that fit."""
    if given is not None and (isinstance(given, str) or not isinstance(given, Sequence)):
        raise TypeError(f"features: expected a list of columns, got {type(given).__name__}")
    entries: list[Mapping[str, Any]]
    if given is None:
        rest = [name for name in look.kinds if name not in taken]
        found = {name: _feature(name, look, asked=False) for name in rest}
        if left := [one_line(name, 60) for name, entry in found.items() if entry is None]:
            log.info("features: left out %s, which are no numbers, dates or categories", ", ".join(left))
        entries = [entry for entry in found.values() if entry is not None]
    else:
        entries = [each if isinstance(each, Mapping) else _feature(each, look) or {} for each in given]
    if not entries:
        raise ParameterError("features: there are none. Name columns of numbers or categories")
    return entries


def _feature(name: Any, look: Look, *, asked: bool = True) -> dict[str, Any] | None:
    """Return the entry of a schema for a column, as a guess has it. None if it is no feature."""
    if name not in look.kinds:
        close = (
            parameters.meant(str(name), look.kinds) or f". They have {', '.join(map(one_line, look.kinds))}"
        )
        raise ParameterError(f"features: the vertices have no column {name!r}{close}")
    kind, column, guess = look.kinds[name], look.rows[name], feature_of(look, name)
    if kind in ("int", "number", "vector") and (guess or asked):
        missing = look.missing(name)
        mean = 0.0 if kind == "vector" else column.cast(pl.Float64).fill_nan(None).mean() or 0.0
        return {"column": name, "standardise": True, **({"fill": mean} if missing else {})}
    if guess:
        return {"column": name, **guess[0]}
    if kind == "text" and 0 < 2 * column.n_unique() <= len(column) and column.n_unique() <= MOST_EMBEDDED:
        return {"column": name, "as": "embedding"}
    if kind == "time":
        return {"column": name, "as": "days", "standardise": True}
    if asked:
        raise ParameterError(
            f"features: column {name!r} holds {column.n_unique():,} values of {column.dtype} in {len(column):,} rows, "
            "which are neither numbers nor categories. Turn them into numbers or lists of numbers, as a model of text "
            "does, or leave them out"
        )
    return None


def _number_of_parts(graph: Graph, k: int | None, workers: int | None) -> int:
    if k is not None:
        return k
    if workers is not None:
        return workers
    return max(1, min(_core.default_threads(), graph.num_vertices // _VERTICES_PER_PART))


def _fitted(options: SampledOptions, graph: Graph) -> SampledOptions:
    """Return the options with a batch size that fits the graph, as a call of the method would have got them."""
    (entry,) = GraphDirectory.of(graph).content["types"]
    counts = entry["split"]
    size = options.batch_size or min(max(counts.get("train", 0) // _BATCHES, 32), 1000)
    chosen: dict[str, Any] = {"batch_size": size, "patience": options.patience if counts.get("val") else None}
    known = {each.name for each in fields(options)} - {"given"}
    given = {name: value for name, value in options.given.items() if name in known and name not in DATA}
    return replace(options, **chosen, given={**given, **chosen})
