"""A trainer: epochs over its part of the training vertices, in step with the others."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dgl
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ....core.system import anonymous_bytes
from ....errors import ParameterError, arg
from ....runtime.reporting import Reports
from ...graphs.rows import Rows
from ...jobs.job import train
from ...learning.learner import Learner
from ...learning.metrics import Scores
from ...models.scores import Task, unscored
from ...options import Options, mixed
from ...ranks import SYNCHRONISING, Clock, copy_from_first, from_first, is_first, largest, total
from ...runs.history import History
from ...runs.run_folder import RunFolder

SAMPLING, FETCHING, COMPUTE = "sampling", "fetching", "compute"
STEPS = (SAMPLING, FETCHING, COMPUTE, SYNCHRONISING)
"""The timed steps of an epoch."""

_EVALUATION_BATCH = 512
"""Vertices per step of evaluation, with all their neighbours."""


def train_over(graph: Any, options: Options, settings: dict[str, Any], reports: Reports) -> None:
    """Train until rank 0 ends it. The first trainer of each machine keeps a history."""
    history = None
    if settings["keeps"]:
        resume = settings["resume"] and is_first()
        history = History("distdgl", options, RunFolder(Path(settings["out"])), resume)
    _repeat(history)
    trainer = Trainer(graph, options, from_first(history and history.state))
    summary = train(lambda state: trainer, history, lambda row: reports.send("epoch", row))
    if history is not None:
        reports.send("result", {"task": trainer.task.stored(), "summary": summary})


def _repeat(history: History | None) -> None:
    """Begin the history of each machine with the epochs that rank 0 resumed."""
    rows, best = from_first(history and (history.rows, history.best))
    if history is not None and not is_first():
        for row in rows:
            history.add({name: row[name] for name in row if name != "epoch"}, lambda: best)


class Trainer:
    """One of the trainers, each with a copy of the network."""

    def __init__(self, graph: Any, options: Options, state: dict[str, Any]) -> None:
        self._graph, self._options = graph, options
        self._book = graph.get_partition_book()
        self._degree = _degrees(graph)
        self.task = _task(graph)
        self._seeds = {split: self._seeds_of(split) for split in ("train", "val", "test")}
        self.learner = Learner(self.task, options, state)
        self.network = self.learner.network
        self._clock = Clock()
        self._parallel = nn.parallel.DistributedDataParallel(self.network)
        self._parallel.register_comm_hook(None, lambda _, bucket: self._synchronise(bucket))
        # One loader serves all epochs. A new one would make all samplers of all trainers wait for each other.
        # DGL lists them by layer: the last layer's, the first hop, comes last.
        some, all_of_them = list(options.fanouts[::-1]), [-1] * options.layers
        mine = None if options.batch_size is None else -(-options.batch_size // dist.get_world_size())
        self._loaders = {
            "train": self._loader("train", some, mine, shuffle=True),
            "val": self._loader("val", all_of_them, _EVALUATION_BATCH, shuffle=False),
            "test": self._loader("test", all_of_them, _EVALUATION_BATCH, shuffle=False),
        }

    def _seeds_of(self, split: str) -> Tensor:
        """Return the labelled vertices of a split for this trainer. Trainers get equally many, mostly of one part."""
        name = f"{split}_mask"
        if name not in self._graph.ndata:
            return torch.empty(0, dtype=torch.int64)
        mine = dgl.distributed.node_split(self._graph.ndata[name], self._book, force_even=True).long()
        if self.task.multilabel or not len(mine):
            return mine
        labels = self._graph.ndata["label"][mine]
        return mine[~labels.isnan().view(len(mine), -1).any(1) if self.task.regression else labels >= 0]

    def _loader(self, split: str, fanouts: list[int], size: int | None, shuffle: bool) -> Any:
        size = size or max(len(self._seeds[split]), 1)
        sampler = dgl.dataloading.NeighborSampler(fanouts)
        return dgl.dataloading.DistNodeDataLoader(
            self._graph, self._seeds[split], sampler, batch_size=size, shuffle=shuffle, drop_last=False
        )

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch and return its row. ``epochs`` is always 1."""
        seed = mixed(self._options.seed, self.learner.epochs, dist.get_rank())
        torch.manual_seed(seed)
        dgl.seed(seed % 2**31)
        self._clock.read()
        self.network.train()
        seen: defaultdict[str, float] = defaultdict(float)
        dist.barrier()
        start = time.perf_counter()
        with self._parallel.join():
            batches = iter(self._loaders["train"])
            while (batch := self._timed(SAMPLING, next, batches, None)) is not None:
                inputs, seeds, blocks = batch
                layers = self._timed(FETCHING, self._layers, inputs, blocks)
                x, labels = self._timed(FETCHING, self._fetch, inputs, seeds)
                seen["loss"] += self._step(layers, x, labels) * len(seeds)
                seen["seeds"] += len(seeds)
                seen["remote seeds"] += self._remote(seeds)
                seen["vertices"] += len(inputs)
                seen["remote vertices"] += self._remote(inputs)
        seconds = time.perf_counter() - start
        self.learner.end_epochs()
        copy_from_first(self.network.buffers())  # models of users may count batches
        return {
            **self._row(seen, seconds),
            **(self.scores("val") if scored else unscored(self.task, self._options.metrics)),
        }

    def _timed(self, step: str, function: Any, *arguments: Any) -> Any:
        with self._clock.timed(step):
            return function(*arguments)

    def _layers(self, inputs: Tensor, blocks: list[Any]) -> list[Rows]:
        """Return the blocks of DGL. The sources of each begin with its targets, which are the sources of the next."""
        degree = self._degree[inputs]
        adjacencies = (block.adj_tensors("csc") for block in blocks)
        return [
            Rows(indptr.numpy(), indices.numpy(), degree[: block.num_src_nodes()])
            for block, (indptr, indices, _) in zip(blocks, adjacencies, strict=True)
        ]

    def _fetch(self, inputs: Tensor, seeds: Tensor) -> tuple[Tensor, Tensor]:
        labels = self._graph.ndata["label"][seeds]
        x = self._graph.ndata["feat"][inputs].to(self.learner.dtype)
        return x, self.task.targets(labels)

    def _step(self, layers: list[Rows], x: Tensor, labels: Tensor) -> float:
        waited = self._clock.seconds[SYNCHRONISING]
        with self._clock.timed(COMPUTE):
            losses, weights = self._losses(layers, x, labels)
            loss = losses.mean() if weights is None else losses.sum() / weights.sum()
            self.learner.optimizer.zero_grad()
            loss.backward()
            self.learner.step(loss.item() / dist.get_world_size())
        self._clock.seconds[COMPUTE] -= self._clock.seconds[SYNCHRONISING] - waited
        return loss.item()

    def _losses(self, layers: list[Rows], x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        criterion = self.learner.criterion
        with self.learner.computing():
            outputs = self._parallel(layers, x).to(self.learner.dtype)
        return criterion.losses(outputs, labels), criterion.weights(labels)

    def _synchronise(self, bucket: Any) -> Any:
        """Average gradients like DistributedDataParallel, and count the time."""
        gradients = self._timed(SYNCHRONISING, total, bucket.buffer())
        future: torch.futures.Future[Tensor] = torch.futures.Future()
        future.set_result(gradients.div_(dist.get_world_size()))
        return future

    def _remote(self, vertices: Tensor) -> int:
        return int((self._book.nid2partid(vertices) != self._book.partid).sum())

    def _row(self, seen: Mapping[str, float], seconds: float) -> dict[str, Any]:
        """Return the row of an epoch: sums over the trainers, and mean seconds of the steps."""
        counted = ("loss", "seeds", "remote seeds", "vertices", "remote vertices")
        spent = self._clock.read()
        mine = [seen[name] for name in counted] + [spent[step] for step in STEPS]
        sums = total(torch.tensor(mine, dtype=torch.float64)).tolist()
        loss, seeds, remote_seeds, vertices, remote = sums[: len(counted)]
        feat = self._graph.ndata["feat"]
        row_bytes = torch.empty(0, dtype=feat.dtype).element_size() * feat.shape[1]
        return {
            "loss": loss / max(seeds, 1),
            "seconds": largest(torch.tensor(seconds, dtype=torch.float64)).item(),
            **{
                f"{step}_seconds": value / dist.get_world_size()
                for step, value in zip(STEPS, sums[len(counted) :], strict=True)
            },
            "worker_bytes": int(largest(torch.tensor(anonymous_bytes()))),
            "local_bytes": int(vertices - remote) * row_bytes,
            "remote_bytes": int(remote) * row_bytes,
            "remote_seeds": remote_seeds / max(seeds, 1),
        }

    @torch.no_grad()
    def scores(self, split: str) -> dict[str, float]:
        """Return the exact scores of a split. Each trainer evaluates its own vertices."""
        self.network.eval()
        scores = Scores(self.task, self._options.metrics, [split])
        for inputs, seeds, blocks in self._loaders[split]:
            x, labels = self._fetch(inputs, seeds)
            scores.add(split, self.network(self._layers(inputs, blocks), x), labels)
        return scores.of_all()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return self.learner.state()

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        self.learner.put(best)
        return {**self.scores("val"), **self.scores("test")}


def _task(graph: Any) -> Task:
    missing = [name for name in ("feat", "label", "train_mask") if name not in graph.ndata]
    if missing:
        raise ParameterError(
            f"source: the export has no {', no '.join(missing)}. Save the partition with "
            f"{arg('features')}, {arg('labels')}, {arg('splits')}"
        )
    labels, width = graph.ndata["label"], graph.ndata["feat"].shape[1]
    if labels.dtype.is_floating_point:
        return Task(width, labels.shape[1] if len(labels.shape) == 2 else 1, False, regression=True)
    if len(labels.shape) == 2:
        return Task(width, labels.shape[1], multilabel=True)
    inner = graph.get_partition_book().partid2nids(graph.get_partition_book().partid)
    most = labels[inner].max() if len(inner) else torch.tensor(-1)
    return Task(width, int(largest(most.long())) + 1, multilabel=False)


def _degrees(graph: Any) -> Any:
    """Return the in-degrees in the whole graph, distributed like the vertices."""
    policy = graph.get_node_partition_policy("_N")
    degrees = dgl.distributed.DistTensor(
        (graph.num_nodes(),), torch.int64, name="degree", part_policy=policy, persistent=True
    )
    local, inner = graph.local_partition, policy.partition_book.partid2nids(policy.part_id)
    if len(inner):
        degrees[inner] = local.in_degrees()[: len(inner)]
    dist.barrier()
    return degrees
