"""``links``: start workers for a partition directory with edge splits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from ... import _core
from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...loading.negatives import NEGATIVE_RULES, NegativeRule
from ..config import Options, Training, options_of, report_of, trains
from ..jobs.group import number_of_workers
from ..jobs.launch import launching
from ..memory import BatchSize, Need, batches, evaluation, row_bytes, size_of, weights
from ..models import NEIGHBOUR, sampling_of
from ..run_folder import EMBEDDINGS
from ..scores import Task
from ..trainable import refuse_before_workers
from .dataset import LinkDataset
from .decoders import DECODERS, DecoderName, network_with
from .embeddings import files_of
from .trained import TrainedLinks
from .training import NEW_EMBEDDINGS


@trains
def links(
    source: StrPath,
    *,
    decoder: DecoderName = "dot",
    negatives: NegativeRule = "uniform",
    num_negatives: int = 1,
    embeddings: int | None = None,
    candidates: int = 1000,
    batch_size: int | None = 1000,
    fanouts: Sequence[int] | None = None,
    workers: int | None = None,
    ahead: int = 2,
    timeout: float = 1800.0,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[Training],
) -> TrainedLinks:
    """Train to tell edges from other pairs of vertices: link prediction, and training without labels.

    Every worker takes the training edges whose target is in its parts. The encoder, a graph neural network over sampled
    neighbours, gives each end a row, and the decoder gives each pair of rows a logit. Edges of a batch are left out of
    the neighbours that are sampled for it. Gradients are added in every step. So the losses are the same for any
    partition, any number of parts and any number of workers, up to rounding, except with ``negatives="local"``.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=`` and ``edge_splits=``. It needs no labels, and no
        features if ``embeddings`` is given.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, seed, out, resume, overwrite
        As in :func:`fastpart.train.full`. The rows of the encoder have the width ``hidden``.
    patience : int, optional
        Number of epochs without a better validation MRR after which training ends.
    decoder : {"dot", "mlp"}
        How a pair is scored: by the inner product of both rows, or by a perceptron over their elementwise product.
    negatives : {"uniform", "batch", "local"}
        Where the targets of negatives come from, as for :meth:`fastpart.VertexPartition.link_loader`: all vertices,
        targets of other edges of the batch, or the parts of the worker. ``"local"`` is biased.
    num_negatives : int
        Negatives of each edge.
    embeddings : int, optional
        Width of a learnable row of each vertex, the encoder's input behind the features, if there are any. The worker
        that owns a part has its rows. Only rows that a step used are changed, by Adam.
    candidates : int
        Vertices that the target of each validation and test pair is ranked among, sampled once. All vertices if
        there are no more.
    batch_size : int, optional
        Training edges per step, of all workers together. None: all at once.
    fanouts : sequence of int, optional
        Neighbours to sample per vertex in each hop, from the ends of pairs on. -1 takes all. Default: 10 each.
    workers : int, optional
        Number of processes. Default: one per CPU, at most one per part.
    ahead : int
        Batches that are made ahead of their use.
    timeout : float
        Seconds that workers wait for each other. Then training ends with an error that names the one that hangs.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All workers share the threads. The step of ``progress`` is "epoch".
    on_epoch
        As in :func:`fastpart.train.full`.

    Returns
    -------
    TrainedLinks
        ``history`` has the columns of :func:`fastpart.train.sampled`, with ``val_mrr``. ``remote_bytes`` also counts
        learned rows of other workers and their gradients. ``summary`` has MRR, Hits@1, Hits@3, Hits@10 and AUC of
        validation and test, of the epoch with the best ``val_mrr``.

    Raises
    ------
    ParameterError
        An invalid parameter, a directory without edge splits, or one without features if there are no ``embeddings``.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    Scores are exact, with all neighbours of the training graph. The target of a pair is ranked among the candidates
    but for both ends of the pair. Equal logits count half: the rank is 1 + higher + equal / 2. Other neighbours of the
    source count like all candidates (the "raw" setting). AUC compares all positives with one uniform negative each.

    A worker holds its batches, the network, 50 bytes per training edge of all workers, and 16 bytes per number of the
    learned rows of its parts. While an epoch begins it takes about 100 bytes more per edge and negative of its own.

    Learned rows are saved with the checkpoints, in ``embeddings`` in the output folder. A resumed training equals one
    that was never interrupted, bit for bit.

    Under ``torchrun`` the calling process is one of the workers, as with :func:`fastpart.train.sampled`. All machines
    must see ``out``: learned rows, and rows of vertices for the scores, go through files there.

    References
    ----------
    Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017, section 3.2.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> ring = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    >>> splits = fp.split_edges(ring)
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> fp.multilevel(splits.graph, k=2).save(folder, graph=splits.graph, edge_splits=splits)
    >>> trained = fp.train.links(folder, embeddings=16, hidden=16, dropout=0, epochs=40, workers=1)
    >>> trained.embeddings.shape, bool(trained.summary["test_auc"] > 0.7)
    ((60, 16), True)
    """
    options, run = options_of({**training, "batch_size": batch_size, "fanouts": fanouts})
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} trains on sampled graphs, which link prediction has not"
        )
    report = report_of(training, run, options.epochs)
    asked = None if workers is None else parameters.integer("workers", workers, 1, 1 << 12)
    dataset = LinkDataset(source)
    if embeddings is None and not dataset.task.features:
        raise ParameterError(
            "embeddings: the directory has no features. Pass the width of a learnable row of each vertex, for example "
            "embeddings=64, or save the partition with features="
        )
    width = None if embeddings is None else parameters.integer("embeddings", embeddings, 1, 2**16)
    decoder = parameters.choice("decoder", decoder, DECODERS)
    how = {
        "decoder": decoder,
        "negatives": parameters.choice("negatives", negatives, NEGATIVE_RULES),
        "num_negatives": parameters.integer("num_negatives", num_negatives, 1, 2**16),
        "candidates": parameters.integer("candidates", candidates, 1, 2**31 - 1),
        "embeddings": width,
    }
    count = number_of_workers(dataset.partition.k, asked, run.threads or _core.default_threads())
    encoded = Task(dataset.task.features + (width or 0), options.hidden, multilabel=False)
    refuse_before_workers(encoded, options, count, network_with(decoder))
    summary = {"parts": dataset.partition.k, "workers": count}
    summary |= {name: dataset.manifest.get("summary", {}).get(name) for name in ("halo_rf",)}
    running: dict[str, Any] = {"ahead": parameters.integer("ahead", ahead, 0, 2**10)}
    with launching(out, resume, overwrite, run, report, timeout, workers=asked) as launch:
        running["out"] = os.path.abspath(launch.folder.path)
        if width is not None:
            entries = [EMBEDDINGS, NEW_EMBEDDINGS, *files_of(dataset.partition.k)]
            launch.once(lambda: launch.folder.add(entries))
        trained = launch.train(
            "links",
            options,
            how,
            dataset,
            count,
            summary,
            needs(dataset, options, how, count),
            task=encoded,
            make=network_with(decoder),
            **running,
        )
        learned = None
        if width is not None:
            file = launch.folder.path / EMBEDDINGS
            learned = np.load(file, mmap_mode=None if trained.out is None else "r")
    return TrainedLinks(**vars(trained), decoder=decoder, embeddings=learned)


def needs(dataset: LinkDataset, options: Options, how: Mapping[str, Any], workers: int) -> list[Need]:
    """Return what each worker takes."""
    (n, edges), training, pairs = size_of(dataset), dataset.num_train, 1 + how["num_negatives"]
    width, part = how["embeddings"] or 0, max(each.num_inner for each in dataset.partition.parts)
    task = Task(dataset.task.features + width, options.hidden, multilabel=False)
    seeds = min(n, (1 + pairs) * -(-(options.batch_size or training) // workers))
    size = BatchSize.sampled(seeds, options.fanouts, n, edges)
    parts, own = -(-dataset.partition.k // workers), -(-training // workers)
    learned = 4 * width * part * (3 * parts + 3) + 4 * part * (task.features if width else 0)
    candidates = 16 * options.hidden * min(n, how["candidates"])
    return [
        weights(options, task),
        *batches(options, task, size, row_bytes(dataset) + 8 * width),
        *evaluation(dataset, options, parts),
        Need("edges to train on", 50 * training + 100 * own * pairs, "fewer num_negatives="),
        Need("embeddings and their Adam", learned, "smaller embeddings="),
        Need("candidates", candidates, "fewer candidates="),
    ]
