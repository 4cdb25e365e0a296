"""Exact outputs of a network over a typed graph for the vertices of its target, from whole neighbourhoods.

A :class:`~.models.TypedNetwork` is computed layer by layer: the outputs of a layer for all vertices of the types that
the next one reads go to files, one for each part and type, and the next layer gathers the rows that it needs. In memory
is one block of vertices of a type with its neighbours. So graphs and features may be larger than memory. If few outputs
are wanted, a layer computes only the vertices that the next one needs. Any other network is computed for blocks of
wanted vertices with all their hops. See :mod:`.inference`, which does the same for graphs without types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .. import _core
from ..loading import TypedBatch
from ..loading.edge_rows import EdgeFeatures
from ..loading.fetching import Fetching, NodeFetching
from ..loading.remote import RowFiles as PartRows
from ..loading.remote import exchange_of
from ..loading.rows.saved import RowFiles
from ..partitions.parts import VertexPartData
from ..partitions.seeds import rank_of_part
from ..partitions.typed_parts import TypeData
from ..partitions.types import of_type
from .blocks import Block, Blocks, VertexMask, piece
from .graphs.typed_rows import TypedRows
from .inference import EDGES, FEW, ExactOutputs, Fits, Outputs, numbers_of
from .learned_rows import TypeVertices
from .models import TypedNetwork, takes_edge_attr
from .models.typed.network import types_by_layer
from .ranks import barrier, largest, total, world_size
from .typed_data import TypedDataset

LearnedPart = Callable[[str, int], npt.NDArray[Any]]
"""Returns the learned rows of a type in a part of this process."""

Masks = Mapping[str, VertexMask | None]
"""By type: the vertices of each part that a layer has to compute. None: all."""

Rows = dict[str, _core.Features | None]
"""By type: where the inputs of a layer are. None if no part here has any."""


class InEdgesOfType:
    """The inner vertices of a type in a part, and where the in-edges of each begin."""

    def __init__(self, part: VertexPartData, of: VertexPartData | TypeData) -> None:
        self._part, self._first, self.num_inner = part, of.first_inner, of.num_inner

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """Where the in-edges of each vertex begin, and where those of the last one end."""
        return self._part.indptr[self._first : self._first + self.num_inner + 1]


class TypedInference(ExactOutputs):
    """The outputs of networks for the vertices of the target.

    Parameters
    ----------
    dataset : TypedDataset
        The graph.
    parts, folder, layers, fits
        As in :class:`~.inference.Inference`.
    fetching : NodeFetching, optional
        Messages to processes that have other features. Default: all are in files here.
    free_bytes : int
        Without effect. A network over types reads no sums from files.
    seconds : float
        Longest time to wait for another process.
    """

    def __init__(
        self,
        dataset: TypedDataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: NodeFetching | None = None,
        fits: Fits | None = None,
        free_bytes: int = 0,
        seconds: float = 1800,
    ) -> None:
        partition, self._task = dataset.partition, dataset.task
        self._numbers = {name: number for number, name in enumerate(self._task.types)}
        self._vertices = {name: TypeVertices(partition, name) for name in self._task.types}
        self._parts = {name: of_type(partition, name) for name in self._task.types}
        self._blocks = {
            name: Blocks(
                [InEdgesOfType(*both) for both in zip(partition.parts, of, strict=True)],
                parts,
                self._vertices[name].firsts,
            )
            for name, of in self._parts.items()
        }
        super().__init__(dataset, self._blocks[dataset.target], layers, fits)
        self._folder, self._partition = folder, partition
        self._hop = self._sampler(1)
        self._fetching = self._messages(fetching, seconds)

    def _sampler(self, hops: int, edge_ids: bool = False) -> _core.Sampler[_core.TypedSampledBatch]:
        fanouts = [[-1] * len(self._task.edge_types)] * hops
        return _core.Sampler(
            self._partition._topology, fanouts, types=self._partition._types, merged=True, edge_ids=edge_ids
        )

    @cached_property
    def _edge_features(self) -> EdgeFeatures:
        return EdgeFeatures(self._partition)

    def _messages(self, fetching: NodeFetching | None, seconds: float) -> dict[str, Fetching]:
        """Return the messages about the rows of each type. Empty if all are in files here."""
        if fetching is None or not fetching.by_messages:
            return {}
        known = {name: each for name, each in fetching.of_type.items() if each.by_messages}
        away = np.zeros(self._partition.k, bool)
        away[next(iter(known.values())).away] = True
        owners = rank_of_part(self._partition.k, world_size())
        for name, vertices in self._vertices.items():
            if name not in known:
                exchange = exchange_of(vertices.starts, owners, world_size(), seconds)
                known[name] = Fetching(None, vertices.starts, away, exchange)
        return known

    @torch.no_grad()
    def outputs(
        self, network: nn.Module, wanted: VertexMask | None = None, layers: int | None = None
    ) -> Iterator[Outputs]:
        """Yield a part of this process, some inner vertices of the target by their place, and their outputs."""
        network.eval()
        if not isinstance(network, TypedNetwork):
            yield from self._at_once(network, wanted)
            return
        for _, found in self.outputs_of_types(network, {self._task.target: wanted}, layers):
            yield found

    @torch.no_grad()
    def outputs_of_types(
        self, network: TypedNetwork, wanted: Masks, layers: int | None = None
    ) -> Iterator[tuple[str, Outputs]]:
        """Yield the outputs of some of the types that a network returns, with the name of the type.

        ``wanted`` has the wanted vertices of each.
        """
        network.eval()
        depth = len(network.layers) if layers is None else layers
        needed = self._pushed_back(wanted, depth)
        rows, files = self._inputs(network.types[0]), list[Path]()
        for index, masks in enumerate(needed[:-1]):
            for name, mask in masks.items():
                files += self._save(index, name, self._layer(network, index, rows, name, mask))
            barrier()
            rows = {name: self._opened(name, f"layer-{index}") for name in masks}
        for name, mask in wanted.items():
            for found in self._layer(network, depth - 1, rows, name, mask):
                yield name, found
        barrier()
        for file in files:
            file.unlink()

    # What each layer has to compute.

    def _pushed_back(self, wanted: Masks, depth: int) -> list[Masks]:
        """Return the vertices that each layer has to compute, the first layer first."""
        needed: list[Masks] = [wanted]
        for names in reversed(types_by_layer(self._task, depth)[1:-1]):
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
        reached = {name: np.zeros(int(self._vertices[name].starts[-1]), np.uint8) for name in every}
        for name, mask in masks.items():
            for number, block in self._split(name, mask, 0):
                sample = self._hop.sample(self._blocks[name].rows(number, block))
                for source, found in reached.items():
                    found[sample.rows[self._numbers[source]]] = 1
        return {name: self._mask(name, largest(torch.from_numpy(found))) for name, found in reached.items()}

    def _mask(self, name: str, reached: Tensor) -> VertexMask:
        starts, mask = self._vertices[name].starts, reached.numpy().view(np.bool_)
        return lambda part: mask[starts[part] : starts[part + 1]]

    def _split(self, name: str, wanted: VertexMask | None, width: int) -> Iterator[Block]:
        """Yield the wanted vertices of a type in blocks. An in-edge takes so many numbers in memory."""
        most = max(1, min(EDGES, piece(4 * width)))
        return self._blocks[name].split(wanted, lambda degrees: degrees + 1, most)

    # Rows in files.

    def put_inputs(self, of_part: LearnedPart) -> None:
        """Write the learned rows of the types without features. All processes call it before outputs."""
        written = RowFiles()
        for name in self._task.learned:
            for part in self._own.parts:
                file = self._file(name, "inputs", part)
                if file is not None:
                    rows = of_part(name, part)
                    written.put(file, len(rows), slice(None), rows)
        written.flush()
        barrier()

    def _inputs(self, names: Iterable[str]) -> Rows:
        """Return the features, or the learned rows, of some types."""
        learned = self._task.learned
        return {
            name: self._opened(name, "inputs") if name in learned else self._features(name) for name in names
        }

    def _features(self, name: str) -> _core.Features | None:
        files = PartRows(self._parts[name], "features", self._topology, self._vertices[name].starts)
        here = files.are_here if self._fetching else np.ones(self._partition.k, bool)
        if self._fetching:
            here[self._fetching[name].away] = False
        rows, coding = files.opened(here), self._parts[name][0].coding("features")
        return rows if rows is None or coding is None else rows.decoded(coding.core)

    def _file(self, name: str, what: str, part: int) -> Path | None:
        """Return the file of rows of a type in a part, None if it has no vertices there."""
        there = self._parts[name][part].num_inner
        return self._folder / f"{what}-{self._numbers[name]}-{part}.npy" if there else None

    def _opened(self, name: str, what: str) -> _core.Features | None:
        """Map the files of rows of a type that are here. None if there are none."""
        files = [self._file(name, what, part) for part in range(self._partition.k)]
        here = [file if file is not None and file.exists() else None for file in files]
        for part in self._fetching[name].away if self._fetching else []:
            here[part] = None
        starts = self._vertices[name].starts
        return _core.Features(here, self._topology, starts=starts) if any(here) else None

    def _save(self, index: int, name: str, outputs: Iterator[Outputs]) -> list[Path]:
        """Write the outputs of a layer for vertices of a type. What is not wanted takes no space on the disk."""
        files = RowFiles()
        for part, vertices, h in outputs:
            file = self._file(name, f"layer-{index}", part)
            assert file is not None
            files.put(file, self._parts[name][part].num_inner, vertices, h.float().numpy())
        files.flush()
        return files.paths

    # Blocks.

    def _layer(
        self, network: TypedNetwork, index: int, rows: Rows, name: str, wanted: VertexMask | None
    ) -> Iterator[Outputs]:
        """Yield the outputs of one layer for vertices of a type, given its inputs for all vertices."""
        widths = network.input_widths if index == 0 else dict.fromkeys(self._task.types, network.width)
        read = {each: widths[each] for each in network.types[index]}
        width = max(read.values()) + network.width_of_edges(index)
        hop, blocks = self._sampler(1, takes_edge_attr(network)), self._split(name, wanted, width)
        for number, block, batch, x in self._read(hop, name, rows, read, blocks, numbers_of(network)):
            (graph,) = TypedRows.by_layer(batch, next(iter(x.values())).device)
            outputs = network.layer(index, graph, x)[name].cpu()
            del batch, graph, x  # the memory of this block is that of the next one
            yield number, block, outputs

    def _at_once(self, network: nn.Module, wanted: VertexMask | None) -> Iterator[Outputs]:
        """Yield the outputs of a network without layers of its own."""
        target, names = self._task.target, self._task.types
        hops = self._sampler(self._layers, takes_edge_attr(network))

        def sizes(rows: npt.NDArray[np.uint32]) -> tuple[list[int], list[int]]:
            sample = hops.sample(rows)
            return _sums(sample.num_sampled_nodes), _sums(sample.num_sampled_edges)

        blocks = [block for number in self._own.parts for block in self._fitting(number, wanted, sizes)]
        rows, where = self._inputs(names), numbers_of(network)
        widths = {name: self._task.widths[name] or _width_of(rows[name]) for name in names}
        for number, block, batch, x in self._read(hops, target, rows, widths, blocks, where):
            graphs = TypedRows.by_layer(batch, next(iter(x.values())).device)
            yield number, block, network(graphs, x).cpu()

    def _read(
        self,
        sampler: _core.Sampler[_core.TypedSampledBatch],
        name: str,
        rows: Rows,
        widths: Mapping[str, int],
        blocks: Iterable[Block],
        where: Mapping[str, Any],
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], TypedBatch, dict[str, Tensor]]]:
        """Yield the blocks that are not empty, with their in-edges and one row per source of each type."""
        if self._fetching:
            blocks = list(blocks)
            most = int(largest(torch.tensor(len(blocks))))
            blocks += [(0, np.empty(0, np.int64))] * (most - len(blocks))
        features = [rows.get(each) for each in self._task.types]
        for number, block in blocks:
            sample = sampler.sample(self._blocks[name].rows(number, block), features=features)
            x = {}
            for each, width in widths.items():
                ids, found = sample.rows[self._numbers[each]], sample.features[self._numbers[each]]
                if found is None:
                    found = np.empty((len(ids), width), np.float32)
                if self._fetching:
                    found = self._fetching[each].complete(ids, found, rows.get(each))
                x[each] = torch.from_numpy(found).to(**where)
            if len(block):
                yield number, block, self._batch(name, sample, len(block)), x

    def _batch(self, name: str, sample: _core.TypedSampledBatch, size: int) -> TypedBatch:
        """Return a sample of so many vertices of a type as a batch without features."""
        types, relations = self._task.types, self._task.edge_types
        edge_attr = {} if sample.e_id is None else self._edge_features.of_sample(sample)
        indptr, indices = ([torch.from_numpy(each) for each in of] for of in (sample.indptr, sample.indices))
        return TypedBatch(
            input_type=name,
            x_dict={},
            y=None,
            n_id_dict=dict(zip(types, map(torch.from_numpy, sample.n_id), strict=True)),
            indptr_dict=dict(zip(relations, indptr, strict=True)),
            indices_dict=dict(zip(relations, indices, strict=True)),
            seed_time_dict={},
            e_id_dict={},
            edge_attr_dict={key: torch.from_numpy(rows) for key, rows in edge_attr.items()},
            rows_dict=dict(zip(types, sample.rows, strict=True)),
            num_sampled_nodes_dict=dict(zip(types, sample.num_sampled_nodes, strict=True)),
            num_sampled_edges_dict=dict(zip(relations, sample.num_sampled_edges, strict=True)),
            input_id=torch.arange(size),
            batch_size=size,
            global_size=max(size, 1),
            seed=0,
            epoch=0,
            step=0,
        )


def _sums(counts: Iterable[Iterable[int]]) -> list[int]:
    """Return the numbers of each hop, of all types or relations together."""
    return [sum(of_hop) for of_hop in zip(*counts, strict=True)]


def _width_of(rows: _core.Features | None) -> int:
    return 0 if rows is None else int(rows.row_shape[0])
