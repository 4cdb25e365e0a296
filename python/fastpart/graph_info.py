"""Facts about a graph."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from . import _core
from .graph import open_graph
from .options import Options, run_options, with_options

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)


@with_options
def info(graph: Any, **options: Unpack[Options]) -> dict[str, Any]:
    """Describe a graph: sizes, loops, degrees, isolated vertices, and the memory that each algorithm would need.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    dict
        ``n``, ``m``, ``loops``, ``directedness``, ``weights`` (only of weighted records: min, max, sum and scale, see
        :func:`open_graph`), ``isolated`` (vertices without a non-loop record), ``mean_degree``,
        ``degrees`` (quantiles, by name), ``checksum``, and ``memory``, the bytes that each algorithm would need, by
        name. Where they depend on k, they are for k = 64. Algorithms that read the neighbours of vertices need
        ``memory["adjacency"]`` in addition. The first call builds the adjacency, and the :class:`Graph` keeps it. The
        part of it that exceeds half of the memory limit lies in temporary files and is not counted.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> facts = fp.info(np.array([[0, 1], [1, 2], [2, 2]]))
    >>> facts["loops"], facts["degrees"]["max"]
    (1, 2)
    """
    opened = open_graph(graph, **options)
    degrees = opened.degrees(**options)
    loops, checksum = opened.identify()
    limits = run_options(**options)
    n = opened.num_vertices
    quantiles = np.quantile(degrees, _QUANTILES, method="lower") if n else np.zeros(len(_QUANTILES))
    names = ("min", "25%", "50%", "75%", "90%", "99%", "99.9%", "max")
    return {
        "n": n,
        "m": opened.num_edges,
        "loops": loops,
        "directedness": opened.directedness,
        **({"weights": opened._weights.facts} if opened._weights else {}),
        "isolated": int(n - np.count_nonzero(degrees)),
        "mean_degree": round(2 * (opened.num_edges - loops) / n, 3) if n else 0.0,
        "degrees": {name: int(value) for name, value in zip(names, quantiles, strict=True)},
        "checksum": checksum,
        "memory": _core.memory_estimates(opened._source, opened.directedness == "symmetric", limits),
    }
