"""Predict with the folder of a training. Nothing here imports torch before it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import numpy.typing as npt

from ..core.frames import pl
from ..core.options import Options, with_options
from ..core.parameters import StrPath
from ..graphs.graph import Graph
from ..partitions.partition import PartitionSource
from .options import Predicted
from .plugged import ModelSource


@with_options
def predict(
    run: StrPath,
    source: PartitionSource,
    *,
    what: Predicted | None = None,
    out: StrPath | None = None,
    vertices: npt.ArrayLike | None = None,
    edges: npt.ArrayLike | None = None,
    restore: StrPath | Graph | None = None,
    model: ModelSource | None = None,
    **options: Unpack[Options],
) -> npt.NDArray[Any] | pl.DataFrame | Path:
    """Predict every vertex or record of a partition directory with a model from the folder of a training.

    It is :meth:`TrainedModel.predict` of what :func:`fastpart.train.open` returns.

    Parameters
    ----------
    run : path
        The folder that was passed as ``out`` to the training.
    source : path
        A partition directory of the graph that the model was trained on, or of another with the same features.
    what : {"classes", "probabilities", "logits", "embeddings"}, optional
        What is predicted. Default: classes, or the numbers of a regression, of link predictors embeddings.
    out : path, optional
        A ``.npy`` with a row for each vertex or record, or with ``restore`` a ``.parquet`` or ``.csv``. It appears as a
        whole.
    vertices, edges : array, optional
        Ids of the vertices or numbers of the records that are wanted, or a mask. Default: all.
    restore : path or Graph, optional
        The graph directory that :func:`fastpart.ingest` wrote. The result is a table with the ids of its tables.
    model : str or callable, optional
        The model, if it is your own and cannot be imported under the name that it had.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    numpy.ndarray, polars.DataFrame or pathlib.Path
        The rows, mapped read-only from ``out`` if it is given. With ``restore`` the table, or ``out``. The columns are
        ``id`` (of records ``source`` and ``target``), then ``class`` and ``label``, ``prediction`` of a regression,
        ``probability_CLASS`` of each class, ``logits`` or ``embedding``.

    Raises
    ------
    ParameterError
        The folder holds no training, or the directory does not fit its model.
    MemoryBudgetError
        The memory limit does not hold it.

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
    >>> _ = fp.train.full(f"{folder}/parts", epochs=20, out=f"{folder}/run")
    >>> fp.train.predict(f"{folder}/run", f"{folder}/parts", what="probabilities").argmax(1)
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """
    from .opening import open

    given: Any = {"what": what, "out": out, "vertices": vertices, "edges": edges, "restore": restore}
    predicted: npt.NDArray[Any] | pl.DataFrame | Path = open(run, model).predict(source, **given, **options)
    return predicted
