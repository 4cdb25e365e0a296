"""GREM."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _core, parameters
from ..edges import open_edges
from ..errors import ParameterError
from ..parameters import Progress, StrPath, run_options
from ..partition import VertexPartition
from .common import vertex_partition

_THIN = 2.0
"""Neighbours of a vertex in a chunk, on average, below which the counts are noise."""

_ENOUGH = 4.0
"""As many bring the cut within a few percent of an offline partitioner's."""


def grem(
    edges: Any,
    k: int,
    *,
    chunk: float | int = 0.1,
    passes: int = 1,
    refine: bool = True,
    faithful: bool = False,
    balance: float = 1.0,
    order: str = "random",
    seed: int | None = 0,
    tmp_dir: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with GREM: recursive bisection of a stream, whose decisions every chunk refines.

    The first chunk of each bisection is partitioned in memory. In every later one each vertex counts its neighbours on
    either side, adds four fifths of what it counted before, and goes to the side with more of them; after each chunk
    the vertices that lose least by it leave a side that exceeds its cap. Takes 16 bytes per vertex and 4 MB; for each
    sub-problem at work, at most ``threads``, 36 bytes per record of a chunk and 104 bytes per vertex that is
    partitioned in memory: a fourth of the vertices that a chunk shows or, if a chunk is small, all.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    chunk : float or int
        A float, above 0 and at most 1: the share of the records that a chunk has. An int: its number of records. The
        size changes the result, so it never depends on the memory: a chunk that does not fit is refused.
        A graph, or a sub-problem, that fits one chunk is partitioned in memory as a whole.
    passes : int
        Rounds over the records of each bisection; the paper makes one.
    refine : bool
        Decide again when a vertex comes again. False freezes the first decision: streaming greedy partitioning, for
        comparison.
    faithful : bool
        The paper's Algorithm 2 to the letter: old counts are halved, no vertex may enter a full side, a vertex is still
        counted on its side when the side's room is looked at, equal counts send it to the emptier side, and chunks are
        a share of each sub-problem's own records, none of which is partitioned whole. The cap may be exceeded, so that
        the result has none.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    order : {"random", "file"}
        Whether the records are put in random order first, which belongs to the algorithm, or come in that order.
    seed : int, optional
        Of the order and of the partitioner in memory; None is 0.
    tmp_dir : path, optional
        Where temporary files go, of up to 24 bytes per record; by default where the system has them. They have no
        names: nothing is left of them, even if the process is killed. On a file system in memory (tmpfs, as
        ``/dev/shm``) they count against the memory limit.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment`` (int32, length n, read-only), ``loads`` and, unless ``faithful``, ``cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed, and the largest ``chunk`` that fits.
    OSError
        The disk is full, or failed.
    EdgeFileChangedError
        The file changed during the run.
    KeyboardInterrupt
        Within a fraction of a second of Ctrl-C.

    Warns
    -----
    UserWarning
        If a vertex has fewer than 2 neighbours in a chunk on average: counts are noise then. The text says which size
        would do.

    See Also
    --------
    expected_cut : What the size of the chunks costs.

    Notes
    -----
    Source: Armada (Waleffe et al.), section 4. k parts are bisected into ``ceil(k / 2)`` and ``floor(k / 2)``; a
    sub-problem for s parts takes s times the cap of a part, so that the imbalance does not compound. On equal counts a
    vertex stays where it is, and a new one goes to the side with the larger part of its capacity free (of equal ones,
    the first). Vertices without a record in a sub-problem are placed at its end. With ``refine=False`` the first
    decision is the last, and no vertex may enter a full side.

    Only vertices are bounded. On graphs with a dense core (R-MAT, k = 32) the smallest cut puts the core into few
    parts, which then hold most of the edges; :func:`multilevel` and :func:`sigma` bound the edges of a part, too.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> part = fp.grem(two_triangles, k=2, chunk=1.0)
    >>> float(fp.evaluate(two_triangles, part).totals["cut_ratio"][0])
    0.14285714285714285
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "chunk": _chunk(chunk),
        "passes": parameters.integer("passes", passes, 1, 2**31),
        "refine": parameters.flag("refine", refine),
        "faithful": parameters.flag("faithful", faithful),
        "balance": parameters.ratio("balance", balance),
        "order": parameters.choice("order", order, ("random", "file")),
        "seed": parameters.seed(seed),
    }
    if faithful and not refine:
        raise ParameterError("faithful: the paper's rule refines; leave out refine=False")
    options = run_options(threads, memory_limit, progress, tmp_dir)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    in_core = {name: value for name, value in given.items() if name not in ("chunk", "order")}
    records = given["chunk"] if isinstance(given["chunk"], int) else None
    fields = _core.grem(
        opened._source,
        **in_core,
        share=0.0 if records is not None else given["chunk"],
        records=records,
        shuffle=order == "random",
        options=options,
    )
    _warn_of_thin_chunks(fields, given)
    return vertex_partition("grem", given, fields, opened)


def _chunk(value: object) -> float | int:
    if isinstance(value, float | np.floating):
        if not 0 < value <= 1:
            raise ParameterError(
                f"chunk: {value}; a float is a share above 0 and at most 1, an int a number of records"
            )
        return float(value)
    return parameters.integer("chunk", value, 1, 2**63 - 1)


def _warn_of_thin_chunks(fields: dict[str, Any], given: dict[str, Any]) -> None:
    n, m = fields["n"], fields["m"]
    chunk = given["chunk"]
    share = chunk / max(m, 1) if isinstance(chunk, int) else chunk
    degree = 2 * (m - fields["loops"]) / max(n, 1)
    if given["k"] == 1 or share >= 1 or degree * share >= _THIN:
        return
    enough = round(min(1.0, _ENOUGH / degree) if degree else 1.0, 2)
    warnings.warn(
        f"chunk: with a mean degree of {degree:.3g}, a chunk of {share:.3g} of the records shows {degree * share:.2g} "
        f"neighbours of a vertex, and its counts are noise; use chunk={enough or 0.01} or more",
        UserWarning,
        stacklevel=3,
    )
