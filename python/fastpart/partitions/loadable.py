"""Mini-batches from a vertex partition of a directory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .. import _core
from ..core import parameters
from ..core.calls import called_well
from ..core.options import with_options
from ..core.parameters import CacheCriterion, StrPath
from ..core.protocols import MiniBatches
from ..core.shared_parameters import with_parameters
from ..errors import ParameterError, arg, code
from .loader_options import (
    LINK_DEFAULTS,
    LOADER_DEFAULTS,
    PLAN_DEFAULTS,
    EdgeKey,
    Fanouts,
    LinkOptions,
    LoaderOptions,
    PlanOptions,
)
from .parts import Parts, time_files
from .typed_parts import typed_of

if TYPE_CHECKING:
    from .plan import Plan


class Loadable:
    """The base of :class:`fastpart.VertexPartition` that has :meth:`loader`."""

    folder: Path | None
    if TYPE_CHECKING:

        @property
        def parts(self) -> Parts[Any]: ...  # noqa: D102

    @property
    def _partition(self) -> Any:
        """The object itself, for what takes a VertexPartition. No other class has this base."""
        return self

    def refuse_without_edges(self, name: str = "partition") -> None:
        """Raise an error that begins with ``name`` unless the parts are stored with all of their in-edges."""
        if self.parts._manifest.get("halo_hops", 0) < 1:
            raise ParameterError(
                f"{name}: {parameters.shown(self.folder or '')} lacks the edges between parts. Save the partition with "
                f"{arg('halo_hops', 1)}"
            )

    def refuse_types(self, name: str, what: str) -> None:
        """Raise an error that begins with ``name`` if the graph has types, which ``what`` does not tell apart."""
        if self.is_typed:
            raise ParameterError(
                f"{name}: {parameters.shown(self.folder or '')} holds a graph with types, and {what} one type of "
                "vertices with one kind of features. Hand the parts over with "
                f"{code('fastpart.export.dgl', '`fastpart export dgl`')} or "
                f"{code('fastpart.export.pyg', '`fastpart export pyg`')}, which keep the types"
            )

    @property
    def is_typed(self) -> bool:
        """Whether the graph has types."""
        return "types" in self.parts._manifest

    @cached_property
    def _topology(self) -> _core.Topology:
        """The in-edges of all parts, mapped."""
        return _core.Topology([part._folder for part in self.parts])

    @cached_property
    def _types(self) -> _core.Types:
        """The types of the vertices and in-edges of all parts."""
        typed = typed_of(self.parts._manifest)
        assert typed is not None
        numbers = {each.name: number for number, each in enumerate(typed.types)}
        return _core.Types(
            self._topology,
            [part._folder for part in self.parts],
            [each.first for each in typed.types],
            [(numbers[each.source], numbers[each.target]) for each in typed.edge_types],
        )

    @cached_property
    def _times(self) -> _core.Times:
        """When vertices and edges came to be, mapped."""
        vertices, edges = time_files(self.parts)
        if not (any(vertices) or any(edges)):
            raise ParameterError(
                f"temporal: {parameters.shown(self.folder or '')} holds no times. Save the partition with "
                f"{arg('edge_times')} "
                f"or {arg('times')}"
            )
        return _core.Times(self._topology, vertices, edges, self._types if self.is_typed else None)

    @partial(with_parameters, defaults=LOADER_DEFAULTS)
    def loader(
        self,
        vertices: Any = "train",
        *,
        fanouts: Fanouts,
        input: str | None = None,
        plan: StrPath | None = None,
        **given: Unpack[LoaderOptions],
    ) -> MiniBatches:
        """Return the mini-batches of this rank, for any model of torch or PyG.

        Every step has a global batch of ``batch_size`` vertices. A rank takes those that its parts hold, so that it
        reads mostly their features and in-edges. All ranks make the same number of steps. A rank may have no seed in a
        step. Then it gets an empty batch.

        Parameters
        ----------
        vertices : {"train", "val", "test"} or array
            The seeds: the labelled vertices of a split, or ids of vertices, or a bool mask of length n. In a graph with
            types they are of one type.
        fanouts : sequence of int, or mapping of them
            In-edges to sample per vertex in each hop. -1 takes all. In a graph with types, so many of each relation.
            A mapping has a sequence for each relation, by its name or as ``("paper", "cites", "paper")``. It leaves out
            those that are not sampled.
        input : str, optional
            The type of the seeds in a graph with types. Default: the only one with this split, or that of the ids.
        plan : Plan or path, optional
            A plan of these batches, from :meth:`plan`, or its folder: features are read from what it has packed. It
            never changes a batch. Epochs beyond the plan are packed as many at a time.

        Returns
        -------
        fastpart.loading.Loader or fastpart.loading.TypedLoader
            Iterating over it gives the batches of an epoch, each a :class:`fastpart.loading.Batch`, or a
            :class:`fastpart.loading.TypedBatch` for a graph with types. Iterating again gives the next epoch.

        Raises
        ------
        FastpartError
            The partition does not come from a directory, or the directory was saved without ``graph=``.
        ParameterError
            There is no such split, a parameter is out of its range, or the directory has ``halo_hops=0``.
        GraphFormatError
            The directory is damaged.
        MemoryBudgetError
            The threads need more memory than there is: 4 bytes per vertex each.
        ModuleNotFoundError
            torch is not installed.

        Notes
        -----
        The sample of a vertex is a function of (seed, epoch, step, hop, vertex). In layered batches, the default, a
        seed therefore has the same output and the same loss for any partition, any number of parts and any number of
        ranks. This holds for every ``sampling``, with :meth:`fastpart.loading.Batch.dropout`, and
        without batch normalization. Let each rank divide the sum of its losses by ``batch.global_size`` and add
        the gradients with :func:`fastpart.loading.sum_gradients`.

        The parts of all ranks have to lie on this machine, or on a file system that all machines share, but for
        ``features.npy`` of parts of other ranks. With the ranks of ``torch.distributed`` all of them make the loader
        together, and compare their directories. Parts are mapped. The loader
        takes 28 bytes per seed of all ranks, and up to 60 more while an epoch begins. With messages, up to three times
        ``ahead`` batches are in memory.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(
        ...     folder, graph=ring, features=np.eye(6, dtype=np.float32), labels=[0, 1, 0, 1, 0, 1],
        ...     splits={"train": [0, 1, 4, 5]},
        ... )
        >>> stored = fp.open_partition(folder, of="vertices")
        >>> for batch in stored.loader("train", fanouts=[2, 2], batch_size=2):  # doctest: +SKIP
        ...     print(batch, batch.x.shape, batch.y)
        <Batch: 2 of 2 seeds, 12 nodes, 12 edges> torch.Size([12, 6]) tensor([0, 1])
        <Batch: 2 of 2 seeds, 12 nodes, 12 edges> torch.Size([12, 6]) tensor([1, 0])
        """
        from ..loading import Loader, TypedLoader

        if self.is_typed:
            return TypedLoader(self._partition, vertices, fanouts=fanouts, input=input, plan=plan, **given)
        if input is not None:
            raise ParameterError(
                "input: this graph has no types, so all of its vertices are of one. Leave it out"
            )
        return Loader(self._partition, vertices, fanouts=parameters.fanouts_of(fanouts), plan=plan, **given)

    @with_options
    @partial(with_parameters, defaults=PLAN_DEFAULTS)
    def plan(
        self,
        epochs: int = 1,
        *,
        fanouts: Sequence[int],
        vertices: Any = "train",
        workers: int = 1,
        memory: int | str | None = None,
        pack: StrPath | None = None,
        **given: Unpack[PlanOptions],
    ) -> Plan:
        """Say what the next epochs will read, and pack it in the order of its use.

        Samples are functions of their seed, so the rows of features that each batch needs are known before. For
        features that do not fit in memory they are written behind each other, in one pass over the features: a batch
        then reads what it needs and no more.

        Parameters
        ----------
        epochs : int
            Epochs to plan, from epoch 0 on. A pack takes disk for the rows of all their batches.
        fanouts : sequence of int
            In-edges to sample per vertex in each hop. -1 takes all.
        vertices : str or array
            The seeds, as :meth:`loader` takes them: a split, or ids.
        workers : int
            Ranks of the loader, or workers of the training.
        memory : int or str, optional
            Memory of each worker for rows that several batches need, in bytes or as text such as ``"2G"``: those in
            the most batches. They are read once, and are not packed. Default: none.
        pack : path, optional
            Folder of the plan. Default: nothing is written, the plan only tells.
        batch_size
            The default is the one of the loader. For ``fastpart.train.sampled`` with its default pass 1000.
        threads, tmp_dir, progress, memory_limit
            As in :class:`fastpart.Options`.

        Returns
        -------
        fastpart.loading.Plan
            Printed, it says what it found. Pass it, or its folder, as ``plan=`` to :meth:`loader` and
            ``fastpart.train.sampled``, with the parameters that it was made for.

        Raises
        ------
        ParameterError
            A parameter is out of its range, the directory has no features or ``halo_hops=0``, features of a part are
            not on this machine, or the disk has too little left.
        FileExistsError
            ``pack`` exists and is no plan.
        MemoryBudgetError
            ``memory`` of all workers is more than the memory limit.

        Notes
        -----
        Memory: 4 bytes for each row of each batch, 8 with ``memory``, and 4 per vertex. Disk: the rows of all batches
        except those that stay in memory, as they are stored. Where a graph has few features per vertex, many epochs, or
        memory for all features, there is less to gain, which the printed plan shows. Source: Liu et al., "DiskGNN:
        Bridging I/O Efficiency and Model Accuracy for Out-of-Core GNN Training", SIGMOD 2025. That one stores samples,
        too.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(
        ...     folder, graph=ring, features=np.eye(6, dtype=np.float32), splits={"train": [0, 1, 4, 5]}
        ... )
        >>> stored = fp.open_partition(folder, of="vertices")
        >>> stored.plan(2, fanouts=[2], batch_size=2, pack=folder + ".plan")  # doctest: +ELLIPSIS
        <Plan: 2 epochs, 16 rows, 16 from the disk, packed in ...>
        """
        from ..loading.planning.building import plan

        return plan(
            self._partition,
            epochs,
            fanouts=fanouts,
            vertices=vertices,
            workers=workers,
            memory=memory,
            pack=pack,
            **given,
        )

    @partial(with_parameters, defaults=LINK_DEFAULTS)
    def link_loader(
        self,
        edges: Any = "train",
        *,
        fanouts: Fanouts,
        relation: str | EdgeKey | None = None,
        **given: Unpack[LinkOptions],
    ) -> MiniBatches:
        """Return mini-batches of edges and negatives of this rank, for link prediction and unsupervised training.

        Every step has a global batch of ``batch_size`` edges. A rank takes those whose target its parts hold. The edges
        of the global batch are left out of its sampled in-edges, with their reverse and all parallel records.

        Parameters
        ----------
        edges : {"train", "val", "test"} or array
            The positives: a split that was saved with ``edge_splits=``, or pairs of ids, of shape (pairs, 2).
        fanouts : sequence of int, or mapping of them
            In-edges to sample per vertex in each hop, as in :meth:`loader`.
        relation : str or tuple of str, optional
            The relation of the positives in a graph with types. Negatives are of the type of its targets. Default: the
            only relation.
        batch_size
            Here positives are the seeds.

        Returns
        -------
        fastpart.loading.LinkLoader or fastpart.loading.TypedLinkLoader
            Iterating over it gives the batches of an epoch, each a :class:`fastpart.loading.LinkBatch`, or a
            :class:`fastpart.loading.TypedLinkBatch` for a graph with types.

        Raises
        ------
        ParameterError
            There is no such split, or a parameter is out of its range.
        FastpartError, GraphFormatError, MemoryBudgetError, ModuleNotFoundError
            As in :meth:`loader`.

        Notes
        -----
        All samples, negatives included, are functions of (seed, epoch, step, edge or vertex). So batches of all ranks
        together are the same for any partition and any number of ranks, except with ``negatives="local"``.

        A negative is never one of the two ends of its positive. It may be another neighbour of the source: a share of
        about the mean degree over n of uniform negatives is.

        Edges are left out after sampling. What remains of a vertex's neighbours is a uniform sample of the others, so
        means over it are unbiased, but for vertices that lose their whole sample. With a fanout of -1 they are exact.

        The loader takes 50 bytes per edge of all ranks, and while an epoch begins about 100 per edge and negative of
        this rank.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> ring = np.array([[v, (v + 1) % 60] for v in range(60)])
        >>> splits = fp.split_edges(ring)
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.spring(splits.graph, k=2).save(folder, graph=splits.graph, edge_splits=splits)
        >>> stored = fp.open_partition(folder, of="vertices")
        >>> for batch in stored.link_loader(fanouts=[2, 2], batch_size=32):  # doctest: +SKIP
        ...     print(batch, batch.edge_label_index.shape)
        <LinkBatch: 32 of 32 edges, 64 pairs, 171 nodes, 117 edges> torch.Size([2, 64])
        <LinkBatch: 19 of 19 edges, 38 pairs, 130 nodes, 100 edges> torch.Size([2, 38])
        """
        from ..loading import LinkLoader, TypedLinkLoader

        if self.is_typed:
            return TypedLinkLoader(self._partition, edges, fanouts=fanouts, relation=relation, **given)
        if relation is not None:
            raise ParameterError("relation: this graph has no types, so it has one relation. Leave it out")
        return LinkLoader(self._partition, edges, fanouts=parameters.fanouts_of(fanouts), **given)

    @called_well
    def save_cache(
        self,
        cache: float | str = 0.1,
        *,
        fanouts: Fanouts,
        batch_size: int = 1024,
        cache_by: CacheCriterion = "access",
        input: str | None = None,
    ) -> None:
        """List the rows that each part caches in the directory, so that loaders need not find them.

        Writes ``cache_ids.npy`` into the folder of each part: int64, ascending ids of vertices of other parts. And
        ``cache.json`` beside the manifest. Loaders whose rows come by messages hold these rows, and
        :func:`fastpart.export.glt` exports them.

        Parameters
        ----------
        cache, cache_by
            As in :meth:`loader`.
        fanouts, batch_size, input
            Parameters of the loader. The seeds are the training vertices.

        Raises
        ------
        FastpartError
            The partition does not come from a directory.
        ParameterError
            A parameter is out of its range, or the directory has no training vertices or ``halo_hops=0``.
        OSError
            With path and errno.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(folder, graph=ring, splits={"train": [0, 1, 4, 5]})
        >>> fp.open_partition(folder, of="vertices").save_cache(0.4, fanouts=[2])
        >>> np.load(folder + "/part-00000/cache_ids.npy")
        array([5])
        """
        from ..loading.cached_rows import save_cache

        save_cache(
            self._partition, cache, fanouts=fanouts, batch_size=batch_size, cache_by=cache_by, input=input
        )
