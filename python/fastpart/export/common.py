"""Code that the exports share: the directories they read and replace, and tensors over mapped arrays."""

from __future__ import annotations

import errno
import json
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.folders import below
from ..core.outputs import Owner, held, replaceable
from ..core.parameters import Progress, StrPath, shown
from ..errors import ParameterError, arg, code
from ..partitions.partition import PartitionSource, VertexPartition, directory_of
from ..partitions.parts import VertexPartData
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
    with Owner(target):
        owned = replaceable(target, marker, earlier, "an earlier export", holds, overwrite)
        atomic = _core.AtomicDir(target, owned)
        try:
            inside = Path(atomic.path)
            yield target, inside
            content = json.loads((inside / marker).read_bytes())
            files = [name for name in below(inside) if name != marker]
            write_json(inside / marker, content | {"holds": holds, "files": files})
            atomic.commit()
        finally:
            atomic.discard()


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
