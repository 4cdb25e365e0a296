"""Code that the exports share: the directories they read and replace, and tensors over mapped arrays.

PyG and GLT keep rows of the whole graph by the ids of the user. They are gathered part after part.
"""

from __future__ import annotations

import errno
import json
import math
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.folders import below
from ..core.notes import log
from ..core.outputs import held, output_folder
from ..core.parameters import Progress, StrPath, shown
from ..core.parsing import named
from ..core.system import allocate
from ..errors import GraphFormatError, ParameterError, arg, code
from ..partitions.part_rows import RelationData
from ..partitions.partition import PartitionSource, VertexPartition, directory_of
from ..partitions.parts import VertexPartData, part_name
from ..partitions.types import edge_types, in_edges_of, key_of, vertex_types
from ..store import open_partition

Array = npt.NDArray[Any]

MASKS = ("train", "val", "test")


class Source:
    """The vertex partition to export. With ``halo``, it must hold all in-edges of its vertices."""

    def __init__(self, source: PartitionSource, system: str, halo: bool = True) -> None:
        self.path = directory_of(source)
        partition = open_partition(self.path)
        if not isinstance(partition, VertexPartition):
            raise ParameterError(
                f"source: {shown(self.path)} is an edge partition, but {system} needs one part per vertex. Use a "
                "vertex partition, as spring makes"
            )
        self.partition = partition
        self.manifest: dict[str, Any] = partition.manifest or {}
        if halo:
            self._refuse_without_halo(system)
        self._tell_categories(system)

    def _tell_categories(self, system: str) -> None:
        """Say that codes of categories are numbers elsewhere."""
        entries = [self.manifest, *self.manifest.get("types", [])]
        columns = [column for entry in entries for column in entry.get("categories", {})]
        if columns:
            log.warning(
                "the features of %s have codes of categories (%s), which fastpart learns rows for. %s takes a code for "
                "a number: learn rows for them in your model, or ingest the tables with 'as: onehot'",
                shown(self.path),
                ", ".join(columns),
                system,
            )

    def _refuse_without_halo(self, system: str) -> None:
        if "directedness" not in self.manifest:
            raise ParameterError(
                f"source: {shown(self.path)} holds no edges. Save the partition with "
                f"{code('p.save(DIR, graph=...)', '`fastpart partition GRAPH -o DIR`')}"
            )
        if self.manifest.get("halo_hops") not in (1, 2):
            raise ParameterError(
                f"source: {shown(self.path)} was saved with {arg('halo_hops', self.manifest.get('halo_hops'))}, "
                f"but {system} "
                f"needs the edges between parts. Save it with {arg('halo_hops', 1)}"
            )

    def parts(self) -> Iterator[VertexPartData]:
        """Yield the parts in order. Each is checked against the assignment."""
        for part in self.partition.parts:
            part.check_assignment(self.partition.assignment, self.partition.loads[part.index])
            yield part

    def refuse_foreign_types(self, torch: Any) -> None:
        """Refuse features of a dtype that torch does not have."""
        for entry in [self.manifest, *self.manifest.get("types", []), *self.manifest.get("relations", [])]:
            for name in ("features", "edge_features"):
                dtype = entry.get(name, {}).get("dtype", "int64")
                try:
                    torch.from_numpy(np.empty(0, dtype))
                except TypeError:
                    raise ParameterError(
                        f"source: {name} of {shown(self.path)} are {dtype}, which torch {torch.__version__} does not "
                        "have. Save them as float32 or int64"
                    ) from None

    @property
    def typed(self) -> bool:
        """Whether the graph has types."""
        return "types" in self.manifest

    def refuse_types(self, system: str) -> None:
        """Refuse a graph with types, for a system whose files of them fastpart does not write."""
        if self.typed:
            raise ParameterError(
                f"source: {shown(self.path)} holds a graph with types, which the export to {system} does not write. "
                "Use the export to DGL, PyG or WholeGraph"
            )


def in_edges(part: VertexPartData) -> int:
    """Return the number of in-edges of the inner vertices. They come before those of the halo."""
    return int(part.indptr[part.num_inner])


@contextmanager
def directory(
    out: StrPath,
    source: Source,
    marker: str,
    earlier: str,
    kinds: Collection[str] = (),
    overwrite: bool = False,
) -> Iterator[tuple[Path, Path]]:
    """Yield the target, and a directory to fill that replaces it in the end.

    ``marker`` is the JSON file in it that lists the others, and ``earlier`` a regular expression of those that versions
    wrote which kept no list. ``kinds`` are the data of the source that the export holds, by their entries of the
    manifest. With ``overwrite``, an earlier export that holds more is replaced, too.
    """
    parameters.flag("overwrite", overwrite)
    target = parameters.in_folder(parameters.path("out", out))
    if target.exists():
        given, wanted = source.path.resolve(), target.resolve()
        if given.is_relative_to(wanted) or wanted.is_relative_to(given):
            raise ParameterError(
                f"out: {shown(target)} is the input, contains it, or lies in it. Choose another name"
            )
    holds = held(source.manifest, kinds)
    with output_folder(target, marker, "an earlier export", holds, overwrite, earlier) as inside:
        yield target, inside
        content = json.loads((inside / marker).read_bytes())
        files = [name for name in below(inside) if name != marker]
        write_json(inside / marker, content | {"holds": holds, "files": files})


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write an object as indented JSON."""
    _core.write_file(file, (json.dumps(content, indent=1) + "\n").encode())


class Counter:
    """Reports the progress of a step with ``total`` units."""

    def __init__(self, progress: Progress | None, phase: str, total: int) -> None:
        self._progress, self._phase, self._total, self._done = progress, phase, total, 0
        self.advance(0)

    def advance(self, units: int) -> None:
        """Count units as done."""
        self._done += units
        if self._progress is not None:
            self._progress(self._phase, self._done, self._total)


def missing(system: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error for a library that is not installed."""
    extra = "dgl" if error.name == "dgl" else "train"
    return ModuleNotFoundError(
        f"the export to {system} needs {error.name}, which is not installed: pip install 'fastpart[{extra}]'",
        name=error.name,
    )


def torch_for(system: str, source: Source) -> Any:
    """Return torch. Refuse features of a dtype that it lacks."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing(system, error) from None
    source.refuse_foreign_types(torch)
    return torch


def require(system: str) -> None:
    """Refuse an export whose library is not installed, before what is exported is made."""
    library = {"dgl": "dgl", "glt": "torch", "pyg": "torch"}.get(system)
    if library is not None and find_spec(library) is None:
        raise missing(system, ModuleNotFoundError(name=library))


def failed(file: Path, library: str) -> OSError:
    """Return the error for a library that could not write and does not say why."""
    return OSError(errno.EIO, f"{library} could not write the whole file. Is the disk full?", str(file))


def tensor(torch: Any, array: Array) -> Any:
    """Return a tensor over an array without a copy. Do not write to it: the array may be mapped read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(array)


class PartOrder:
    """New ids: vertices by part, then by old id; edges by part of their destination, then by destination and record.

    The old ids lie in ``orig_nids.npy`` and ``orig_eids.npy`` of the export (int64, row = new id).

    Attributes
    ----------
    vertices, edges : numpy.ndarray
        First new id of each part, int64, of length k + 1.
    """

    def __init__(self, source: Source, inside: Path, edge_counts: list[int]) -> None:
        self._partition = source.partition
        self.vertices: Array = np.concatenate(([0], np.cumsum(source.partition.loads)))
        self.edges: Array = np.concatenate(([0], np.cumsum(edge_counts, dtype=np.int64)))
        self._orig_eids = inside / "orig_eids.npy"
        _begin_map(self._orig_eids, self.edges[-1])
        orig_nids = inside / "orig_nids.npy"
        _begin_map(orig_nids, self.vertices[-1])
        for part in source.parts():
            append(orig_nids, part.inner)
        self._orig_nids: Array = np.load(orig_nids, mmap_mode="r")

    def add_edges(self, edge_ids: Array) -> None:
        """Write the old ids of the edges of the next part."""
        append(self._orig_eids, edge_ids)

    def sources(self, part: VertexPartData, edges: int) -> Array:
        """Return the local sources of the in-edges of the inner vertices, int64."""
        indices: Array = part.indices[:edges].astype(np.int64)
        if edges and indices.max() >= part.num_inner + part.halo_sizes[0]:
            raise GraphFormatError(f"{self._name(part)}: an inner vertex has an in-edge from two hops away")
        return indices

    def new_ids(self, part: VertexPartData) -> tuple[Array, Array]:
        """Return the new ids of the inner vertices and their neighbours, and the parts that own them."""
        inner, halo = part.num_inner, part.halo[: part.halo_sizes[0]]
        if len(halo) and not 0 <= halo.min() <= halo.max() < len(self._partition):
            raise GraphFormatError(f"{self._name(part)}: vertices.npy holds an id outside 0..n-1")
        owners = np.full(inner + len(halo), part.index)
        owners[inner:] = self._partition.assignment[halo]
        ids = np.arange(len(owners)) + self.vertices[part.index]
        by_owner = inner + np.argsort(owners[inner:], kind="stable")
        bounds = np.searchsorted(owners[by_owner], np.arange(self._partition.k + 1))
        for owner in np.flatnonzero(np.diff(bounds)):
            those = by_owner[bounds[owner] : bounds[owner + 1]]
            first, end = self.vertices[owner : owner + 2]
            ids[those] = first + np.searchsorted(self._orig_nids[first:end], part.vertices[those])
        return ids, owners

    def _name(self, part: VertexPartData) -> str:
        return shown((self._partition.folder or Path()) / part_name(part.index))


def _begin_map(file: Path, length: int) -> None:
    """Write the header of a .npy file of ``length`` int64."""
    header = {"descr": "<i8", "fortran_order": False, "shape": (int(length),)}
    with file.open("wb") as opened:
        np.lib.format.write_array_header_1_0(opened, header)


def append(file: Path, rows: Array) -> None:
    """Append the bytes of an array to a file."""
    with named(file), file.open("ab") as opened:
        opened.write(np.ascontiguousarray(rows).data)


BY_ID = r"label\.pt|(train|val|test)-partitions/partition\d+\.pt"
"""Regular expression of the files for which the user's ids count, in both formats."""


class WholeGraph:
    """The parts of all vertices and edges and, of a graph without types, the labels and splits of PyG's examples.

    The arrays of all edges and of all labels are mapped. In memory they would exceed the largest part.
    """

    def __init__(self, torch: Any, source: Source, inside: Path) -> None:
        self._torch = torch
        self._partition, self._inside = source.partition, inside
        self._owners = {of: scratch(inside, of.num_ids) for of in edge_types(source.partition)}
        self._typed = source.typed
        self._labels: Array | None = None
        if "labels" in source.manifest:
            labels = source.partition.parts[0].labels
            self._labels = scratch(inside, len(source.partition), labels.shape[1:], labels.dtype)

    def add(self, part: VertexPartData, edge_ids: Mapping[str, Array]) -> None:
        """Take over a part with the ids of the in-edges of each relation, and write its splits."""
        for of, owners in self._owners.items():
            owners[edge_ids[of.name]] = part.index
        if self._typed:
            return
        if self._labels is not None:
            self._labels[part.inner] = part.labels
        for name in MASKS:
            mask = getattr(part, name)
            if mask is not None:
                folder = self._inside / f"{name}-partitions"
                folder.mkdir(exist_ok=True)
                file = folder / f"partition{part.index}.pt"
                save(self._torch, file, self._torch.from_numpy(part.inner[mask]))

    def finish(self, nodes: str, edges: str) -> None:
        """Write the parts of the vertices, the parts of the edges, and the labels.

        In a graph with types, the names of the files have ``{}`` in the place of the type or the relation.
        """
        assignment = self._partition.assignment.astype(np.int64)
        arrays = {
            nodes.format(each.name): assignment[each.first : each.range.stop]
            for each in vertex_types(self._partition)
        }
        arrays |= {edges.format("__".join(key_of(of))): owners for of, owners in self._owners.items()}
        if self._labels is not None:
            arrays["label.pt"] = self._labels
        for name, array in arrays.items():
            file = self._inside / name
            file.parent.mkdir(exist_ok=True)
            save(self._torch, file, self._torch.from_numpy(array))


def edge_ids_within(of: RelationData) -> Array:
    """Return the ids within a relation of its in-edges of inner vertices."""
    return of.type.ids_within(of.edge_ids[: of.num_of_inner], int(of._manifest["m"]))


def in_coo(part: VertexPartData, of: RelationData) -> tuple[Array, Array]:
    """Return the sources and destinations of the in-edges of a relation of inner vertices, by ids in the types."""
    targets, counts, sources = in_edges_of(part, of)
    return sources, np.repeat(targets, counts)


def scratch(inside: Path, length: int, row: tuple[int, ...] = (), dtype: npt.DTypeLike = np.int64) -> Array:
    """Return an array in a nameless file. It is filled with -1, or with 0 if its type is no signed integer."""
    shape, dtype = (length, *row), np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    with named(inside), tempfile.TemporaryFile(dir=inside) as file:
        # Without this, writing to the map would kill the process when the disk is full.
        allocate(file.fileno(), size)
        array: Array = np.memmap(file, dtype, "r+", shape=shape)
        if dtype.kind == "i":
            array[:] = -1
        return array


def save(torch: Any, file: Path, content: Any) -> None:
    """Write one object as ``torch.save`` does."""
    try:
        with named(file), file.open("wb") as opened:
            torch.save(content, opened)
    except RuntimeError:  # how torch reports a failed write
        raise failed(file, "torch") from None


def tensors(torch: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return tensors over arrays, without copies."""
    return {name: tensor(torch, array) for name, array in arrays.items()}
