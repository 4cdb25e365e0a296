"""Opening a comparison that was saved: every field of the file is checked."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from ...core import parameters
from ...core.calls import called_well
from ...core.frames import pl
from ...core.parameters import StrPath, shown
from ...core.parsing import Count, json_object
from ...errors import FastpartError, GraphFormatError
from ..by_type import RELATIONS, TYPES
from .comparison import Comparison
from .outcomes import COLUMNS, LAST, MEASURES, OPTIONAL, SCHEMA, TRAFFIC, Outcome

_COUNTS = {
    "vertices": ("vertices", "volume", "halo", "load"),
    "edges": ("edges", "replicas", "load"),
}
"""Columns that the parts must have."""

_NONE = "The file is not a comparison that `fastpart compare -o NAME.json` wrote"


class _Graph(msgspec.Struct):
    name: str
    checksum: str
    n: Count
    m: Count
    loops: Count


class _Machine(msgspec.Struct):
    processor: str
    cores: Count
    memory: Count | None


class _Build(msgspec.Struct):
    digest: str
    commit: str | None


class _Provenance(msgspec.Struct):
    date: str
    balance: float | None
    seeds: list[int]
    baseline: str | None
    threads: Count
    memory_limit: Count | None
    time_limit: float | Literal["inf"]
    versions: dict[str, str]
    machine: _Machine
    build: _Build
    parameters: dict[str, dict[str, Any]]
    algorithms: dict[str, str | None]


class _Content(msgspec.Struct):
    """The fields of a comparison. Rows are checked by their columns."""

    graphs: list[_Graph]
    provenance: _Provenance
    rows: list[dict[str, Any]]


@called_well
def open_comparison(source: StrPath) -> Comparison:
    """Read a comparison that :meth:`Comparison.save` wrote as ``.json``.

    Parameters
    ----------
    source : path
        The ``.json``.

    Returns
    -------
    Comparison

    Raises
    ------
    GraphFormatError
        The file holds no comparison.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, pathlib
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "comparison.json"
    >>> fp.compare(graph, k=2, algorithms=["spring"]).save(file)
    >>> fp.open_comparison(file).summary["algorithm"].to_list()
    ['spring']
    """
    path = parameters.regular(parameters.path("source", source))
    content = json_object(path, None, _Content, _NONE, ("fastpart_comparison", SCHEMA))
    try:
        graphs, provenance = tuple(map(_graph, content["graphs"])), _provenance(content["provenance"])
        comparison = Comparison(graphs, tuple(map(_outcome, content["rows"])), provenance)
        names = {graph["name"] for graph in graphs}
        if any(outcome.row["graph"] not in names for outcome in comparison.outcomes):
            raise FastpartError("a row of a graph that is not listed")
        if any(outcome.row["algorithm"] not in provenance["algorithms"] for outcome in comparison.outcomes):
            raise FastpartError("a row of an algorithm that is not listed")
        _ = comparison.runs, comparison.summary  # Polars checks the types
        return comparison
    except (
        ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, pl.exceptions.PolarsError
    ) as error:  # fmt: skip
        reason = str(error).split("\n", 1)[0]
        raise GraphFormatError(f"{shown(path)}: {type(error).__name__}: {reason}. {_NONE}") from None


def _graph(content: dict[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in ("name", "checksum", "n", "m", "loops")}


def _provenance(content: dict[str, Any]) -> dict[str, Any]:
    """Return what was recorded of the circumstances. Parameters may be anything that JSON can hold."""
    balance, limit = content["balance"], content["time_limit"]
    checked = {
        "balance": None if balance is None else parameters.ratio("balance", balance),
        "seeds": [_seed(each) for each in content["seeds"]],
        "time_limit": limit if limit == "inf" else _measure("time_limit", limit),
        "machine": {name: content["machine"][name] for name in _Machine.__struct_fields__},
        "build": {name: content["build"][name] for name in _Build.__struct_fields__},
    }
    return {name: content[name] for name in _Provenance.__struct_fields__} | checked


def _seed(value: Any) -> int:
    return parameters.integer("seed", value, 0, 2**64 - 1)


def _outcome(content: dict[str, Any]) -> Outcome:
    error, of = content["error"], content["of"]
    row: dict[str, Any] = {name: _text(name, content[name]) for name in ("graph", "algorithm")} | {"of": of}
    if content.get("seed") is not None:
        row["seed"] = _seed(content["seed"])
    row["k"] = parameters.parts(content["k"])
    traffic = [name for name in content if name.startswith(TRAFFIC)]
    for name, dtype in {**COLUMNS, **dict.fromkeys([*OPTIONAL, *traffic], "Float64"), **LAST}.items():
        if name not in ("of", "algorithm", "k", "error") and content.get(name) is not None:
            row[name] = _CHECKS[dtype](name, content[name])
    if error is not None:
        where = content.get("traceback")
        row["error"] = _text("error", error)
        return Outcome(row, traceback=None if where is None else _text("traceback", where))
    if of not in MEASURES or any(name not in row for name in MEASURES[of][:3]):
        raise FastpartError(f"a partition of {of!r} without its measures")
    parts = None if "parts" not in content else _parts(content["parts"], row["k"], _COUNTS[of])
    matrix = None if "matrix" not in content else _matrix(content["matrix"], row["k"])
    types, relations = (
        None if name not in content else _by_type(name, content[name], columns[of])
        for name, columns in (("types", TYPES), ("relations", RELATIONS))
    )
    return Outcome(row, parts, matrix, types=types, relations=relations)


def _parts(content: Any, k: int, counts: tuple[str, ...]) -> pl.DataFrame:
    if not isinstance(content, dict):
        raise FastpartError(f"parts: expected the columns of a table, got {type(content).__name__}")
    columns = {name: _column(name, values, k) for name, values in content.items()}
    for name in counts:
        if not all(isinstance(value, int) for value in columns[name]):
            raise FastpartError(f"{name}: expected one count per part")
    return pl.DataFrame(columns, infer_schema_length=None)


def _by_type(name: str, content: Any, columns: dict[str, str]) -> pl.DataFrame:
    """Return the measures of types, or of relations."""
    if not isinstance(content, dict) or not all(isinstance(values, list) for values in content.values()):
        raise FastpartError(f"{name}: expected the columns of a table")
    more = [column for column in content if column in OPTIONAL or column.startswith(TRAFFIC)]

    def checked(column: str, dtype: str, value: Any) -> Any:
        return None if value is None and column in more else _CHECKS[dtype](column, value)

    return pl.DataFrame(
        [
            pl.Series(
                column, [checked(column, dtype, value) for value in content[column]], getattr(pl, dtype)
            )
            for column, dtype in (columns | dict.fromkeys(more, "Float64")).items()
        ]
    )


def _column(name: str, values: Any, k: int) -> list[int | float | None]:
    """Return one number per part, or none. Polars would take minutes to look at deeply nested lists."""
    if not isinstance(values, list) or len(values) != k:
        raise FastpartError(f"{name}: expected one number for each of {k} parts")
    return [None if value is None else _number(name, value) for value in values]


def _number(name: str, value: Any) -> int | float:
    return _count(name, value) if isinstance(value, int) else _measure(name, value)


def _matrix(content: Any, k: int) -> npt.NDArray[np.int64]:
    matrix = np.array(content)
    if matrix.shape != (k, k) or matrix.dtype != np.int64 or matrix.min() < 0:
        raise FastpartError(f"a cut matrix of shape {matrix.shape} and dtype {matrix.dtype} for {k} parts")
    return matrix


def _count(name: str, value: Any) -> int:
    return parameters.integer(name, value, 0, 2**63 - 1)


def _measure(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value < math.inf):
        raise FastpartError(f"{name}: {value!r} is not a measure")
    return float(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise FastpartError(f"{name}: {value!r} is not a text")
    return value


_CHECKS = {"String": _text, "Int64": _count, "Float64": _measure, "Boolean": parameters.flag}
"""Checks of the values of a column, by its type."""
