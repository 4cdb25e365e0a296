"""Training by the workers of a Ray cluster. Ray starts them again when one is lost, and their number may change."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import parameters
from ..core.calls import called_well, spread
from ..core.outputs import Owner, entrusted
from ..core.parameters import StrPath
from ..errors import FastpartError, ParameterError, TrainingError
from ..partitions.partition import PartitionSource, directory_of
from .opening import open as open_run
from .options import KeptOptions
from .plugged import import_ray
from .registry import loaded, names, of
from .runs.run_folder import RAY, SCRATCH, RunFolder

if TYPE_CHECKING:
    from .methods.embeddings.trained import TrainedEmbeddings
    from .methods.links.trained import TrainedLinks
    from .runs.trained import TrainedModel


@called_well
def ray(
    method: str,
    source: PartitionSource,
    *,
    out: StrPath,
    workers: int | tuple[int, int],
    cluster: str = "auto",
    max_failures: int = 3,
    **training: Any,
) -> TrainedModel | TrainedLinks | TrainedEmbeddings:
    """Train on a Ray cluster, by the ``TorchTrainer`` of Ray Train.

    When a worker or its machine is lost, Ray starts the workers again, and they continue from the checkpoint in
    ``out``. So the loss costs the epochs since the last checkpoint, which is at most 5 seconds and one epoch old. With
    two numbers of workers they need not be as many as before: Ray starts as many as there are processors for, and
    starts more when there are more, and waits while there are too few. Losses do not depend on their number, up to
    rounding. The traffic of workers is neither encrypted nor authenticated. Use a private network.

    Parameters
    ----------
    method : {"armada", "bytegnn", "distgnn", "edges", "embeddings", "links", "sampled", "sancus", "sdt"}
        The method.
    source : path
        A partition directory, as the method takes it. All machines of the cluster have it under the same path.
    out : path
        The folder of the checkpoint, as for the method. All machines see it under the same path.
    workers : int or (int, int)
        The number of processes, or the fewest and the most. At most one per part. ``distgnn`` and ``sancus`` need one
        for each part.
    cluster : str
        The address of the cluster, as ``10.0.0.1:6379``. ``"auto"`` is ``RAY_ADDRESS``, or the cluster of Ray that was
        started on this machine, or that of ``ray.init``.
    max_failures : int
        How often workers may be lost before the training ends with an error.
    **training
        Parameters of the method. Callbacks are called in the process of rank 0. Each worker takes as many processors
        as ``threads`` (default: 1), and a GPU with ``device="cuda"``, which was never run under Ray.

    Returns
    -------
    TrainedModel, TrainedLinks or TrainedEmbeddings
        As the method returns it.

    Raises
    ------
    ParameterError
        An invalid parameter, no cluster, one that strangers can connect to, a machine that does not see ``out``, or
        fewer free processors than workers, for which Ray would wait for ever.
    TrainingError
        More than ``max_failures`` workers were lost.
    ModuleNotFoundError
        Without Ray: ``pip install 'fastpart[ray-train]'``.

    Examples
    --------
    .. code-block:: python

        trained = fp.train.ray("sampled", "parts", out="run", workers=(2, 8), epochs=50)
    """
    parameters.choice("method", method, tuple(sorted(each for each in names() if of(each).launched)))
    fewest, most = _numbers(method, workers)
    max_failures = parameters.integer("max_failures", max_failures, 0, 1 << 30)
    import_ray()
    from ..machines import checking

    path = parameters.path("out", out).absolute()
    checking.connect(cluster)
    checking.check(path if path.is_dir() else path.parent)
    beside = {"out": out, "workers": workers}
    training = {
        name: each
        for name, each in spread(of(method).function, training | beside).items()
        if name not in beside
    }
    cpus = parameters.integer("threads", training.get("threads") or 1, 1, 1 << 12)
    needed = {"CPU": cpus} | ({"GPU": 1} if training.get("device") == "cuda" else {})
    _refuse_few_processors(fewest, needed)
    with Owner(path):
        folder = RunFolder.claim(path, *(training.pop(name, False) for name in ("resume", "overwrite")))
        folder.add([RAY])
        job = {
            "function": f"{of(method).function.__module__}:{method}",
            "takes_workers": "workers" not in of(method).without,
            "source": os.path.abspath(directory_of(source)),
            "given": {**training, "out": str(path), "resume": True},
            "directory": os.getcwd(),
        }
        with folder.kept(), folder.without(RAY, SCRATCH):
            _fit(job, (fewest, most), needed, max_failures)
    return open_run(folder.path, training.get("encoder") or training.get("model"))


def _numbers(method: str, workers: int | tuple[int, int]) -> tuple[int, int]:
    """Return the fewest and the most workers."""
    if not isinstance(workers, tuple | list):
        count = parameters.integer("workers", workers, 1, 1 << 12)
        return count, count
    fewest, most = (parameters.integer("workers", each, 1, 1 << 12) for each in (*workers, 1, 1)[:2])
    if len(workers) != 2 or fewest > most:
        raise ParameterError(f"workers: expected a number, or the fewest and the most, got {workers!r}")
    if of(method).per_part and fewest < most:
        raise ParameterError(
            f"workers: {method} has one worker for each part, so their number cannot change. Pass the number of parts"
        )
    return fewest, most


def _refuse_few_processors(fewest: int, needed: Mapping[str, int]) -> None:
    """Refuse what Ray would wait for without an end."""
    free = import_module("ray").available_resources()
    for name, each in needed.items():
        if free.get(name, 0) < fewest * each:
            raise ParameterError(
                f"workers: {fewest} of them need {fewest * each} {name}s, but {free.get(name, 0):g} of the cluster are "
                "free. Ask for fewer, wait for other jobs, or add machines"
            )


def _fit(job: dict[str, Any], workers: tuple[int, int], needed: Mapping[str, int], max_failures: int) -> None:
    """Let Ray Train work on a job."""
    train, torch = import_module("ray.train"), import_module("ray.train.torch")
    given, cuda = job["given"], "GPU" in needed
    timeout = parameters.positive("timeout", given.get("timeout", KeptOptions.timeout))
    failures = train.FailureConfig(max_failures=max_failures)
    count = workers if workers[0] < workers[1] else workers[0]
    trainer = torch.TorchTrainer(
        _work,
        train_loop_config=job,
        torch_config=torch.TorchConfig("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout_s=timeout),
        scaling_config=train.ScalingConfig(
            num_workers=count, use_gpu=cuda, resources_per_worker=dict(needed)
        ),
        run_config=train.RunConfig(name=RAY[:-1], storage_path=given["out"], failure_config=failures),
    )
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit()
    except train.TrainingFailedError as error:
        raise _cause_of(error) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt or signal.SIG_DFL)  # Ray Train has changed it


def _cause_of(error: Any) -> Exception:
    """Return why a training of Ray failed: what a worker refused, or which workers were lost."""
    failures: dict[int, Exception] = getattr(error, "worker_failures", {})
    for each in failures.values():
        if isinstance(each, FastpartError | OSError) and not isinstance(each, TrainingError):
            return each
    lines = {rank: str(each).strip().split("\n")[0] for rank, each in sorted(failures.items())}
    return TrainingError(". ".join(f"rank {rank}: {line}" for rank, line in lines.items()) or str(error))


def _work(job: dict[str, Any]) -> None:
    """Train as one of the workers. Relative paths are those of the process of the user, if its folder is here."""
    if os.path.isdir(job["directory"]):
        os.chdir(job["directory"])
    given = job["given"]
    if import_module("ray.train").get_context().get_world_size() == 1 and job["takes_workers"]:
        given = {**given, "workers": 1}
    with entrusted(Path(given["out"])):
        loaded(job["function"])(job["source"], **given)
