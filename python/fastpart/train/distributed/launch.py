"""``distdgl``: start servers and trainers for a partition directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import refuse_several
from ...runtime.watch import Supervisor
from ..beginning import begin
from ..config import Call
from ..following import follow, output_of
from ..history import History
from ..identity import must_agree
from ..libraries import import_dgl
from ..memory import left_by
from ..models import NEIGHBOUR, sampling_of
from ..trainable import refuse_not_importable
from ..trained import TrainedModel
from ..trainer import DGLServers, Trainer
from .exported import Export
from .machines import Machines
from .plan import Plan


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Start the processes, and follow them."""
    call, made = Call.of(given), trainer.made
    options, run = call.options, call.run
    assert isinstance(made, DGLServers)
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} needs sampled graphs, but distdgl samples neighbours only. Train it with sdt or "
            "full, or use graphsage, which has the same layers"
        )
    trainers_per_part = parameters.integer("trainers_per_part", made.trainers_per_part, 1, 1 << 10)
    samplers = parameters.integer("samplers", made.samplers, 0, 1 << 10)
    resume, overwrite = call.resume, call.overwrite
    refuse_not_importable(options.model)
    if made.ip_config is None:
        refuse_several("distdgl")
    import_dgl()
    with Supervisor(run.tmp_dir) as group:
        folder = output_of(group, call.out, resume, overwrite)
        graph = Export.of(source, group.folder, run)
        if made.ip_config is None:
            machines = Machines.local(graph.parts, group)
        else:
            graph.refuse_empty_parts()
            machines = Machines.listed(made.ip_config, graph.parts, group)
        graph.refuse_small_memory(machines.here)
        left_by(graph.needs(machines.here, trainers_per_part, samplers, options), run)
        path = parameters.path("source", source)
        begin(folder, resume, options, must_agree("distdgl", options, {}, graph.identity), path, None)
        with folder.kept():
            history = History("distdgl", options, folder, resume)
            plan = Plan(graph, machines, trainers_per_part, samplers, run.threads)
            plan.start(group, history, resume)
            return follow(group, history, call.report)
