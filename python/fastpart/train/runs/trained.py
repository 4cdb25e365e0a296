"""The result of a training."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack, get_args, overload

import numpy as np
import numpy.typing as npt
import polars as pl
from torch import Tensor, nn

from ...core import parameters
from ...core.calls import called_well
from ...core.frames import Tabular, identified
from ...core.ids import Ids, of_name
from ...core.options import Options as CallOptions
from ...core.options import RunOptions, run_options, with_options
from ...core.outputs import Owner, new_folder, owning
from ...core.parameters import StrPath, shown
from ...core.parsing import mapped
from ...core.protocols import facts
from ...errors import ParameterError, arg
from ...graphs.graph import Graph
from ...graphs.graph_directory import GraphDirectory
from ...partitions.partition import Partition, PartitionSource, VertexPartition, directory_of
from ...partitions.types import range_of_type
from ...runtime.launch import HeldFolder
from ...store import open_partition
from ...store.restoring import SUFFIXES, refuse_other_ids
from ...store.restoring import restore as write_restored
from ..data.learned_rows import EMBEDDINGS, written
from ..models import build
from ..models.scores import Task
from ..options import GRAPH, PARTS, RUN, Options, Predicted
from ..ranks import torch_threads
from ..registry import of
from .history import History
from .predicting import predictions, scratch
from .run_folder import RunFolder
from .summary import costs_of, shown_summary, test_of, text_of, workers_of
from .tables import answers_with_chances, column_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Outputs = npt.NDArray[np.int64] | npt.NDArray[np.uint8] | npt.NDArray[np.float32]
"""Classes of vertices or edges, several of each, or numbers."""


@dataclass(frozen=True)
class TrainedModel(Tabular):
    """A trained model with the history of its training.

    Attributes
    ----------
    method : str
        Name of the training method.
    task, options
        What the network was built for, such as the number of classes, and the options that it was trained with.
    history : polars.DataFrame
        One row per epoch: ``epoch``, ``loss`` (mean over the training vertices), ``val_accuracy``, ``val_f1``,
        ``seconds``, and columns of the method.
    summary : dict
        ``epochs``, ``best_epoch``, ``val_accuracy``, ``val_f1``, ``test_accuracy``, ``test_f1`` of the best epoch's
        weights, ``seconds_per_epoch``, ``idle_share`` (of the time of an epoch, in which the workers do not compute:
        they wait for batches, rows, weights or each other) and ``worker_bytes`` (medians over the epochs),
        ``remote_bytes`` (mean over the epochs after the first, in which some data is sent only once), and entries of
        the method.
    weights : dict of torch.Tensor
        Weights of the best epoch.
    out : pathlib.Path or None
        Folder of the checkpoint, the weights and the history.
    learned : mapping of numpy.ndarray or None
        Learned rows of the vertices of each type without features, in a graph with types.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> stored = fp.VertexPartition(labels, k=2).save(
    ...     f"{folder}/parts", graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> trained = fp.train.full(f"{folder}/parts", epochs=20, out=f"{folder}/run")
    >>> trained.history["loss"][-1] < trained.history["loss"][0], trained.summary["test_accuracy"]
    (True, 1.0)
    >>> list(trained.weights)[:1], trained.network().training
    (['layers.0.fc_neigh.weight'], False)
    >>> figure = trained.plot(f"{folder}/history.svg")
    >>> longer = fp.train.open(f"{folder}/run").resume(epochs=30)
    >>> len(longer.history)
    30
    """

    method: str
    task: Task
    options: Options
    history: pl.DataFrame
    summary: dict[str, Any]
    weights: dict[str, Tensor]
    out: Path | None
    _may_change: Mapping[str, Any] = field(default_factory=dict, repr=False)
    learned: Mapping[str, npt.NDArray[Any]] | None = None
    _held: HeldFolder | None = field(default=None, repr=False, compare=False)

    _predicted: ClassVar[tuple[Predicted, ...]] = get_args(Predicted)
    """Outputs that it can predict. The first one is the default."""

    _of: ClassVar[Literal["vertices", "edges"]] = "vertices"
    """Items that it predicts."""

    @property
    def workers(self) -> pl.DataFrame | None:
        """One row per worker with its part of the graph and its cost per epoch. None for methods without this table.

        Columns: ``worker``, its part such as ``vertices`` and ``edges``, the median seconds of each step and the means
        of ``sent_bytes`` and ``received_bytes`` over the epochs after the first, and ``peak_bytes``, its largest
        resident memory.
        """
        return workers_of(self.summary)

    @property
    def folder(self) -> Path | None:
        """The temporary folder with ``parts`` and ``run``, and ``graph`` if that was made of frames.

        It is there after a training over frames or over a partition in memory, and is removed with this object.
        :meth:`save` keeps it.
        """
        return None if self._held is None else self._held.path

    @called_well
    def save(self, out: StrPath) -> Self:
        """Keep the :attr:`folder` of this training under another name.

        Parameters
        ----------
        out : path
            The new folder. Its parent must exist.

        Returns
        -------
        TrainedModel
            This result, of the new folder. ``fastpart.train.open(out / "run")`` opens it again, and
            ``fastpart.open_partition(out / "parts")`` the partition.

        Raises
        ------
        ParameterError
            The training was over a partition directory of yours, whose ``out`` keeps it. Or ``out`` is no new or
            empty folder.
        """
        if self.folder is None:
            raise ParameterError(
                f"save: there is no temporary folder. A training over a partition directory is kept by {arg('out')}"
            )
        target = parameters.in_folder(parameters.path("out", out)).absolute()
        moved = {**self._may_change, "source": str(target / PARTS)}
        with Owner(target), new_folder(target) as inside:
            shutil.copytree(self.folder, inside, dirs_exist_ok=True)
            own = self.out is not None and self.out.is_relative_to(self.folder)
            if own:
                RunFolder(inside / RUN).update(may_change=moved)
        return replace(self, out=target / RUN if own else self.out, _may_change=moved, _held=None)

    @classmethod
    def _of_history(cls, task: Task, history: History, summary: dict[str, Any]) -> TrainedModel:
        """Return the result of a history."""
        epochs, folder = history.frame(), history.folder
        of_all: dict[str, Any] = {
            "method": history.method,
            "epochs": len(history.rows),
            "best_epoch": history.best_epoch,
            **summary,
            **costs_of(epochs),
        }
        out, may_change = (None if folder.temporary else folder.path), folder.content.get("may_change", {})
        return cls(
            history.method, task, history.options.of_model, epochs, of_all, history.best, out, may_change
        )

    def network(self) -> nn.Module:
        """Return the network with the weights of the best epoch, in evaluation mode."""
        network = build(self.task, self.options)
        network.load_state_dict(self.weights)
        return network.eval()

    @called_well
    def resume(
        self, epochs: int | None = None, *, source: PartitionSource | None = None, **changed: Any
    ) -> Self:
        """Go on with the training in its folder, as the method does with ``resume=True``.

        Parameters
        ----------
        epochs : int, optional
            Maximum number of epochs in all. Default: as before.
        source : path, optional
            The partition directory, if it has moved. It must hold the same edges, parts and rows.
        **changed
            Other parameters of the method that are not as before. Those that change the losses are refused, but for
            ``patience``.

        Returns
        -------
        TrainedModel
            The trained model, after all its epochs.

        Raises
        ------
        ParameterError
            The training was not kept in a folder, or something differs that must agree.
        """
        if self.out is None:
            raise ParameterError(
                "resume: this training was not kept. Train with out=, the folder to resume from"
            )
        given = {**self._may_change.get("arguments", {}), **self.options.objects, **changed}
        if epochs is not None:
            given["epochs"] = epochs
        directory = self._trained_over if source is None else source
        kept = "model" in given or "model" in of(self.method).without
        model = {} if kept else {"model": self.options.model}
        trained: Self = of(self.method).function(directory, **model, **given, out=self.out, resume=True)
        return replace(trained, _held=self._held)

    @overload
    def predict(
        self,
        source: PartitionSource,
        *,
        what: Literal["probabilities", "logits", "embeddings"],
        out: StrPath | None = None,
        vertices: npt.ArrayLike | None = None,
        edges: npt.ArrayLike | None = None,
        restore: None = None,
        **options: Unpack[CallOptions],
    ) -> npt.NDArray[np.float32]: ...
    @overload
    def predict(
        self,
        source: PartitionSource,
        *,
        what: Predicted | None = None,
        out: StrPath | None = None,
        vertices: npt.ArrayLike | None = None,
        edges: npt.ArrayLike | None = None,
        restore: None = None,
        **options: Unpack[CallOptions],
    ) -> Outputs: ...
    @overload
    def predict(
        self,
        source: PartitionSource,
        *,
        what: Predicted | None = None,
        out: None = None,
        vertices: None = None,
        edges: None = None,
        restore: StrPath | Graph,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame: ...
    @overload
    def predict(
        self,
        source: PartitionSource,
        *,
        what: Predicted | None = None,
        out: StrPath,
        vertices: None = None,
        edges: None = None,
        restore: StrPath | Graph,
        **options: Unpack[CallOptions],
    ) -> Path: ...
    @with_options
    def predict(
        self,
        source: PartitionSource,
        *,
        what: Predicted | None = None,
        out: StrPath | None = None,
        vertices: npt.ArrayLike | None = None,
        edges: npt.ArrayLike | None = None,
        restore: StrPath | Graph | None = None,
        **options: Unpack[CallOptions],
    ) -> Outputs | pl.DataFrame | Path:
        """Return classes, probabilities, logits or embeddings of every vertex, or of some, from whole neighbourhoods.

        Over a partition of the vertices, it is computed layer by layer. Then edges and features stay in files, and so
        do hidden layers and, with ``out``, the result: graphs may be larger than memory.

        Parameters
        ----------
        source : path
            A partition directory with ``graph=``, ``features=``, ``labels=`` and ``splits=``, of the graph that the
            model was trained on or of another with the same features. A link predictor needs ``edge_splits=``, and
            learned rows need the graph that they were learned on.
        what : {"classes", "probabilities", "logits", "embeddings"}, optional
            ``"classes"``: the class with the largest logit, int64 of shape (n,), or for multi-label tasks 1 for each
            class above 0, uint8 of shape (n, classes). In a regression the prediction, float32 of shape (n,) or
            (n, width). ``"probabilities"``: float32 of shape (n, classes), in multi-label tasks of each class by
            itself. A regression has none. ``"logits"``: float32 of shape (n, classes). ``"embeddings"``: the outputs of
            the last hidden layer, float32 of shape (n, width). Link predictors have embeddings only: the outputs of the
            last layer, or the learned rows. Default: "classes", of link predictors "embeddings". Where outputs are NaN
            or infinite, as from such features, a warning says so. The class is then -1, and 255 in rows of several
            classes, and probabilities are NaN.
        out : path, optional
            A ``.npy`` file. It appears as a whole.
        vertices : array, optional
            Ids of the vertices that are wanted, each once, or a mask. Default: all.
        edges : array, optional
            Of a model of edges: numbers of the records that are wanted, each once, or a mask. Default: all. The result
            has a row for each record. In a graph with types, records of the relation count from 0.
        restore : path or Graph, optional
            The graph directory with the ids that the vertices had in tables. The result is then a table of all vertices
            or records with these ids, as :func:`fastpart.store.restore` makes it, ``out`` a ``.parquet`` or ``.csv``.
        threads, tmp_dir, progress, memory_limit
            As in :class:`fastpart.Options`. Hidden layers lie in ``tmp_dir``, by default beside ``out``.

        Returns
        -------
        numpy.ndarray, polars.DataFrame or pathlib.Path
            Row v belongs to vertex v of the graph, or row i to ``vertices[i]``. Over a typed graph there is a row for
            each vertex of the target, in their order. Mapped read-only if ``out`` is given. With ``restore`` the table,
            or ``out``. The columns are ``id`` (of a model of edges ``source`` and ``target``), and ``class`` (with the
            text of the class in ``label`` if the tables had text), ``prediction`` of a regression,
            ``probability_CLASS`` of each class, by its text or its number, ``logits``, or ``embedding``.

        Raises
        ------
        ParameterError
            An unknown ``what`` or suffix, a directory with other features, or embeddings of a model without layers.
        MemoryBudgetError
            The memory limit does not hold it, as a single vertex with all its hops for a model without layers.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
        >>> labels = np.arange(12) // 6
        >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
        >>> stored = fp.VertexPartition(labels, k=2).save(
        ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
        ... )
        >>> fp.train.full(folder, epochs=20).predict(folder)
        array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
        >>> fp.train.full(folder, epochs=20).predict(folder, vertices=[11, 2])
        array([1, 0])
        """
        wanted = self._predicted[0] if what is None else what
        parameters.choice("what", wanted, self._predicted)
        if wanted == "probabilities" and self.task.regression:
            raise ParameterError(
                f"what: a regression has no probabilities. Its numbers are {arg('what', 'classes')}, the default"
            )
        given = {"vertices": vertices, "edges": edges}
        chosen, others = given.pop(self._of), given
        for name, values in others.items():
            if values is not None:
                raise ParameterError(
                    f"{name}: the model predicts {self._of}. Choose some with {arg(self._of)}"
                )
        run = run_options(**options)
        if restore is None:
            target = None if out is None else parameters.output(out, (".npy",))
            with owning(out=target), torch_threads(run.threads):
                return self._outputs(source, wanted, target, run, chosen)
        if chosen is not None:
            raise ParameterError(f"restore: takes all {self._of}. Leave out {arg(self._of)}, or restore=")
        target = None if out is None else parameters.output(out, SUFFIXES)
        directory = GraphDirectory.of(restore)
        of = self._restored(directory)
        refuse_other_ids("source", _ids_of(source), directory)
        with owning(out=target), torch_threads(run.threads), scratch(target, run.tmp_dir) as (folder, _):
            rows = self._outputs(source, wanted, folder / "rows.npy", run)
            column = column_of(wanted, self.task, _texts(directory, **of))
            return write_restored(rows, target, graph=directory.path, column=column, **of)

    @with_options
    def to_frame(
        self,
        source: PartitionSource | None = None,
        *,
        graph: StrPath | Graph | None = None,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame:
        """Return a frame of Polars with a prediction for each vertex, beside its id in the tables of the user.

        Parameters
        ----------
        source : path, optional
            The partition directory, as for :meth:`predict`. Default: the one that the model was trained over.
        graph : path or Graph, optional
            The graph directory with the names of the classes. Default: the one that :func:`fastpart.train.nodes` made.
        threads, tmp_dir, progress, memory_limit
            As in :class:`fastpart.Options`.

        Returns
        -------
        polars.DataFrame
            The columns are ``id``, ``class`` (the name of the class is in ``label``, if it is known), its
            ``probability``, by softmax, and ``part``. For several classes at once both are arrays with a number
            for each class. A regression has ``prediction`` in their place, and a link predictor ``embedding``.
            Without ids of the user, ``id`` has the numbers of the vertices.

        Raises
        ------
        ParameterError
            The model predicts edges, or the partition directory is gone.
        """
        if self._of != "vertices":
            raise ParameterError("to_frame: the model predicts edges. Call predict(source, restore=graph)")
        partition = open_partition(directory_of(self._trained_over if source is None else source))
        target, tables = self.task.target, partition._id_tables
        rows = range(int((partition.manifest or {})["n"]))
        if target and isinstance(partition, VertexPartition):
            rows = range_of_type(partition, target)
        columns: dict[str, Any] = self._answers(partition, run_options(**options))
        if graph is None and self.folder is not None and (self.folder / GRAPH).exists():
            graph = self.folder / GRAPH
        if graph is not None:
            refuse_other_ids("source", tables, GraphDirectory.of(graph))
        if graph is not None and columns.keys() == {"class", "probability"}:
            named = write_restored(columns["class"], graph=graph, column="class", of_type=target or None)
            columns = {**named.drop("id").to_dict(), **columns}
        if isinstance(partition, VertexPartition):
            columns["part"] = partition.assignment[rows.start : rows.stop]
        return identified(of_name(tables, target) if target else tables, len(rows)).with_columns(**columns)

    def _answers(self, partition: Partition, run: RunOptions) -> dict[str, Any]:
        """Return the columns of :meth:`to_frame`, by name."""
        with torch_threads(run.threads), scratch(None, run.tmp_dir) as (folder, _):
            if "logits" in self._predicted:
                logits = self._outputs(partition, "logits", folder / "rows.npy", run)
                return answers_with_chances(logits, self.task)
            return {
                str(column_of("embeddings", self.task)): self._outputs(partition, "embeddings", None, run)
            }

    @property
    def _trained_over(self) -> Path:
        """The partition directory that the model was trained over. It may have moved with the training."""
        noted = Path(self._may_change["source"])
        beside = noted if self.out is None else self.out.parent / noted.name
        return beside if not noted.exists() and beside.exists() else noted

    def _restored(self, directory: GraphDirectory) -> dict[str, Any]:
        """Return which type or relation of a graph directory predictions are of."""
        if self._of != "edges":
            return {"of_type": self.task.target} if self.task.target else {}
        relation, *others = [self._relation] if self._relation else directory.relations
        if others:
            raise ParameterError(
                f"restore: {shown(directory.path)} has several relations, and the model was trained on a graph without "
                "types. Pass the directory of that graph"
            )
        return {"of_relation": relation}

    @property
    def _relation(self) -> str:
        """The relation whose records a model of edges predicts. Empty in a graph without types."""
        return ""

    def _outputs(
        self,
        source: PartitionSource,
        what: Predicted,
        target: Path | None,
        run: RunOptions,
        vertices: Any = None,
    ) -> npt.NDArray[Any]:
        """Return the outputs, or a map of the file with them."""
        network = self.network()
        return predictions(
            network, self.task, self.options, source, what, target, run, vertices, self.learned
        )

    def __str__(self) -> str:
        return text_of(self.history, self.task, self.summary)

    @called_well
    def plot(self, out: StrPath | None = None) -> Figure:
        """Plot loss and validation scores by epoch.

        Parameters
        ----------
        out : path, optional
            A ``.svg``, ``.png`` or ``.pdf``. It appears as a whole.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it.

        Raises
        ------
        ParameterError
            Another suffix.
        OSError
            With path and errno. The old file is intact.
        """
        from ...report.comparisons import plot_history

        return plot_history(self.history, self.summary["best_epoch"], out)

    def _repr_html_(self) -> str:
        named = shown_summary(self.task, self.summary) | ({"folder": str(self.folder)} if self.folder else {})
        return facts(type(self).__name__, named)

    def __repr__(self) -> str:
        summary = self.summary
        said = (summary.get("baselines") or {}).get("verdict")
        return (
            f"<TrainedModel by {self.method}: {summary['epochs']} epochs, the best {summary['best_epoch']}, "
            f"{test_of(summary, 'rmse' if 'test_rmse' in summary else 'accuracy')}{f'; {said}' if said else ''}>"
        )


def _texts(
    directory: GraphDirectory, of_type: str | None = None, of_relation: str | None = None
) -> Sequence[Any] | None:
    """Return the texts of the classes of a type or relation, if the tables had any."""
    if of_relation is not None:
        return directory.labels_of_relation(of_relation)
    return directory.labels(of_type or next(iter(directory.types)))


def _ids_of(source: PartitionSource) -> Ids:
    """Return the ids that the vertices of a partition directory had in tables."""
    partition = open_partition(directory_of(source))
    return partition._id_tables if isinstance(partition, VertexPartition) else ()


def with_learned_rows(trained: TrainedModel, folder: Path, types: Iterable[str]) -> TrainedModel:
    """Return a result with the rows of types that were written. Rows in a temporary folder are read."""
    rows: Mapping[str, npt.NDArray[Any]] = written(folder, types)
    if trained.out is None:
        rows = {name: np.array(each) for name, each in rows.items()}
    return replace(trained, learned=rows)


def kept_rows(trained: TrainedModel) -> Any:
    """Return the learned rows of a training, which are written when it ends. None if there are none."""
    if trained.out is None or not (trained.out / EMBEDDINGS).exists():
        return None
    return mapped(trained.out / EMBEDDINGS)
