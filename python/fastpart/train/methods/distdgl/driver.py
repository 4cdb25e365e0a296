"""``distdgl``: start servers and trainers for a partition directory."""

from __future__ import annotations

import time
from dataclasses import replace

from ....core import parameters
from ....core.outputs import owning
from ....errors import ParameterError
from ....partitions.partition import PartitionSource, directory_of
from ....runtime.environment import refuse_several
from ....runtime.watch import Supervisor
from ...data import Dataset
from ...jobs.driver import follow
from ...jobs.launch import output_of
from ...jobs.warnings import Undefined, remedy_of, warn_of_scales, watched
from ...learning.trainable import refuse_not_importable
from ...memory import left_by
from ...method_options import DistDGLOptions
from ...models import NEIGHBOUR, sampling_of
from ...plugged.libraries import import_dgl
from ...registry import Method
from ...runs.baselines import baselines_of
from ...runs.beginning import begin
from ...runs.history import History
from ...runs.identity import must_agree
from ...runs.trained import TrainedModel
from .exported import Export
from .machines import Machines
from .plan import Plan


class Driver:
    """Starts the processes, and follows them. DGL loads, samples and exchanges, so little is as in other methods."""

    def __init__(self, method: Method, source: PartitionSource, options: DistDGLOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but distdgl samples neighbours only. Train it "
                "with sdt or full, or use graphsage, which has the same layers"
            )
        self._source, self._options = source, options

    def train(self) -> TrainedModel:
        """Train, and return the result."""
        options, run, resume = self._options, self._options.run, self._options.resume
        refuse_not_importable(options.model)
        if self._options.ip_config is None:
            refuse_several("distdgl")
        import_dgl()
        out = None if options.out is None else parameters.path("out", options.out)
        with owning(out=out), Supervisor(run.tmp_dir) as group:
            folder = output_of(group.folder, options)
            graph = Export.of(self._source, group.folder, run)
            machines = self._machines(graph, group)
            graph.refuse_small_memory(machines.here)
            left_by(graph.needs(machines.here, options.trainers_per_part, options.samplers, options), run)
            path = directory_of(self._source)
            dataset = Dataset(path) if path.is_dir() else None  # else an earlier export
            if dataset is not None:
                warn_of_scales(dataset)
            begin(folder, resume, options, must_agree("distdgl", options, {}, graph.identity), path, None)
            with folder.kept():
                history = History("distdgl", options, folder, resume)
                plan = Plan(graph, machines, options.trainers_per_part, options.samplers, run.threads)
                plan.start(group, history, resume)
                undefined = Undefined(dataset, options.model)
                report = watched(undefined.watched(options.report), None, remedy_of(dataset))
                start = time.perf_counter()
                trained = follow(group, history, report)
                undefined.end(trained.summary)
                if dataset is None or not options.baselines:  # an earlier export tells of no vertices here
                    return trained
                seconds = time.perf_counter() - start
                found = baselines_of(dataset, options, trained.summary, group.folder, seconds)
                folder.update(summary={**trained.summary, "baselines": found})
                return replace(trained, summary={**trained.summary, "baselines": found})

    def _machines(self, graph: Export, group: Supervisor) -> Machines:
        if self._options.ip_config is None:
            return Machines.local(graph.parts, group)
        graph.refuse_empty_parts()
        return Machines.listed(self._options.ip_config, graph.parts, group)
