"""Results other than partitions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.calls import called_well
from ..core.frames import Tabular, pl
from ..core.parameters import StrPath
from ..core.protocols import Assignment, facts, tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..graphs.graph import Graph


class Evaluation(Tabular):
    """The measures of one partition, from :func:`fastpart.evaluate`.

    Attributes
    ----------
    parts : polars.DataFrame
        One row per part.
    summary : polars.DataFrame
        One row with the measures of the whole partition.
    cut_matrix : numpy.ndarray or polars.DataFrame or None
        Counts of records between parts (vertex partitions): int64 of shape (k, k), symmetric, internal records on the
        diagonal, without loops. Above 4,096 parts it is a frame ``part, other, records`` with ``part <= other``,
        computed on first access.
    types, relations : polars.DataFrame or None
        One row per type of vertices, and one per relation, if the graph has several.

    Notes
    -----
    Every column of the summary is also an attribute: ``e.cut_ratio``. Evaluations are equal if all tables are.
    """

    of: str
    algorithm: str
    k: int
    n: int
    m: int
    loops: int
    cut_ratio: float
    weighted_cut: float
    weighted_cut_ratio: float
    vertex_balance: float
    edge_balance: float
    halo_rf: float
    components: int
    rf: float
    replica_balance: float
    weight_balance: float
    volume_balance: float
    train_balance: float
    val_balance: float
    test_balance: float
    label_skew: float
    type_balance: float

    def __init__(
        self,
        parts: pl.DataFrame,
        summary: pl.DataFrame,
        cut_matrix: Callable[[], npt.NDArray[np.int64] | pl.DataFrame | None] = lambda: None,
        types: pl.DataFrame | None = None,
        relations: pl.DataFrame | None = None,
    ) -> None:
        self.parts = parts
        self.summary = summary
        self.types = types
        self.relations = relations
        self._count_cut_matrix = cut_matrix

    @cached_property
    def cut_matrix(self) -> npt.NDArray[np.int64] | pl.DataFrame | None:
        """Counts of records between parts."""
        return self._count_cut_matrix()

    if not TYPE_CHECKING:  # type checkers know the columns from above

        def __getattr__(self, name: str) -> Any:
            summary = vars(self).get("summary")
            if summary is not None and name in summary.columns:
                return summary[name][0]
            names = "" if summary is None else f". The measures are {', '.join(summary.columns)}"
            raise AttributeError(f"Evaluation has no attribute {name!r}{names}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.summary.columns})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return all(
            same_frames(mine, theirs) for mine, theirs in zip(self._frames, other._frames, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        named = zip(("parts", "summary", "types", "relations"), self._frames, strict=True)
        return {**dict(named), "cut_matrix": self.cut_matrix}

    @property
    def _frames(self) -> tuple[pl.DataFrame | None, ...]:
        return self.parts, self.summary, self.types, self.relations

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.parts.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        parts = self.parts
        caps = {
            name: parts[name][0]
            for name in parts.columns
            if name.endswith("cap") and parts[name].n_unique() == 1
        }
        repeated = ["load"] if "load" in parts.columns and parts["load"].equals(parts[self.of]) else []
        frames = (self.summary, self.types, self.relations, parts.drop([*caps, *repeated]))
        title = ", ".join(
            [
                f"{self.algorithm}: parts of {self.of}",
                *(f"{name} {cap:,}" for name, cap in caps.items() if cap is not None),
            ]
        )
        return tables(title, *(frame for frame in frames if frame is not None))

    def to_frame(self) -> pl.DataFrame:
        """Return the table of the parts."""
        return self.parts

    def to_json(self) -> str:
        """Return ``{"summary": {...}, "parts": [...]}``. Undefined values are null.

        The evaluation of a typed graph also has ``"types": [...], "relations": [...]``.
        """
        content: dict[str, Any] = {
            "summary": self.summary.row(0, named=True),
            "parts": self.parts.rows(named=True),
        }
        for name, frame in (("types", self.types), ("relations", self.relations)):
            if frame is not None:
                content[name] = frame.rows(named=True)
        return json.dumps(without_nan(content))

    @called_well
    def save(self, out: StrPath) -> None:
        """Write the measures to a file, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.json`` (everything), ``.csv`` and ``.parquet`` (the table of the parts), ``.md`` and ``.tex``
            (all tables, in Markdown and in LaTeX with the package booktabs).

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile, pathlib
        >>> table = pathlib.Path(tempfile.mkdtemp()) / "parts.csv"
        >>> fp.evaluate(np.array([[0, 1], [1, 2]]), [0, 1, 1]).save(table)
        >>> table.read_text()[:13]
        'part,vertices'
        """
        from ..report.files import save_evaluation

        save_evaluation(self, out)

    @called_well
    def plot(self, out: StrPath | None = None) -> Figure:
        """Plot the sizes of the parts, the cap, and the records between the parts. See :func:`fastpart.report.draw`."""
        from ..report.partitions import draw

        return draw({f"{self.algorithm}, k = {self.k:,}": self}, out)

    def __str__(self) -> str:
        from ..report.text import evaluation_text

        return evaluation_text(self)

    __repr__ = __str__


class Clustering(Assignment):
    """One cluster per vertex, from :func:`fastpart.cluster`.

    Attributes
    ----------
    assignment : numpy.ndarray
        int32, length n, read-only: cluster of each vertex. Clusters are numbered in the order of their lowest vertices.
    sizes : numpy.ndarray
        int64, length num_clusters: vertices of each cluster.
    volumes : numpy.ndarray
        int64, length num_clusters: sum of the degrees of each cluster.
    modularity : float
        Share of edges inside clusters, minus the share expected in a random graph with these degrees. 0 without edges.
    caps : dict
        ``max_size`` and ``max_volume`` as applied. None: no bound.
    method : str
        "modularity" or "hollocou".
    parameters : dict
        The parameters of :func:`fastpart.cluster`, defaults included.
    num_vertices, num_edges, loops, checksum
        These identify the graph.
    graph : Graph or None
        The graph. None after unpickling.

    Notes
    -----
    Two clusterings are equal if they give every vertex the same cluster. ``np.asarray(c)`` is the assignment, without
    a copy. Tables get a column ``cluster``.
    """

    _column = "cluster"
    _forgotten = ("graph",)
    graph: Graph | None = None

    def __init__(
        self, method: str, given: Mapping[str, Any], result: _core.ClusterResult, graph: Graph | None = None
    ) -> None:
        self.method, self.graph = method, graph
        self.parameters = dict(given)
        self.assignment: npt.NDArray[np.int32] = result.assignment
        self.sizes: npt.NDArray[np.int64] = result.sizes.astype(np.int64)
        self.sizes.flags.writeable = False
        self.volumes: npt.NDArray[np.int64] = result.volumes
        self.modularity: float = result.modularity
        self.caps: dict[str, int | None] = {
            "max_size": given["max_size"],
            "max_volume": result.max_volume,
        }
        self.num_vertices: int = result.graph.n
        self.num_edges: int = result.graph.m
        self.loops: int = result.graph.loops
        self.checksum: str = result.graph.checksum

    @property
    def num_clusters(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    def _repr_html_(self) -> str:
        named = {"method": self.method, "clusters": self.num_clusters, "vertices": self.num_vertices}
        named |= {"largest": int(self.sizes.max(initial=0)), "modularity": self.modularity}
        return facts("Clustering", named)

    def __repr__(self) -> str:
        largest = int(self.sizes.max(initial=0))
        return (
            f"<Clustering: {self.method}, {self.num_clusters} clusters of {self.num_vertices} vertices, "
            f"largest {largest}, modularity {self.modularity:.4f}>"
        )


def same_frames(one: pl.DataFrame | None, other: pl.DataFrame | None) -> bool:
    """Return whether two tables are equal, or both None."""
    return one is other or (one is not None and other is not None and one.equals(other))


def without_nan(content: Any) -> Any:
    """Return content for JSON. NaN and infinite numbers become null."""
    if isinstance(content, dict):
        return {name: without_nan(value) for name, value in content.items()}
    if isinstance(content, list):
        return [without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


Cap = int | npt.NDArray[np.int64]
"""An upper bound: the same for all parts, or one of each."""


def cap_of_parts(cap: int | list[Any]) -> Cap:
    """Return a cap of all parts, or an array of caps, or of those of several bounds."""
    return cap if isinstance(cap, int) else frozen(np.array(cap, dtype=np.int64))


def plain(cap: Cap) -> int | list[int]:
    """Return a cap as JSON holds it."""
    return cap.tolist() if isinstance(cap, np.ndarray) else cap


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, which is read-only from now on."""
    array.flags.writeable = False
    return array
