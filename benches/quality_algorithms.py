"""What ``make quality`` compares: algorithms under equal bounds, in groups, and the columns of its table."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import polars as pl

import fastpart as fp
from fastpart.measures.compare.peers import PEERS

VERTICES, VOLUME, RECORDS = 1.03, 1.10, 1.05
"""Bounds on the parts, over the mean. The peers have them too."""

ON_REQUEST = (
    "kaminpar:preset=eco",
    "kaminpar:preset=strong",
    "kaminpar:preset=terapart",
    "mtkahypar:preset=quality",
    "mtkahypar:preset=deterministic",
    "mtkahypar:preset=deterministic_quality",
)
"""Presets of peers that run with ``--all-peers`` only."""

ONE_BOUND = {
    "spring": f"spring:balance={VERTICES}",
    "refennel": f"refennel:balance={VERTICES}:passes=2",
    "grem": f"grem:balance={VERTICES}",
    "multilevel": f"multilevel:balance={VERTICES}",
    "multilevel quick": f"multilevel:balance={VERTICES}:effort=quick",
    "multilevel best": f"multilevel:balance={VERTICES}:effort=best",
    "fast": f"partition:balance={VERTICES}:effort=fast",
    "multilevel files": f"multilevel:balance={VERTICES}:path=two_levels:sample=0.1",
    "heistream": "heistream",
    "buffcut": "buffcut",
    "metis": "metis",
    "kaminpar": "kaminpar",
    "mtkahypar": "mtkahypar",
    **dict(zip(ON_REQUEST, ON_REQUEST, strict=True)),
}
"""Algorithms by name, with a bound on the vertices of a part. A tenth of the memory leads to "files"."""

TWO_BOUNDS = {
    "sigma/2": f"sigma:balance={VERTICES}:volume_balance={VOLUME}",
    "multilevel/2": f"multilevel:balance={VERTICES}:volume_balance={VOLUME}",
    "multilevel files/2": f"multilevel:balance={VERTICES}:volume_balance={VOLUME}:path=two_levels:sample=0.1",
    "metis/2": "metis:constraints=2",
}
"""With a second bound, on the volume."""

OF_EDGES = {
    "hdrf": f"hdrf:balance={RECORDS}",
    "2ps-hdrf": f"two_phase:balance={RECORDS}:scoring=hdrf",
    "sigma edges": f"sigma:of=edges:balance={RECORDS}",
    "hep": f"hep:balance={RECORDS}",
    "edges fast": f"partition:of=edges:balance={RECORDS}:effort=fast",
    "edges": f"partition:of=edges:balance={RECORDS}",
    "edges best": f"partition:of=edges:balance={RECORDS}:effort=best",
}
"""Partitions of the edges, with a bound on the records of a part. "edges" is what ``partition`` chooses."""

GROUPS = {
    "vertices": (ONE_BOUND, "metis"),
    "two-bounds": (TWO_BOUNDS, "metis/2"),
    "edges": (OF_EDGES, "hep"),
}
"""Groups of algorithms that are compared with one another, and the baseline of each."""

ALGORITHMS = ONE_BOUND | TWO_BOUNDS | OF_EDGES
QUICK_PEERS = ("heistream", "buffcut", "metis", "kaminpar", "metis/2")
SLOW_PEERS = ("mtkahypar", *ON_REQUEST)
FIRST_SEED = ("multilevel best", "edges best", *SLOW_PEERS)
"""Algorithms that run with the first seed only."""

ANCHORS = (
    ("multilevel", "mtkahypar"),
    ("multilevel best", "mtkahypar:preset=quality"),
    ("multilevel best", "mtkahypar:preset=deterministic_quality"),
    ("multilevel best", "kaminpar:preset=strong"),
    ("multilevel", "mtkahypar:preset=quality"),
    ("multilevel", "kaminpar:preset=strong"),
    ("multilevel", "kaminpar:preset=eco"),
    ("multilevel/2", "metis/2"),
    ("multilevel", "kaminpar"),
    ("multilevel quick", "metis"),
    ("multilevel quick", "multilevel"),
    ("fast", "metis"),
    ("fast", "refennel"),
    ("fast", "heistream"),
    ("fast", "buffcut"),
    ("edges", "hep"),
)
"""Pairs whose means say most: ours at an effort, and the peer that is to be met at it."""

RIVALS = (
    ("multilevel", "metis"),
    ("multilevel", "kaminpar"),
    ("multilevel", "mtkahypar"),
    ("multilevel quick", "metis"),
    ("fast", "heistream"),
    ("fast", "buffcut"),
    ("multilevel", "kaminpar:preset=eco"),
    ("multilevel best", "mtkahypar"),
    ("multilevel best", "kaminpar:preset=strong"),
    ("multilevel best", "mtkahypar:preset=quality"),
    ("multilevel best", "mtkahypar:preset=deterministic_quality"),
    ("multilevel files", "metis"),
    ("multilevel/2", "metis/2"),
    ("multilevel files/2", "metis/2"),
    ("grem", "metis"),
    ("sigma/2", "metis/2"),
    ("edges fast", "sigma edges"),
    ("edges", "hep"),
    ("edges best", "hep"),
)
"""Pairs of which the cells are named in which the second is better."""

COSTS = ("seconds", "memory_kb")
OF_VERTICES_MEASURES = ("cut_ratio", "halo_rf", "vertex_balance", "edge_balance", *COSTS)
OF_EDGES_MEASURES = ("rf", "replica_balance", "edge_balance", *COSTS)
"""Columns of the rows. Rivals are compared by the first two of each and by the costs: less is better."""

SCHEMA = {
    "graph": pl.String, "n": pl.Int64, "m": pl.Int64, "k": pl.Int64, "algorithm": pl.String,
    **dict.fromkeys([*OF_VERTICES_MEASURES[:-1], *OF_EDGES_MEASURES[:2]], pl.Float64), "memory_kb": pl.Int64,
    "error": pl.String,
    "checksum": pl.String, "bounds": pl.String, "version": pl.String, "seeds": pl.Int64,
}  # fmt: skip
"""The last four say what was measured: the records of the graph, the bounds, the package and the number of seeds."""

IDENTITY = ("checksum", "n", "k", "algorithm", "bounds", "version", "seeds")
"""Rows that agree in these are of the same measurement."""


def measures(algorithm: str) -> tuple[str, ...]:
    """Return what the rows of an algorithm show. The first is what it makes small."""
    return OF_EDGES_MEASURES if algorithm in OF_EDGES else OF_VERTICES_MEASURES


def bounds(algorithm: str) -> str:
    """Return the bounds of an algorithm as text."""
    if algorithm in OF_EDGES:
        return f"records {RECORDS}"
    return f"vertices {VERTICES}" + f", volume {VOLUME}" * (algorithm in TWO_BOUNDS)


def version_of(algorithm: str) -> str | None:
    """Return the version of the package that an algorithm is from, or None where it is not installed."""
    peer = PEERS.get(ALGORITHMS[algorithm].partition(":")[0])
    try:
        return fp.__version__ if peer is None else version(peer.module)
    except PackageNotFoundError:
        return None
