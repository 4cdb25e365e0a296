"""From a partition directory to servers and trainers."""

from __future__ import annotations

from collections.abc import Sequence

from ... import parameters
from ...errors import ParameterError
from ...parameters import Progress, StrPath
from ..config import ModelSource, Options
from ..following import follow
from ..history import History
from ..models import NEIGHBOUR, sampling
from ..supervisor import Supervisor
from ..trained import Trained
from .exported import Exported
from .machines import Machines
from .plan import Plan


def distdgl(
    src: StrPath,
    *,
    model: ModelSource = "graphsage",
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    dropout: float = 0.5,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    epochs: int = 100,
    batch_size: int | None = 1000,
    fanouts: Sequence[int] | None = None,
    patience: int | None = None,
    seed: int | None = 0,
    trainers_per_part: int = 1,
    samplers: int = 0,
    ip_config: StrPath | None = None,
    output: StrPath | None = None,
    resume: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train with DGL's distributed engine: sampled mini-batches, servers that hold the parts, synchronous steps.

    Starts on this machine one server and ``trainers_per_part`` trainers for each part, talks to them over the loopback
    interface only, and ends all of them as soon as one fails. For several machines see ``docs/training.md``.
    """
    given = {name: value for name, value in locals().items() if name in Options.__dataclass_fields__}
    options = Options.of(given)
    if (kind := sampling(options.model)) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model} is trained on sampled graphs ({kind!r}), DGL's distributed engine samples "
            "neighbours; sdt and full train it"
        )
    run = parameters.run_options(threads=threads, progress=progress)
    trainers_per_part = parameters.integer("trainers_per_part", trainers_per_part, 1, 1 << 10)
    samplers = parameters.integer("samplers", samplers, 0, 1 << 10)
    resume = parameters.flag("resume", resume)
    with Supervisor() as group:
        graph = Exported.of(src, group.folder, run)
        if ip_config is None:
            machines = Machines.local(graph.parts, group)
        else:
            graph.refuse_empty_parts()
            machines = Machines.listed(ip_config, graph.parts, group)
        graph.refuse_small_memory(machines.here)
        kept = group.folder / "output" if output is None else output
        history = History("distdgl", options, kept, resume, graph.identity)
        plan = Plan(graph, machines, trainers_per_part, samplers, run.threads)
        plan.start(group, history, resume)
        return follow(group, history, run.progress)
