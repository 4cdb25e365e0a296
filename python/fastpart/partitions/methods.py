"""The methods of partitions that take groups of options.

``methods.pyi`` beside this file lists the options one by one, for type checkers and editors. ``make stubs`` writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..core.calls import called_well
from ..core.options import taking
from ..core.parameters import CacheCriterion, StrPath
from .loader_options import (
    EdgeKey,
    Fanouts,
    HopOptions,
    LinkOptions,
    LoaderOptions,
    PlaceOptions,
    PlanOptions,
)
from .saved import SaveOptions
from .stored_graph import StoredGraph

if TYPE_CHECKING:
    from ..loading import LinkLoader, Loader
    from ..machines.engine import Engine
    from .plan import Plan


class Savable:
    """The base of all partitions that has :meth:`save`."""

    @taking(SaveOptions, groups=[PlaceOptions])
    def save(
        self,
        out: StrPath,
        *,
        graph: Any = None,
        cluster: str | Engine | None = None,
        shared: StrPath | None = None,
        overwrite: bool = False,
        options: SaveOptions,
    ) -> Self:
        """Write the partition atomically: the file or directory appears whole, or the old one stays.

        Parameters
        ----------
        out : path
            By suffix: ``.npy`` (an array), ``.txt`` (line v holds the part of vertex v, or of record v), ``.parquet``
            (a column ``part``, number of parts and identity of the graph in the metadata), or no suffix or a trailing
            ``/`` for a partition directory. The parent must exist. A file is replaced. A directory is replaced if it is
            empty, or holds only what fastpart wrote there and nothing that the new one lacks.
        graph : path, array or Graph, optional
            The graph of the partition, which is checked. Default: ``p.graph``, the one that the partition was made from
            or opened with. A directory then also holds its parts and measures. Without any graph, as after
            ``p.graph = None``, it holds the assignment only.
        cluster : str, optional
            The Ray cluster that measures the partition and writes the parts of its vertices, as for
            :func:`fastpart.partition`. Features, labels and other rows are added by this machine. The directory has
            the same bytes as without it. A call that was killed goes on when it is made again.
        shared : path, optional
            A folder that all machines of the cluster see. It gets the parts until the directory is complete. If it is
            on the file system of ``out``, they are not copied.
        overwrite : bool
            Replace a partition directory also if it holds parts, features, labels, splits, times or features of edges
            that the new one lacks. They are lost then.
        features : path or array, or mapping of them, optional
            One row per vertex: a ``.npy``, a scipy sparse ``.npz`` (CSR, written dense), the columns of numbers of a
            table (Parquet, text or a frame), a numpy array or a torch tensor. A table with a column of ids is matched
            by it. Rows are read chunk by chunk. Only text and the entries of a sparse matrix are loaded as a whole.
        feature_dtype : {"float32", "float16", "int8"}, optional
            How features are stored. "int8" takes 8 bits per number: the range of each row, or of each column, has 256
            levels, whichever changes a sample of the rows less. Readers get float32. Files, messages and caches hold
            the bytes. ``manifest`` states the error. A type that changes the sample by more than 2 % of the standard
            deviations of the columns is refused. Default: as given. Rows that are given with 8 bits, as
            :func:`fastpart.generate.planted` writes them, are copied.
        standardise : bool
            Store features minus their mean, divided by their standard deviation. Both are those of the training
            vertices in ``splits``, column by column, in float64, or of all vertices if there are ``edge_splits`` only.
            A column that is constant there is not divided. The directory keeps them in ``feature_statistics.npy``.
            Rows become float32 unless ``feature_dtype`` says otherwise, and rows that are given with 8 bits are coded
            anew.
        labels : array, or path of a .npy or a table, optional
            Integer class of each vertex, -1 = unlabelled. For several labels per vertex: 0 and 1 (any dtype) of shape
            (n, classes). Numbers with fractions are targets of a regression, of shape (n,) or (n, width), NaN = none.
            A table (``.csv``, ``.tsv``, ``.parquet``, a frame) has columns for the vertex and the label. Vertices go by
            their ids, if the graph has ids. A series or a single column has one row per vertex.
        splits : mapping, or path of a .npz or a table, optional
            ``train``, ``val``, ``test``: a series of ids, numbers of vertices, or a bool mask of length n. The parts
            hold masks. A table has columns for the vertex and its split.
        split : int, optional
            Which row of ``train_masks``, ``val_masks``, ``test_masks`` of shape (s, n) to use.
        edge_features : path or array, optional
            One row per record, as ``features``.
        edge_feature_dtype : {"float32", "float16", "int8"}, optional
            How features of edges are stored, as ``feature_dtype``. Default: as given.
        edge_labels : array, or path of a .npy or a table, optional
            One label per record, as ``labels``: classes, -1 = unlabelled, or 0 and 1 of shape (m, classes), or targets.
            Both directions of a record carry its label. :func:`fastpart.train.edges` trains on them.
        edge_label_splits : mapping, or path of a .npz or a table, optional
            ``train``, ``val``, ``test``: numbers of records, or a bool mask of length m. The parts hold masks.
        times, edge_times : path or array, optional
            A whole number per vertex, and per record: when it came to be. The parts hold them as int64. ``times`` may
            be a table with a column of ids.
        halo_hops : {0, 1, 2}
            Hops around the inner vertices of a part. With h hops, a part holds the in-edges of all vertices that are
            fewer than h hops from an inner vertex, so h layers of message passing are exact. 0: only edges within the
            part.
        halo_features : bool
            Also write the features of halo vertices.
        edge_splits : EdgeSplits, mapping, or path of a .npz or a folder, optional
            For link prediction: what :func:`fastpart.split_edges` returned or wrote, or pairs ``val`` and ``test``, or
            the folder ``split/SCHEME`` of a dataset of links of OGB, which is read with torch. They must not be edges
            of ``graph``, all of whose edges are trained on.
        restore : path or Graph, optional
            For a ``.parquet``: the graph directory with the ids that the vertices had in tables. The file then has the
            columns ``id`` and ``part``, as :func:`fastpart.store.restore` writes them.
        threads, tmp_dir, progress, memory_limit
            As in :class:`fastpart.Options`.

        Returns
        -------
        VertexPartition or EdgePartition
            The partition in the directory, as :func:`open_partition` opens it: with its parts and their data. This
            partition itself if ``out`` is a file.

        Raises
        ------
        ParameterError
            The suffix is unknown, the output is the input, rows do not fit the graph, or a parameter of directories is
            given for another output. Or another process is at work on ``out``.
        FileExistsError
            A directory that holds what the new one lacks, or that is no partition directory.
        GraphFormatError
            The partition belongs to another graph.
        EdgeFileChangedError
            The file of the graph changed since it was opened.
        OSError
            With path and errno. The old output is intact, and the partition is still in memory: save it elsewhere.

        Notes
        -----
        ``docs/reference/partition-directory.md`` describes the schema of the directory.

        A graph with types takes ``features``, ``labels``, ``splits`` and ``times`` by type, as ``{"paper": x}``, and
        ``edge_features``, ``edge_labels``, ``edge_label_splits`` and ``edge_times`` by relation, each with the rows of
        that type or relation. With ``standardise``, a type without splits takes the statistics of all its vertices.
        Parts of an edge partition do not know types.

        If the graph has ids, rows without ids are taken in the order of its vertices, with a warning.
        ``docs/reference/formats.md`` has the rule. A directory of a graph with ids holds these, for
        :func:`fastpart.update`.

        What lies in the directory of a graph that :func:`fastpart.ingest` wrote is taken from there, with a note, where
        an argument is None. ``False`` leaves it out.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile, pathlib
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> p = fp.spring(graph, k=2)
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> p.save(folder / "part.npy")
        <VertexPartition: spring, k=2, 6 vertices, loads 3..3>
        >>> stored = p.save(folder / "parts", features=np.eye(6, dtype=np.float32))
        >>> stored
        <VertexPartition: spring, k=2, 6 vertices, loads 3..3>
        >>> stored.parts[1].features.argmax(axis=1)
        array([3, 4, 5])
        """
        from ..store.saving import save_at

        return save_at(self, out, graph, cluster, shared, overwrite, options)


class Loadable(StoredGraph):
    """The base of :class:`fastpart.VertexPartition` that has :meth:`loader`."""

    @taking(LoaderOptions, groups=[HopOptions])
    def loader(
        self,
        vertices: Any = "train",
        *,
        fanouts: Fanouts,
        input: str | None = None,
        plan: StrPath | None = None,
        options: LoaderOptions,
    ) -> Loader:
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
            A plan of these batches, from :meth:`~fastpart.VertexPartition.plan`, or its folder: features are read from
            what it has packed. It never changes a batch. Epochs beyond the plan are packed as many at a time.

        Returns
        -------
        fastpart.loading.Loader
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
        >>> stored = fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(
        ...     folder, graph=ring, features=np.eye(6, dtype=np.float32), labels=[0, 1, 0, 1, 0, 1],
        ...     splits={"train": [0, 1, 4, 5]},
        ... )
        >>> for batch in stored.loader("train", fanouts=[2, 2], batch_size=2):  # doctest: +SKIP
        ...     print(batch, batch.x.shape, batch.y)
        <Batch: 2 of 2 seeds, 12 nodes, 12 edges> torch.Size([12, 6]) tensor([0, 1])
        <Batch: 2 of 2 seeds, 12 nodes, 12 edges> torch.Size([12, 6]) tensor([1, 0])
        """
        from ..loading import Loader

        return Loader(self, vertices, fanouts=fanouts, options=options, plan=plan, input=input)

    @taking(PlanOptions, groups=[HopOptions])
    def plan(
        self,
        epochs: int = 1,
        *,
        fanouts: Fanouts,
        vertices: Any = "train",
        input: str | None = None,
        workers: int = 1,
        memory: int | str | None = None,
        pack: StrPath | None = None,
        options: PlanOptions,
    ) -> Plan:
        """Say what the next epochs will read, and pack it in the order of its use.

        Samples are functions of their seed, so the rows of features that each batch needs are known before. For
        features that do not fit in memory they are written behind each other, in one pass over the features: a batch
        then reads what it needs and no more.

        Parameters
        ----------
        epochs : int
            Epochs to plan, from epoch 0 on. A pack takes disk for the rows of all their batches.
        fanouts : sequence of int, or mapping of them
            In-edges to sample per vertex in each hop. -1 takes all. In a graph with types a mapping has a sequence for
            each relation that is sampled, as for :meth:`loader`.
        vertices : str or array
            The seeds, as :meth:`loader` takes them: a split, or ids.
        input : str, optional
            The type of the seeds in a graph with types. Default: the only one with this split, or that of the ids.
        workers : int
            Ranks of the loader, or workers of the training.
        memory : int or str, optional
            Memory of each worker for rows that several batches need, in bytes or as text such as ``"2G"``: those in
            the most batches, of all types together. They are read once, and are not packed. Default: none.
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
        >>> stored = fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(
        ...     folder, graph=ring, features=np.eye(6, dtype=np.float32), splits={"train": [0, 1, 4, 5]}
        ... )
        >>> stored.plan(2, fanouts=[2], batch_size=2, pack=folder + ".plan")  # doctest: +ELLIPSIS
        <Plan: 2 epochs, 16 rows, 16 from the disk, packed in ...>
        """
        from ..loading.planning.building import plan

        return plan(
            self,
            epochs,
            fanouts=fanouts,
            vertices=vertices,
            input=input,
            workers=workers,
            memory=memory,
            pack=pack,
            options=options,
        )

    @taking(LinkOptions, groups=[HopOptions])
    def link_loader(
        self,
        edges: Any = "train",
        *,
        fanouts: Fanouts,
        relation: str | EdgeKey | None = None,
        options: LinkOptions,
    ) -> LinkLoader:
        """Return mini-batches of edges and negatives of this rank, for link prediction and unsupervised training.

        Every step has a global batch of ``batch_size`` edges. A rank takes those whose target its parts hold. The edges
        of the global batch are left out of its sampled in-edges, with their reverse and all parallel records.

        Parameters
        ----------
        edges : {"train", "val", "test"} or array
            The positives: a split that was saved with ``edge_splits=``, or pairs of ids, of shape (pairs, 2). Without
            negatives they may be repeated, and may be loops.
        fanouts : sequence of int, or mapping of them
            In-edges to sample per vertex in each hop, as in :meth:`loader`.
        relation : str or tuple of str, optional
            The relation of the positives in a graph with types. Negatives are of the type of its targets. Default: the
            only relation.
        batch_size
            Here positives are the seeds.

        Returns
        -------
        fastpart.loading.LinkLoader
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
        together are the same for any partition and any number of ranks, except with ``"local"`` negatives.

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
        >>> stored = fp.spring(splits.graph, k=2).save(folder, graph=splits.graph, edge_splits=splits)
        >>> for batch in stored.link_loader(fanouts=[2, 2], batch_size=32):  # doctest: +SKIP
        ...     print(batch, batch.edge_label_index.shape)
        <LinkBatch: 32 of 32 edges, 64 pairs, 171 nodes, 117 edges> torch.Size([2, 64])
        <LinkBatch: 19 of 19 edges, 38 pairs, 130 nodes, 100 edges> torch.Size([2, 38])
        """
        from ..loading import LinkLoader

        return LinkLoader(self, edges, fanouts=fanouts, options=options, relation=relation)

    @called_well
    def save_cache(
        self,
        cache: float | str = 0.1,
        *,
        fanouts: Fanouts,
        batch_size: int = 1000,
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
        >>> p = fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2)
        >>> stored = p.save(folder, graph=ring, splits={"train": [0, 1, 4, 5]})
        >>> stored.save_cache(0.4, fanouts=[2])
        >>> np.load(folder + "/part-00000/cache_ids.npy")
        array([5])
        """
        from ..loading.cached_rows import save_cache

        given = {"cache": cache, "cache_by": cache_by, "batch_size": batch_size}
        save_cache(self, fanouts, input, LoaderOptions.checked(given))
