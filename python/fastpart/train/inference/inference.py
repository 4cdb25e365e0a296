"""Exact outputs of a network for the vertices of a vertex partition, from whole neighbourhoods.

A graph without types has one type and one relation (:mod:`fastpart.partitions.types`), so graphs of both kinds are
computed in the same way.

A :class:`~.models.Network` or :class:`~.models.TypedNetwork` is computed layer by layer. The outputs of a layer, of all
vertices of the types that the next one reads, go to files, one for each part and type, 4 bytes per vertex and number.
The next layer gathers the rows that it needs (:mod:`.hops`). In memory is one block of vertices of a type with its
neighbours, of at most 64 MB unless a single vertex has more. So graphs and features may be larger than memory. A layer
that takes no more than a mean of the neighbours has it added up by the core, straight from the files (:mod:`.means`).
If few outputs are wanted, a layer computes only the vertices that the next one needs: a byte per vertex says which. The
others take no space in the files. Any other network is computed for blocks of wanted vertices with all their hops,
which are halved until the memory holds them.

Several processes share the work: each takes the parts that it owns, and waits for the others after each layer. Rows of
parts on other machines come by messages. Then all processes read as many blocks, of which some are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ... import _core
from ...errors import MemoryBudgetError
from ...loading.fetching import Fetching
from ...loading.remote import exchange_of
from ...loading.rows.sources import RowFiles
from ...partitions.part_rows import TypeData
from ...partitions.parts import VertexPartData
from ...partitions.seeds import TypeVertices, rank_of_part
from ...partitions.types import ONLY_TYPE, of_type, type_names
from ..data.dataset import SPLITS, Dataset
from ..graphs.kernels import CPU
from ..graphs.neighbourhood import inverse_roots
from ..graphs.rows import Means, ScaledMeans, alone
from ..learning.metrics import Metrics, Scores
from ..models import Network, TypedNetwork, takes_edge_attr
from ..ranks import barrier, largest, total, world_size
from .hops import Block, Blocks, Hops, VertexMask, Vertices, piece
from .means import MeansOfRows, StoredRows

Outputs = tuple[int, Vertices, Tensor]
"""A part, some of its vertices of a type by their place, and one row for each."""

Fits = Callable[[Sequence[int], Sequence[int]], bool]
"""Returns whether the memory holds a block with so many nodes and in-edges in each hop."""

LearnedPart = Callable[[str, int], npt.NDArray[Any]]
"""Returns the learned rows of a type in a part of this process."""

Masks = Mapping[str, VertexMask | None]
"""By type: the vertices of each part that a layer has to compute. None: all."""

InputRows = Mapping[str, _core.Features | None]
"""By type: where the inputs of a layer are. None if no process has any here."""

FEW = 4
"""One in so many vertices is few: their in-edges do not lead to nearly all others. Fewer vertices are computed then."""

EDGES = 1 << 19
"""In-edges of a block, at most about. A vertex with more is a block of its own."""


class InEdgesOfType:
    """The inner vertices of a type in a part, and where the in-edges of each begin."""

    def __init__(self, part: VertexPartData, of: VertexPartData | TypeData) -> None:
        self._part, self._first, self.num_inner = part, of.first_inner, of.num_inner

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """Where the in-edges of each vertex begin, and where those of the last one end."""
        return self._part.indptr[self._first : self._first + self.num_inner + 1]


class Inference:
    """The outputs of networks over a dataset, and their scores.

    Parameters
    ----------
    dataset : Dataset
        The graph.
    parts : list of int
        The parts of this process. Together the processes have all of them, each once.
    folder : path
        For files of hidden layers. All processes see it.
    layers : int
        Number of hops that the network looks at, if it has no layers of its own.
    fetching : optional
        Messages to processes that have other features. Default: all are in files here.
    fits : callable, optional
        Whether the memory holds a block of a network without layers. Default: any.
    free_bytes : int
        Memory for rows that are on the disk: for sums, or for columns of them. The more, the less is read. A network
        over types reads no sums from files.
    edge_fetching : Fetching, optional
        Messages to processes that have other features of edges.
    seconds : float
        Longest time to wait for another process.
    """

    def __init__(
        self,
        dataset: Dataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: Any = None,
        fits: Fits | None = None,
        free_bytes: int = 0,
        edge_fetching: Fetching | None = None,
        seconds: float = 1800,
    ) -> None:
        partition = self._partition = dataset.partition
        self._dataset, self._task, self._topology = dataset, dataset.task, dataset.topology
        self._layers, self._fits, self._folder = layers, fits, folder
        self._names = type_names(partition)
        self._vertices = {name: TypeVertices(partition, name) for name in self._names}
        self._parts = {name: of_type(partition, name) for name in self._names}
        self._blocks = {
            name: Blocks(
                [InEdgesOfType(*both) for both in zip(partition.parts, of, strict=True)],
                parts,
                self._vertices[name].firsts,
            )
            for name, of in self._parts.items()
        }
        self._own, self._learned = self._blocks[self._task.target], self._task.learned
        self._fetching = self._messages(fetching, seconds)
        self._edge_fetching = edge_fetching if self._fetching else None
        self._away = next(iter(self._fetching.values())).away if self._fetching else ()
        self._codes: tuple[_core.Features, StoredRows] | None = None  # the features, if their files are coded
        self._known_hops: dict[tuple[int, bool, bool], Hops] = {}
        self._known_blocks: dict[int, tuple[Vertices, list[Block]]] = {}
        self._means = MeansOfRows(self._topology, partition.parts, self._own, folder, free_bytes)

    def _messages(self, fetching: Any, seconds: float) -> dict[str, Fetching]:
        """Return the messages about the rows of each type. Empty if all are in files here."""
        if fetching is None or not fetching.by_messages:
            return {}
        of_types: dict[str, Fetching] = getattr(fetching, "of_type", {ONLY_TYPE: fetching})
        known = {name: each for name, each in of_types.items() if each.by_messages}
        away = np.zeros(self._partition.k, bool)
        away[next(iter(known.values())).away] = True
        owners = rank_of_part(self._partition.k, world_size())
        for name, vertices in self._vertices.items():
            if name not in known:
                exchange = exchange_of(vertices.starts, owners, world_size(), seconds)
                known[name] = Fetching(None, vertices.starts, away, exchange)
        return known

    @torch.no_grad()
    def scores(
        self, network: nn.Module, metrics: Metrics | None = None, splits: tuple[str, ...] = SPLITS[1:]
    ) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user for each split, the same in all processes."""
        scores = Scores(self._dataset.task, metrics, splits)
        known = {part: self._known(part, splits) for part in self._own.parts}
        for part, vertices, logits in self.outputs(network, lambda part: np.any(known[part][1], axis=0)):
            labels, masks = known[part]
            for split, mask in zip(splits, masks, strict=True):
                those = torch.from_numpy(np.flatnonzero(mask[vertices]))
                scores.add(split, logits[those], labels[torch.from_numpy(vertices)[those]])
        return scores.of_all()

    def _known(self, part: int, splits: tuple[str, ...]) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Return the labels of a part, and for each split a mask of those that count."""
        data = self._dataset.partition.parts[part]
        masks = np.zeros((len(splits), self._dataset.labelled(data).num_inner), bool)
        for mask, ids in zip(masks, map(self._dataset.splits(data).get, splits), strict=True):
            mask[ids] = True
        return self._dataset.labels(data), masks

    @torch.no_grad()
    def outputs(
        self, network: nn.Module, wanted: VertexMask | None = None, layers: int | None = None
    ) -> Iterator[Outputs]:
        """Yield a part of this process, some of its vertices with labels by their place, and their outputs.

        Parameters
        ----------
        network : torch.nn.Module
            The network.
        wanted : callable, optional
            Returns the mask of the vertices of a part whose outputs are wanted. Default: all.
        layers : int, optional
            Number of layers, to get the outputs of a hidden one. Default: all.
        """
        network.eval()
        if not isinstance(network, Network | TypedNetwork):
            yield from self._at_once(network, wanted)
            return
        for _, found in self.outputs_of_types(network, {self._task.target: wanted}, layers):
            yield found

    @torch.no_grad()
    def outputs_of_types(
        self, network: Network | TypedNetwork, wanted: Masks, layers: int | None = None
    ) -> Iterator[tuple[str, Outputs]]:
        """Yield the outputs of some of the types that a network returns, with the name of the type.

        ``wanted`` has the wanted vertices of each.
        """
        network.eval()
        depth = len(network.layers) if layers is None else layers
        needed = self._pushed_back(wanted, depth)
        names = network.types[0] if isinstance(network, TypedNetwork) else self._names
        rows, some, files = self._inputs(names), False, list[Path]()
        for index, masks in enumerate(needed[:-1]):
            for name, mask in masks.items():
                outputs = self._layer(network, index, rows, name, mask, some)
                files += self._save(f"layer-{index}", name, outputs)
            self._done()
            rows = {name: self._opened(name, self._files(name, f"layer-{index}")) for name in masks}
            some = None not in masks.values()
        for name, mask in wanted.items():
            for found in self._layer(network, depth - 1, rows, name, mask, some):
                yield name, found
        self._done()
        for file in files:
            file.unlink()

    def _done(self) -> None:
        """Wait until all processes have computed a layer, and remove what it left."""
        barrier()
        self._means.clear()

    # The vertices that each layer has to compute.

    def _pushed_back(self, wanted: Masks, depth: int) -> list[Masks]:
        """Return the vertices that each layer has to compute, the first layer first."""
        needed: list[Masks] = [wanted]
        for names in reversed(self._task.types_by_layer(depth)[1:-1]):
            needed.insert(0, self._with_sources(needed[0], names))
        return needed

    def _with_sources(self, masks: Masks, names: Iterable[str]) -> Masks:
        """Return some vertices and the sources of their in-edges, found by all processes. None: nearly all vertices."""
        every: Masks = dict.fromkeys(names)
        own = sum(
            self._parts[name][part].num_inner if mask is None else int(np.count_nonzero(mask(part)))
            for name, mask in masks.items()
            for part in self._own.parts
        )
        if FEW * int(total(torch.tensor(own))) > self._topology.num_vertices:
            return every
        hop = self._hops(1, False)
        reached = {name: np.zeros(int(self._vertices[name].starts[-1]), np.uint8) for name in every}
        for name, mask in masks.items():
            for number, block in self._split(name, mask, 0):
                found = hop.sources(self._blocks[name].rows(number, block))
                for source, there in reached.items():
                    there[found[source]] = 1
        return {name: self._mask(name, largest(torch.from_numpy(there))) for name, there in reached.items()}

    def _mask(self, name: str, reached: Tensor) -> VertexMask:
        starts, mask = self._vertices[name].starts, reached.numpy().view(np.bool_)
        return lambda part: mask[starts[part] : starts[part + 1]]

    def _hops(self, count: int, edge_attr: bool, apart: bool = False) -> Hops:
        """Return what finds neighbours. If they are ``apart``, some may be in parts of other processes."""
        key = count, edge_attr, apart
        if key not in self._known_hops:
            exchange = self._edge_fetching if apart and edge_attr else None
            self._known_hops[key] = Hops(self._partition, count, edge_attr, self._away, exchange)
        return self._known_hops[key]

    def _split(self, name: str, wanted: VertexMask | None, width: int) -> Iterator[Block]:
        """Yield the wanted vertices of a type in blocks. An in-edge takes so many numbers in memory."""
        most = max(1, min(EDGES, piece(4 * width)))
        return self._blocks[name].split(
            wanted, lambda degrees: degrees + 1, most
        )  # and the row of the vertex

    # Rows in files.

    def put_inputs(self, of_part: LearnedPart) -> None:
        """Write the learned rows of the types without features. All processes call it before outputs."""
        written = RowFiles()
        for name in self._learned:
            for part in self._own.parts:
                file = self._file(name, "inputs", part)
                if file is not None:
                    rows = of_part(name, part)
                    written.put(file, len(rows), slice(None), rows)
        barrier()

    def _inputs(self, names: Iterable[str]) -> dict[str, _core.Features | None]:
        """Return the features, or the learned rows, of some types."""
        return {
            name: self._opened(name, self._files(name, "inputs"))
            if name in self._learned
            else self._features(name)
            for name in names
        }

    def _features(self, name: str) -> _core.Features | None:
        parts = self._parts[name]
        coding = parts[0].coding("features")
        rows = self._opened(
            name,
            [None if part in self._away else each._file("features.npy") for part, each in enumerate(parts)],
        )
        if rows is None or coding is None:
            return rows
        if name == ONLY_TYPE:
            self._codes = rows, StoredRows(self._topology.num_vertices, coding.width, coding)
        return rows.decoded(coding.core)

    def _file(self, name: str, what: str, part: int) -> Path | None:
        """Return the file of rows of a type in a part, None if it has no vertices there."""
        there = self._parts[name][part].num_inner
        return self._folder / f"{what}-{self._names.index(name)}-{part}.npy" if there else None

    def _files(self, name: str, what: str) -> list[Path | None]:
        """Return the files of rows of a type that processes have written."""
        files = (self._file(name, what, part) for part in range(self._partition.k))
        return [file if file is not None and file.exists() else None for file in files]

    def _opened(self, name: str, files: list[Path | None]) -> _core.Features | None:
        """Map the files of rows of a type that are here, one for each part. None if there are none."""
        for part in self._away:
            files[part] = None
        starts = self._vertices[name].starts if name else None
        return _core.Features(files, self._topology, starts=starts) if any(files) else None

    def _save(self, what: str, name: str, outputs: Iterator[Outputs]) -> list[Path]:
        """Write the outputs of a layer for vertices of a type. Other rows take no space on the disk."""
        files = RowFiles()
        for part, vertices, h in outputs:
            file = self._file(name, what, part)
            assert file is not None
            files.put(file, self._parts[name][part].num_inner, vertices, h.float().numpy())
        return files.paths

    # Blocks.

    def _widths(self, network: Network | TypedNetwork, index: int, rows: InputRows) -> dict[str, int]:
        """Return the width of the rows that a layer reads of each type."""
        if isinstance(network, Network):
            return {name: _width_of(rows[name]) for name in self._names}
        return {name: network.width if index else network.input_widths[name] for name in network.types[index]}

    def _layer(
        self,
        network: Network | TypedNetwork,
        index: int,
        rows: InputRows,
        name: str,
        wanted: VertexMask | None,
        some: bool,
    ) -> Iterator[Outputs]:
        """Yield the outputs of one layer for vertices of a type, given its inputs, of all vertices or only ``some``."""
        if isinstance(network, Network) and not some and self._by_means(network, index, rows[name]):
            yield from self._from_means(network, index, rows[name], wanted)
            return
        widths, where = self._widths(network, index, rows), numbers_of(network)
        blocks = self._split(name, wanted, max(widths.values()) + network.width_of_edges(index))
        hop = self._hops(1, takes_edge_attr(network))
        for number, block, (graph,), x in self._read(hop, name, rows, widths, blocks, where):
            found: Any = network.layer(index, graph, x)
            outputs = (found[name] if isinstance(network, TypedNetwork) else found).cpu()
            del graph, x, found  # the memory of this block is that of the next one
            yield number, block, outputs

    def _by_means(self, network: Network, index: int, rows: _core.Features | None) -> bool:
        """Return whether a layer can be computed without copies of the rows of neighbours, to the same precision."""
        known = not self._fetching and rows is not None and len(rows.row_shape) == 1 and rows.has_means
        takes = network.takes_means(index) or network.takes_propagated(index)
        return known and takes and numbers_of(network)["dtype"] == torch.float32

    def _from_means(
        self, network: Network, index: int, rows: Any, wanted: VertexMask | None
    ) -> Iterator[Outputs]:
        """Yield the outputs of a layer that takes a mean of the neighbours."""
        where, codes = numbers_of(network), None if index else self._codes
        stored = codes or (rows, StoredRows(self._topology.num_vertices, rows.row_shape[0]))
        known, weights = (ScaledMeans, self._roots()) if network.takes_propagated(index) else (Means, None)
        for number, block, own, means in self._means.of(rows, stored, wanted, weights):
            x, mean = torch.from_numpy(own).to(**where), torch.from_numpy(means).to(**where)
            degree = torch.from_numpy(self._topology.degrees_of(self._own.rows(number, block))).to(x.device)
            yield number, block, network.layer(index, known(x, mean, degree), x).cpu()

    def _roots(self) -> npt.NDArray[np.float32]:
        """Return the inverse roots of the degrees of all vertices plus 1, by row."""
        n = self._topology.num_vertices
        roots = np.empty(n, np.float32)
        for first in range(0, n, EDGES):
            rows = np.arange(first, min(first + EDGES, n), dtype=np.uint32)
            degree = torch.from_numpy(self._topology.degrees_of(rows))
            roots[first : first + len(rows)] = inverse_roots(degree, torch.float32)[:, 0].numpy()
        return roots

    def _at_once(self, network: nn.Module, wanted: VertexMask | None) -> Iterator[Outputs]:
        """Yield the outputs of a network without layers of its own."""
        hops = self._hops(self._layers, takes_edge_attr(network), apart=True)
        blocks = [block for number in self._own.parts for block in self._fitting(number, wanted, hops)]
        rows, where = self._inputs(self._names), numbers_of(network)
        of_task = self._task.input_widths(0)
        widths = {name: _width_of(rows[name]) or of_task[name] for name in self._names}
        for number, block, graphs, x in self._read(hops, self._task.target, rows, widths, blocks, where):
            yield number, block, network(graphs, x).cpu()

    def _fitting(self, part: int, wanted: VertexMask | None, hops: Hops) -> list[Block]:
        """Return blocks of the wanted vertices of a part that the memory holds with all their hops. They are kept."""
        vertices = self._own.vertices(part, wanted)
        known = self._known_blocks.get(part)
        if known is None or not np.array_equal(known[0], vertices):
            known = self._known_blocks[part] = vertices, list(self._halved(part, vertices, hops))
        return known[1]

    def _halved(self, part: int, vertices: Vertices, hops: Hops) -> Iterator[Block]:
        if self._fits is None or not len(vertices):
            yield part, vertices
            return
        rows, half = self._own.rows(part, vertices), len(vertices) // 2
        if int(self._own.degrees(part, vertices).sum()) > EDGES and half:
            fits = False  # it is not sampled, which would take memory, too
        else:
            nodes, edges = hops.sizes(rows)
            fits = self._fits(nodes, edges)
        if fits:
            yield part, vertices
        elif not half:
            raise MemoryBudgetError(
                f"model: vertex {self._topology.ids_of(rows)[0]} reaches {sum(nodes):,} vertices over {sum(edges):,} "
                f"edges in {self._layers} hops, which the memory does not hold. Raise memory_limit, or use a network "
                "with layers, as of fastpart.train.models, which is computed layer by layer"
            )
        else:
            yield from self._halved(part, vertices[:half], hops)
            yield from self._halved(part, vertices[half:], hops)

    def _read(
        self,
        hops: Hops,
        name: str,
        rows: InputRows,
        widths: Mapping[str, int],
        blocks: Iterable[Block],
        where: Mapping[str, Any],
    ) -> Iterator[tuple[int, Vertices, list[Any], Any]]:
        """Yield the blocks that are not empty, with their in-edges for each layer, and one row per source.

        Networks over types get the rows of the types that have ``widths``.
        """
        if self._fetching:
            blocks = list(blocks)
            most = int(largest(torch.tensor(len(blocks))))
            blocks += [(0, np.empty(0, np.int64))] * (most - len(blocks))
        for number, block in blocks:
            hood = hops.of(self._blocks[name].rows(number, block), rows, where.get("device", CPU))
            x = {}
            for each, width in widths.items():
                found = hood.features[each]
                if found is None:
                    found = np.empty((len(hood.rows[each]), width), np.float32)
                if self._fetching:
                    found = self._fetching[each].complete(hood.rows[each], found, rows.get(each))
                x[each] = torch.from_numpy(found).to(**where)
            graphs = hood.graphs
            del hood, found
            if len(block):
                yield number, block, graphs, alone(x)
            del graphs, x


def _width_of(rows: _core.Features | None) -> int:
    return 0 if rows is None else int(rows.row_shape[0])


def numbers_of(network: nn.Module) -> dict[str, Any]:
    """Return type and device of the weights."""
    for weight in network.parameters():
        return {"dtype": weight.dtype, "device": weight.device}
    return {"dtype": torch.float32}
