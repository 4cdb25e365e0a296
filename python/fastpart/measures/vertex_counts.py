"""The counts behind the measures of a vertex partition, by this machine or by tasks on a cluster.

Each kind of counts takes passes over all records: one for the cut, one for 64 halos, and one for the components. So
each is a task, and halos are a task for each worker at most. To count the cut by shards of the records would save
nothing, since the other tasks take a whole pass each.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.options import RunOptions
from ..core.parsing import damaged, mapped
from ..graphs.graph import Graph
from ..machines.job import ANEW, Job, name_of, read_checked, source_of, write_checked
from ..machines.partitioning import Place

_PASS = 64
"""Parts whose halos take one pass."""

Ids = npt.NDArray[np.int64]
Counted = dict[str, npt.NDArray[Any]]
Kind = Literal["cut", "components"] | tuple[int, int]
"""What is counted: a tuple is the range of the parts whose halos are."""


@dataclass(frozen=True)
class VertexCounts:
    """Counts of a vertex partition, of each part unless it says otherwise.

    Attributes
    ----------
    internal, cut : numpy.ndarray
        Records that are no loops with both ends in the part, and with one.
    volume : numpy.ndarray
        Sum of the degrees.
    matrix : numpy.ndarray or None
        Shape (k, k): records between two parts. None for many parts.
    halo_of_types : list of numpy.ndarray
        The halo of each type of vertices.
    components : numpy.ndarray
        Connected components.
    loops : int
        Loops of the graph.
    checksum : str
        Checksum of the records.
    """

    internal: Ids
    cut: Ids
    volume: Ids
    matrix: Ids | None
    halo_of_types: list[Ids]
    components: Ids
    loops: int
    checksum: str

    @property
    def halo(self) -> Ids:
        """Vertices of other parts with a neighbour in the part."""
        total: Ids = np.sum(self.halo_of_types, axis=0)
        return total


def count(
    graph: Graph,
    assignment: npt.NDArray[np.int32],
    k: int,
    types: list[int],
    options: RunOptions,
    place: Place | None,
) -> VertexCounts:
    """Return the counts of a partition. ``types`` are the sizes of the types of vertices."""
    if place is None:
        counted = [_counted(graph, assignment, k, types, options, kind) for kind in _kinds(k, 1)]
    else:
        counted = list(_counted_on(place, graph, assignment, k, types, options))
    cut, *halos, components = counted
    return VertexCounts(
        internal=cut["internal"],
        cut=cut["cut"],
        volume=cut["volume"],
        matrix=cut.get("matrix"),
        halo_of_types=list(np.concatenate([halo["halo"] for halo in halos], axis=1)),
        components=components["components"],
        loops=int(cut["loops"]),
        checksum=str(cut["checksum"]),
    )


def _kinds(k: int, workers: int) -> list[Kind]:
    """Return what is to be counted. All halos are of as many kinds as there are workers, at most."""
    passes = -(-k // _PASS)
    count = min(passes, workers)
    cuts = [min(passes * i // count * _PASS, k) for i in range(count + 1)]
    return ["cut", *pairwise(cuts), "components"]


_NAMES = {"cut": ("internal", "cut", "volume", "loops", "checksum"), "components": ("components",)}
"""The arrays in a file of a job, by its name. All other files hold those of halos."""


def _counted(
    graph: Graph,
    assignment: npt.NDArray[np.int32],
    k: int,
    types: Sequence[int],
    options: RunOptions,
    kind: Kind,
) -> Counted:
    given = (graph._source, assignment, k)
    if kind == "components":
        return {"components": _core.component_counts(*given, options)}
    if kind != "cut":
        return {"halo": np.stack(_core.halo_counts(*given, kind, list(types), options))}
    counts = _core.cut_counts(*given, options)
    found: Counted = {name: getattr(counts, name) for name in ("internal", "cut", "volume")}
    found |= {"loops": np.array(counts.graph.loops), "checksum": np.array(counts.graph.checksum)}
    return found if counts.matrix is None else found | {"matrix": counts.matrix}


def _counted_on(
    place: Place,
    graph: Graph,
    assignment: npt.NDArray[np.int32],
    k: int,
    types: list[int],
    options: RunOptions,
) -> Iterator[Counted]:
    """Yield what tasks counted."""
    known = {"graph": source_of(graph), "assignment": name_of(assignment), "k": k, "types": types}
    with Job(place.shared, {"counts": known, "version": _core.__version__}) as job:
        parts = job.path / "assignment.npy"
        given = (graph, parts, k, types, replace(options, progress=None))
        files = {_file(kind): (*given, kind) for kind in _kinds(k, place.engine.workers)}
        _core.write_npy(parts, assignment, options)
        paths = job.stage(place.engine, "counts", files, count_kind)
        contents = [_read(path, _NAMES.get(path.stem, ("halo",))) for path in paths]
        job.remove()
    yield from contents


def _read(file: Path, names: Sequence[str]) -> Counted:
    """Return the counts in a file of a job. Refuse other arrays than those of these names."""
    content = read_checked(file)
    with damaged(file, f"no counts. {ANEW}"), np.load(io.BytesIO(content)) as arrays:
        if missing := [name for name in names if name not in arrays]:
            raise KeyError(missing[0])
        return dict(arrays)


def _file(kind: Kind) -> str:
    return f"{kind}.bin" if isinstance(kind, str) else f"halo-{kind[0]}-{kind[1]}.bin"


def count_kind(
    graph: Graph,
    assignment: Path,
    k: int,
    types: Sequence[int],
    options: RunOptions,
    kind: Kind,
    into: Path,
) -> None:
    """Write counts of a kind."""
    counted = _counted(graph, mapped(assignment), k, types, options, kind)
    buffer = io.BytesIO()
    np.savez(buffer, **counted)  # type: ignore[arg-type]
    write_checked(into, buffer.getvalue())
