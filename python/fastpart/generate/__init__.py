"""Generated graphs, streamed to disk. The same seed gives the same bytes on any number of threads."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np

from .. import _core
from ..core import parameters
from ..core.calls import refusing
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import FeatureDtype, StrPath
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from ..graphs.sidecars import RAW, Sidecar, beside, staged
from .tables import typed

__all__ = ["ba", "grid", "planted", "rmat", "typed"]

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)

_MOST_VERTICES = 2**32 - 1
_MOST_EDGES = 2**48


@with_options
def rmat(out: StrPath, *, n: int, m: int, seed: int = 0, **options: Unpack[Options]) -> Graph:
    """Write an R-MAT graph with skewed degrees, as in social and web graphs.

    Parameters
    ----------
    out : path
        Raw u32 edges, with the sidecar ``OUT.json`` beside them.
    n : int
        Number of vertices. Some have no edge.
    m : int
        Number of records. Loops and parallel edges occur.
    seed : int, optional
        Seed of the random numbers, 0 to 2**64 - 1.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph

    Notes
    -----
    Source: Chakrabarti, Zhan, Faloutsos, "R-MAT", SDM 2004, with the probabilities 0.57, 0.19, 0.19, 0.05.

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> fp.generate.rmat(pathlib.Path(tempfile.mkdtemp()) / "g.bin", n=1000, m=5000).num_edges
    5000
    """
    return _random(_core.generate_rmat, out, n, m, seed, run_options(**options))


@with_options
def ba(out: StrPath, *, n: int, m: int, seed: int = 0, **options: Unpack[Options]) -> Graph:
    """Write a Barabási-Albert graph, whose degrees follow a power law.

    Each vertex attaches to earlier ones in proportion to their degrees.

    Parameters
    ----------
    out : path
        Raw u32 edges, with the sidecar ``OUT.json`` beside them.
    n : int
        Number of vertices.
    m : int
        Number of records. Each vertex but the first adds m / (n - 1) of them, rounded up or down. Parallel edges occur.
        Loops do not, if n > 1.
    seed
        As in :func:`rmat`.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph

    Notes
    -----
    A record leads from the younger vertex to the older one. Records are in the order of the younger vertex. Sources:
    Barabási, Albert, "Emergence of Scaling in Random Networks", Science 286, 1999. The stateless form is that of
    Sanders, Schulz, "Scalable Generation of Scale-free Graphs", Information Processing Letters 116, 2016.

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> fp.generate.ba(pathlib.Path(tempfile.mkdtemp()) / "g.bin", n=1000, m=4000).num_edges
    4000
    """
    return _random(_core.generate_ba, out, n, m, seed, run_options(**options))


@with_options
def grid(out: StrPath, *, rows: int, columns: int, **options: Unpack[Options]) -> Graph:
    """Write a two-dimensional grid, whose best cuts are straight lines.

    Parameters
    ----------
    out : path
        Raw u32 edges, with the sidecar ``OUT.json`` beside them.
    rows, columns : int
        Vertex ``row * columns + column`` is joined to its neighbours to the right and below.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> edges = fp.generate.grid(pathlib.Path(tempfile.mkdtemp()) / "g.bin", rows=3, columns=4)
    >>> edges.num_vertices, edges.num_edges
    (12, 17)
    """
    target = parameters.path("out", out)
    rows = parameters.integer("rows", rows, 0, _MOST_VERTICES)
    columns = parameters.integer("columns", columns, 0, _MOST_VERTICES)
    run = run_options(**options)
    with staged(target, RAW, run) as file:
        m, checksum = _core.generate_grid(file, rows=rows, columns=columns, options=run)
        Sidecar("u32", rows * columns, m, "undirected", checksum).write(file)
    return open_graph(target)


@with_options
def planted(
    out: StrPath,
    *,
    n: int,
    m: int,
    classes: int = 8,
    features: int = 0,
    feature_dtype: FeatureDtype = "float32",
    seed: int = 0,
    **options: Unpack[Options],
) -> Graph:
    """Write a graph with communities, and with labels (and features) that a GNN can learn.

    Parameters
    ----------
    out : path
        Raw u32 edges. Beside it go the sidecar, ``OUT.labels.npy`` (int64, the community), ``OUT.split.npz``
        (``train``, ``val``, ``test``: vertex ids, 60 / 20 / 20 %) and, with features, ``OUT.features.npy``
        (n x features).
    n : int
        Number of vertices.
    m : int
        Number of records.
    classes : int
        Number of communities.
    features : int
        Width of the features. 0: no features.
    feature_dtype : {"float32", "float16", "int8"}
        Type of the features. "int8" takes 8 bits per number: ``OUT.features.npy`` then holds n rows with fields
        ``codes``, ``low`` and ``step``, and the numbers of row x are ``x["low"] + x["step"] * x["codes"]``. ``save``
        and ``partition`` copy such rows as they are.
    seed
        As in :func:`rmat`.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph

    Notes
    -----
    A degree-corrected planted partition. Degrees follow a power law. Four of five edges stay inside their community.
    Source: Karrer, Newman, "Stochastic blockmodels and community structure in networks", Phys. Rev. E 83, 2011.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, pathlib
    >>> out = pathlib.Path(tempfile.mkdtemp()) / "g.bin"
    >>> edges = fp.generate.planted(out, n=100, m=1000, classes=4, features=3)
    >>> np.load(f"{out}.features.npy").shape
    (100, 3)

    8 bits per number:

    >>> edges = fp.generate.planted(out, n=100, m=1000, classes=4, features=3, feature_dtype="int8")
    >>> x = np.load(f"{out}.features.npy")
    >>> (x["low"][:, None] + x["step"][:, None] * x["codes"]).shape
    (100, 3)
    """
    target = parameters.path("out", out)
    n, m, seed = _sizes(n, m, seed)
    classes = parameters.integer("classes", classes, 1, _MOST_VERTICES)
    features = parameters.integer("features", features, 0, 2**20)
    parameters.choice("feature_dtype", feature_dtype, get_args(FeatureDtype))
    run = run_options(**options)
    model = _core.Planted(n=n, m=m, classes=classes, features=features, seed=seed)
    companions = ["labels.npy", "split.npz", *(["features.npy"] if features else [])]
    with staged(target, [*RAW, *companions], run) as file:
        if features:
            model.write_features(beside(file, "features.npy"), feature_dtype, run)
        _write(np.save, beside(file, "labels.npy"), model.labels(run))
        train, val, test = model.split(run)
        _write(np.savez, beside(file, "split.npz"), train=train, val=val, test=test)
        checksum = model.write(file, run)
        Sidecar("u32", n, m, "undirected", checksum).write(file)
    return open_graph(target)


def _random(write: Callable[..., str], out: StrPath, n: int, m: int, seed: int, run: RunOptions) -> Graph:
    target = parameters.path("out", out)
    n, m, seed = _sizes(n, m, seed)
    with staged(target, RAW, run) as file:
        checksum = write(file, n=n, m=m, seed=seed, options=run)
        Sidecar("u32", n, m, "undirected", checksum).write(file)
    return open_graph(target)


def _sizes(n: int, m: int, seed: int) -> tuple[int, int, int]:
    return (
        parameters.integer("n", n, 0, _MOST_VERTICES),
        parameters.integer("m", m, 0, _MOST_EDGES),
        parameters.seed(seed),
    )


def _write(save: Callable[..., None], target: Path, *arrays: Any, **named: Any) -> None:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    _core.write_file(target, buffer.getvalue())
